"""Asks a model once and keeps everything that came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.models import make_model
from runtime.events import ReasoningDelta, TextDelta, Waiting
from runtime.model import Answer, Model, ModelError, ModelView

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a shell command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
HELLO = ({"role": "user", "content": "Hello."},)


def view(messages: Sequence[dict[str, Any]] = HELLO, **more: Any) -> ModelView:
    """A view with one tool."""
    return ModelView(**{"system": "You help.", "messages": messages, "tools": [BASH], **more})


@dataclass
class Heard:
    """What one request gave: events in order, and either the answer or the error."""

    events: list[Any] = field(default_factory=list)
    answer: Answer | None = None
    error: ModelError | None = None

    @property
    def message(self) -> Any:
        """The answer's message; an error is raised here."""
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer.message

    @property
    def shown(self) -> str:
        """The text a person saw while it came."""
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    @property
    def thought(self) -> str:
        """The thinking a person saw."""
        return "".join(e.text for e in self.events if isinstance(e, ReasoningDelta))

    @property
    def waits(self) -> list[Waiting]:
        """What the model said it was doing."""
        return [e for e in self.events if isinstance(e, Waiting)]


async def hear(model: Model, asked: ModelView | None = None) -> Heard:
    """One request. Exactly one Answer has to be the last thing that comes."""
    heard = Heard()
    try:
        async for event in model.stream(asked or view()):
            assert heard.answer is None, "something came after the answer"
            if isinstance(event, Answer):
                heard.answer = event
            else:
                heard.events.append(event)
        assert heard.answer is not None, "the stream ended without an answer"
    except ModelError as error:
        heard.error = error
    return heard


def ask(spec: str, asked: ModelView | None = None, times: int = 1, **options: Any) -> Heard:
    """Asks a fresh model, `times` times; gives the last."""

    async def run() -> Heard:
        model: Any = make_model(spec, **options)
        try:
            for _ in range(times - 1):
                await hear(model, asked)
            return await hear(model, asked)
        finally:
            await model.close()

    return asyncio.run(run())
