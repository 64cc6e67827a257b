"""What can help when a request fails: fold and ask again, ask for less, wait and ask again. Else the error goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from runtime.answers import partial_answer
from runtime.context.unread import fold_unread
from runtime.crew import Crew, Turn
from runtime.events import Compacted, CompactFailed, Compacting, Event, Notice, Retrying
from runtime.folding import fold_line
from runtime.model import ModelError, ModelErrorKind
from transcripts.records import Note, User

_TOO_LONG = frozenset(
    {ModelErrorKind.PROMPT_TOO_LONG, ModelErrorKind.REQUEST_TOO_LARGE, ModelErrorKind.INPUT_PLUS_OUTPUT_TOO_LONG}
)
_LONG_PIECE = 2_000
"""Characters of a broken answer from which on it is continued: about half a minute of a model's writing."""
_SHORT_ANSWER = 1_024
"""Tokens of answer that are asked for when a request is refused as too long and nothing in it can be folded."""
_LEAST_OUTPUT = 256
"""Tokens of answer below which asking for less is no use and the view is folded instead."""


async def recover(crew: Crew, turn: Turn, error: ModelError, attempt: int) -> AsyncIterator[Event]:
    """Does what can help against an error, or raises it. What came of an answer is kept either way."""
    wait = crew.retry.wait(error, attempt)
    _keep(crew, error, wait is not None)
    if _ask_for_less(turn, error):
        return
    mended = _mend(crew, error)
    if mended:
        yield Notice(f"{error.message} ({mended})", "warning")
        return
    if error.kind in _TOO_LONG:
        async for event in _make_room(crew, turn, error):
            yield event
        return
    if wait is None:
        raise error
    yield Retrying(error.message, wait, attempt + 1, crew.retry.tries(error.kind))
    await asyncio.sleep(wait)


def _keep(crew: Crew, error: ModelError, again: bool) -> None:
    """Keeps what had come of an answer. A long piece is shown to the model, to go on from; a short one is sooner said
    again, by the very same request, and goes into the log alone."""
    text = error.partial.text if error.partial is not None else ""
    if text and again and len(text) < _LONG_PIECE:
        crew.engine.append(Note("cut", text))
    elif text:
        crew.engine.append(partial_answer(text, "cut", crew.model.name))
        crew.engine.append(User("[The connection broke. Go on exactly where you stopped.]", "harness"))


def _mend(crew: Crew, error: ModelError) -> str:
    """Sends less of what was refused: pictures, then everything but plain words and calls. Says what was done."""
    if error.kind in (ModelErrorKind.BAD_MEDIA, ModelErrorKind.REQUEST_TOO_LARGE) and crew.engine.drop_images():
        return "pictures are left out from now on"
    if error.kind is ModelErrorKind.MALFORMED_HISTORY and crew.engine.plain_down():
        return "the history is sent again in its plainest form; please report this, it is a bug of refold"
    return ""


async def _make_room(crew: Crew, turn: Turn, error: ModelError) -> AsyncIterator[Event]:
    turn.overflows += 1
    limit = crew.engine.named_window(error)
    if limit and hasattr(crew.model, "learn_window"):
        crew.model.learn_window(limit)  # type: ignore[attr-defined]
    if turn.overflows > crew.limits.max_overflows:
        raise error
    try:
        async for event in fold(crew, error):
            yield event
    except ModelError:
        if turn.overflows > 1 or turn.max_output:
            raise
        turn.max_output = _SHORT_ANSWER  # nothing can be folded, so the answer is all that can be made smaller


async def prune(crew: Crew) -> AsyncIterator[Event]:
    """Before a turn: leaves out a past too large to be read, and lets old results go early where that is free or soon
    pays for itself."""
    unread = fold_unread(crew.engine)
    if unread is not None:
        yield Compacted(unread, fold_line(unread))
    outcome = await crew.engine.prune_when_cheap()
    if outcome is not None and outcome.checkpoint is not None:
        yield Compacted(outcome.checkpoint, fold_line(outcome.checkpoint))


async def fold(crew: Crew, error: ModelError | None = None) -> AsyncIterator[Event]:
    """Folds if the next request is over the trigger, or after a refusal. Raises the refusal if that does not help."""
    decision = crew.engine.should_compact()
    if error is None and not decision.should_compact:
        return
    yield Compacting("threshold" if error is None else error.kind, decision.estimated_tokens, decision.threshold)
    compact = (
        crew.engine.compact_if_needed(crew.model) if error is None else crew.engine.reactive_compact(crew.model, error)
    )
    outcome = await compact
    if outcome is not None and outcome.checkpoint is not None:
        yield Compacted(outcome.checkpoint, fold_line(outcome.checkpoint))
    elif outcome is not None:
        yield CompactFailed(outcome.reason, outcome.floor)
        if error is not None:
            raise error


def _ask_for_less(turn: Turn, error: ModelError) -> bool:
    """The input fits, what is asked for does not: a shorter answer may do. Tried once a turn."""
    room = {
        ModelErrorKind.INPUT_PLUS_OUTPUT_TOO_LONG: (error.limit or 0) - (error.used or 0) - 64 if error.used else 0,
        ModelErrorKind.OUTPUT_LIMIT: error.limit or 0,
    }.get(error.kind, 0)
    if turn.asked_less or room < _LEAST_OUTPUT:
        return False
    turn.max_output, turn.asked_less = room, True
    return True
