"""The model's own notes about what leaves the view: how they are asked for, and which are kept.

The request is the one the model has just seen with one instruction behind it, so that the provider's cache serves it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from runtime.context.budget import ContextSettings
from runtime.context.draft import Summarise, SummaryFailed
from runtime.context.estimate import TokenEstimator
from runtime.context.history import HistoryManager
from runtime.context.projection import View
from runtime.model import Answer, Model, ModelError, ModelView
from transcripts.log import Entry
from transcripts.records import Assistant, Record

PATIENCE = 2
"""Requests for notes that may fail one after the other before folds stop asking; /compact asks all the same."""

LEAST_CHARS = 20
"""An answer shorter than this is no note."""

_ATTRIBUTED = re.compile(r"(?i)\b(user|person|they|you) (said|asked|wants?|wrote|told|insist\w*)|用户")
_QUOTED = re.compile(r"[\"\u201c\u300c]([^\"\u201c\u201d\u300c\u300d]{8,}?)[\"\u201d\u300d]")


class Source(Protocol):
    """What notes are taken from: the engine, as far as this file needs it."""

    settings: ContextSettings
    estimator: TokenEstimator
    history: HistoryManager
    window: int
    system: str
    specs: Sequence[dict[str, Any]]
    fixed: bytes
    fixed_units: float

    def current(self) -> View: ...

    def append(self, record: Record) -> Entry: ...

    def record_request(self, view: ModelView, model: str, purpose: str, words: str, head: int) -> Entry: ...


class NoteTaker:
    """Asks a model for notes, within `summary_timeout` seconds; stops asking after failures in a row."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.failures = 0

    def writer(self, model: Model | None, *, asked: bool = False) -> Summarise | None:
        """What a draft calls for its notes; None where they are not to be had or have failed too often of late."""
        if model is None or not self.source.settings.summarise or (self.failures >= PATIENCE and not asked):
            return None
        return lambda words: self._take(model, words)

    async def _take(self, model: Model, words: str) -> str:
        timeout = self.source.settings.summary_timeout
        self.failures += 1
        try:
            async with asyncio.timeout(timeout):
                notes = await self._ask(model, words)
        except asyncio.CancelledError:
            self.failures -= 1  # the person stopped it: that says nothing about the model
            raise
        except TimeoutError as error:
            raise SummaryFailed(f"timed out after {timeout:g} s") from error
        except ModelError as error:
            raise SummaryFailed(error.message) from error
        self.failures = 0
        return notes

    async def _ask(self, model: Model, words: str) -> str:
        source = self.source
        most = max(256, source.window // 20)
        head = head_that_fits(source.current(), self._room(most))
        view = notes_view(source.current(), words, head)
        request = ModelView(
            system=source.system,
            messages=tuple(view.messages),
            tools=source.specs,
            sha=view.sha(source.fixed),
            estimate=source.estimator.tokens(view.units + source.fixed_units),
            params={"max_tokens": most, "tool_choice": "none"},
        )
        source.record_request(request, model.name, "summary", words, head)
        answer = None
        async for event in model.stream(request):
            answer = event if isinstance(event, Answer) else answer
        if answer is None:
            raise SummaryFailed("no answer came")
        source.append(replace(answer.usage, purpose="summary"))
        said = (e.record.text for e in source.history.messages if e.kind == "user")
        return verified(usable(answer.message, most * 8), said)

    def _room(self, output: int) -> float:
        """Units that the view may have in a request for notes."""
        source = self.source
        return (source.window - output - source.window // 32) / source.estimator.factor - source.fixed_units - 200


def notes_view(current: View, words: str, head: int) -> View:
    """The first `head` messages of a view with an instruction behind them."""
    view = current.copy()
    if head < len(current.messages):
        view = View(current.estimator)
        for message in current.messages[:head]:
            view.add(message)
    view.add({"role": "user", "content": words})
    return view


def head_that_fits(current: View, room: float) -> int:
    """How many messages of a view fit into that many units, no call parted from its results."""
    if current.units <= room:
        return len(current.messages)
    probe = View(current.estimator)
    cut = 0
    for n, message in enumerate(current.messages):
        if message["role"] != "tool":
            cut = n
        probe.add(message)
        if probe.units > room:
            return cut
    return len(current.messages)


def usable(message: Assistant, most: int) -> str:
    """Notes that may be kept, at most `most` characters. Raises SummaryFailed for a blank or cut-off answer."""
    text = message.text.strip()
    if message.finish == "length":
        raise SummaryFailed("the answer was cut off")
    if len(text) < LEAST_CHARS:
        raise SummaryFailed("the answer was blank")
    return text[:most]


def verified(notes: str, said: Iterable[str]) -> str:
    """The notes with quotation marks only where the person's words really are in the log; elsewhere they go, and a word
    says that it is no quotation."""
    if not _ATTRIBUTED.search(notes):
        return notes
    words = "\n".join(" ".join(text.split()) for text in said)

    def check(line: str) -> str:
        if not _ATTRIBUTED.search(line):
            return line
        return _QUOTED.sub(lambda m: m[0] if " ".join(m[1].split()) in words else f"{m[1]} (not their words)", line)

    return "\n".join(check(line) for line in notes.split("\n"))
