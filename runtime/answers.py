"""What an answer is worth: whether it is whole, and what the model is told where it is not."""

from __future__ import annotations

from runtime.crew import Limits, Turn
from runtime.events import TextDelta
from runtime.model import ModelEvent
from transcripts.records import Assistant

_WHOLE = frozenset({"stop", "tool_calls"})

_NOT_RUN = "[Not run: {why}, so this call may be incomplete. Send it again, in smaller pieces if it was large.]"
_GO_ON = "[Your answer was cut off: {why}. Go on exactly where it stopped, without repeating anything.]"
_REASONS = {
    "length": "the answer reached the output limit",
    "content_filter": "a content filter stopped the answer",
    "cut": "the connection broke",
    "": "the answer ended without saying why",
}


def continuation(message: Assistant, turn: Turn, limits: Limits) -> str:
    """What the model is told after an answer that is not whole; "" where it is whole, or has gone on often enough."""
    if message.finish in _WHOLE:
        return ""
    why = _REASONS.get(message.finish, f"the answer ended with {message.finish!r}")
    if message.calls:
        return _NOT_RUN.format(why=why)
    if message.finish == "content_filter" or turn.continuations >= limits.max_continuations:
        return ""
    return _GO_ON.format(why=why) if message.finish in ("length", "cut") else ""


def part_of(event: ModelEvent) -> str:
    """The text that a stream event adds to the answer."""
    return event.text if isinstance(event, TextDelta) else ""


def partial_answer(text: str, finish: str, model: str) -> Assistant:
    """What came of an answer that has no end."""
    return Assistant(text, finish=finish, model=model)
