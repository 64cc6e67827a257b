"""The ReAct loop: fold if needed, show the view, take the answer, run its calls, again.

An async generator of events and nothing else: whoever iterates drives it, whoever stops iterating stops it. What an
event tells is already on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from runtime.answers import continuation, part_of, partial_answer
from runtime.calls import refuse_calls, run_calls
from runtime.crew import Crew, Turn
from runtime.events import (
    AnswerRecorded,
    Event,
    RequestSent,
    Steered,
    TurnEnded,
    TurnStarted,
)
from runtime.model import Answer, ModelError, ModelView
from runtime.recovery import fold, prune, recover
from transcripts.log import Entry, LogWriteError
from transcripts.records import TurnEnd, User


async def run_turn(crew: Crew, prompt: User | Entry) -> AsyncGenerator[Event, None]:
    """One turn: from the person's message, which may be in the log already, to an answer without calls. The last event
    is TurnEnded, unless the task is cancelled: then what came is kept, marked, and CancelledError goes on. Bugs raise.
    """
    turn = Turn(spent=crew.spent)
    try:
        crew.engine.close_open_calls()
        entry = prompt if isinstance(prompt, Entry) else crew.engine.append(prompt)
        yield TurnStarted(entry.record.text, entry.seq)
        async for event in prune(crew):
            yield event
        async for event in _steps(crew, turn):
            yield event
    except ModelError as error:
        yield _end(crew, turn, "error", error.message, error.kind)
    except LogWriteError as error:
        yield TurnEnded("error", turn.text, str(error), "log", turn.steps, turn.usage)
    except asyncio.CancelledError:
        _end(crew, turn, "interrupted")
        raise


async def _steps(crew: Crew, turn: Turn) -> AsyncIterator[Event]:
    while True:
        if limit := turn.over(crew.limits):
            yield _end(crew, turn, "limit", limit)
            return
        for line in crew.steered():
            yield Steered(line, crew.engine.append(User(line, "steered")).seq)
        answer = None
        async for event in _ask(crew, turn):
            answer = event if isinstance(event, Answer) else answer
            if not isinstance(event, Answer):
                yield event
        assert answer is not None
        async for event in _take(crew, turn, answer):
            yield event
        if turn.stuck:
            yield _end(crew, turn, "stuck", turn.stuck)
            return
        if not answer.message.calls and not continuation(answer.message, turn, crew.limits):
            waiting = crew.steered()
            if not waiting:
                yield _end(crew, turn, "done")
                return
            for line in waiting:
                yield Steered(line, crew.engine.append(User(line, "steered")).seq)


async def _take(crew: Crew, turn: Turn, answer: Answer) -> AsyncIterator[Event]:
    """Records an answer, then runs its calls, or says why they do not run."""
    message = answer.message
    turn.steps += 1
    turn.text = message.text or turn.text
    turn.count(answer.usage)
    entry = crew.engine.append(message)
    crew.engine.append(answer.usage)
    yield AnswerRecorded(message, answer.usage, entry.seq)
    more = continuation(message, turn, crew.limits)
    if message.calls and more:
        async for event in refuse_calls(crew, message.calls, more):
            yield event
    elif message.calls:
        async for event in run_calls(crew, turn, message.calls):
            yield event
    elif more:
        turn.continuations += 1
        crew.engine.append(User(more, "harness"))


async def _ask(crew: Crew, turn: Turn) -> AsyncIterator[Event | Answer]:
    """One answer, whatever it takes: folds, waits and asks again as long as that can help. Raises ModelError."""
    attempt = 0
    while True:
        async for event in fold(crew):
            yield event
        view = _view(crew, turn)
        attempt += 1
        try:
            yield RequestSent(turn.steps + 1, view.estimate, crew.engine.window)
            async for event in _stream(crew, view):
                yield event
            turn.overflows = 0
            return
        except ModelError as error:
            async for event in recover(crew, turn, error, attempt):
                yield event


def _view(crew: Crew, turn: Turn) -> ModelView:
    view = crew.engine.build_model_view()
    view = replace(view, params={"max_tokens": turn.max_output}) if turn.max_output else view
    crew.engine.record_request(view, crew.model.name)
    return view


async def _stream(crew: Crew, view: ModelView) -> AsyncIterator[Event | Answer]:
    """The deltas of one answer and the answer. If it is stopped half way, what came is kept and marked."""
    said: list[str] = []
    try:
        async for event in crew.model.stream(view):
            said.append(part_of(event))
            yield event
    except asyncio.CancelledError:
        if text := "".join(said):
            crew.engine.append(partial_answer(text, "interrupted", crew.model.name))
        raise


def _end(crew: Crew, turn: Turn, reason: str, message: str = "", kind: str = "") -> TurnEnded:
    """Writes the end of a turn down and tells it; where the disk takes no more, that is what is told."""
    try:
        crew.engine.append(TurnEnd(reason, message, turn.steps))
    except LogWriteError as error:
        reason, message, kind = "error", str(error), "log"
    return TurnEnded(reason, turn.text, message, kind, turn.steps, turn.usage, tuple(turn.denials))
