"""A provider that counts: tokens of each request, and how many of them its prefix cache had already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.models.scripted import Scripted
from runtime.model import Answer, ModelEvent, ModelView
from transcripts.records import Assistant

CHARS_PER_TOKEN = 4
BLOCK = 16
"""Tokens of a block; a cache holds whole blocks, as the servers do that have one."""


@dataclass
class Bill:
    """What one design cost: calls, input tokens, and those of them that no cache held."""

    steps: int = 0
    summaries: int = 0
    input: int = 0
    uncached: int = 0
    over_window: int = 0
    first_over: int = 0
    """The first request for a step that no server would have taken."""
    largest: int = 0


@dataclass
class PrefixCache:
    """Remembers every prefix it has seen, for ever: the kindest cache there can be."""

    window: int
    bill: Bill = field(default_factory=Bill)
    _seen: set[bytes] = field(default_factory=set)

    def charge(self, body: Sequence[Any], *, summary: bool) -> tuple[int, int]:
        """(tokens, cached tokens) of one request."""
        data = json.dumps(list(body), ensure_ascii=False).encode()
        size, step = len(data) // CHARS_PER_TOKEN, BLOCK * CHARS_PER_TOKEN
        running, cached, hit = hashlib.blake2b(digest_size=12), 0, True
        for start in range(0, len(data) - step + 1, step):
            running.update(data[start : start + step])
            key = running.digest()
            hit = hit and key in self._seen
            cached += BLOCK if hit else 0
            self._seen.add(key)
        bill = self.bill
        bill.steps += not summary
        bill.summaries += summary
        bill.input += size
        bill.uncached += size - cached
        bill.over_window += size > self.window
        if size > self.window and not summary:
            bill.first_over = bill.first_over or bill.steps
        bill.largest = max(bill.largest, size)
        return size, cached


class Charged(Scripted):
    """The scripted model behind such a provider: what it reports as usage is what was counted. `write` makes the notes
    of a request for notes from its text."""

    def __init__(self, steps: Sequence[Any], cache: PrefixCache, write: Any) -> None:
        super().__init__(steps, window=cache.window)
        self.cache, self.write = cache, write

    async def stream(self, view: ModelView) -> AsyncIterator[ModelEvent]:
        """Counts the request, then plays the next answer, or writes notes."""
        notes = view.params.get("tool_choice") == "none"
        body = [{"role": "system", "content": view.system}, list(view.tools), *view.messages]
        size, cached = self.cache.charge(body, summary=notes)
        async for event in super().stream(view):
            if isinstance(event, Answer):
                message = Assistant(self.write(text_of(view.messages))) if notes else event.message
                event = Answer(message, replace(event.usage, input=size, cached=cached))
            yield event


def text_of(messages: Sequence[Any]) -> str:
    """All words of wire messages, the arguments of calls included."""
    parts = [str(m.get("content") or "") for m in messages]
    parts += [c["function"]["arguments"] for m in messages for c in m.get("tool_calls") or ()]
    return "\n".join(parts)
