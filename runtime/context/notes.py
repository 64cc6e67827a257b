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
from runtime.context.rounds import SPOKEN
from runtime.model import Answer, Model, ModelError, ModelView
from transcripts.log import Entry
from transcripts.records import Assistant, Record

PATIENCE = 2
"""Requests for notes that may fail one after the other before folds stop asking; /compact asks all the same."""

_ECHO = 60
"""Characters of the request for notes by which it is known again."""

LEAST_CHARS = 20
"""An answer shorter than this is no note."""

_ATTRIBUTED = re.compile(r"(?i)\b(user|person|human|they|you) (said|says|asked|wants?|wrote|told|insist\w*)|用户")
_QUOTED = re.compile(
    r"[\"\u201c\u201e\u300c\u00ab]([^\"\u201c-\u201e\u300c\u300d\u00ab\u00bb]{8,}?)[\"\u201c\u201d\u300d\u00bb]"
    r"|(?<!\w)'([^'\n]{8,}?)'(?!\w)"
)
_SPOKEN = re.compile(
    r"(?i)^(\W*(?:the )?(?:user|human|person|用户)(?: said| says| wrote| asked)?\W*[:：]\W*|\s*>\s*)(.*\w.*)$"
)
"""A line as in a play, or of a quotation set apart: all of it is somebody's words."""

_FENCE = re.compile(r"(?i)<(\s*/?\s*(?:notes|state)\b)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


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
        said = (e.record.text for e in source.history.messages if e.kind == "user" and e.record.source in SPOKEN)
        return verified(usable(answer.message, most * 8, words), said)

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


def usable(message: Assistant, most: int, asked: str = "") -> str:
    """Notes that may be kept, at most `most` characters. Raises SummaryFailed for an answer that is blank, cut off, or
    what was `asked` said again."""
    text = _CONTROL.sub("", message.text).strip()
    if message.finish == "length":
        raise SummaryFailed("the answer was cut off")
    if len(text) < LEAST_CHARS:
        raise SummaryFailed("the answer was blank")
    if asked and asked[:_ECHO] in text:
        raise SummaryFailed("the answer repeated the request")
    return without_fences(text[:most])


def without_fences(text: str) -> str:
    """The text without marks that would end the notes or the state in the view: what stands behind them is the
    person's."""
    return _FENCE.sub(r"[\1", text)


def verified(notes: str, said: Iterable[str]) -> str:
    """The notes with quotation marks only where the person's words really are in the log; elsewhere they go, and a word
    says that it is no quotation."""
    words = "\n".join(_plain(text) for text in said)

    def quoted(match: re.Match[str]) -> str:
        inner = match[1] or match[2]
        return match[0] if _plain(inner) in words else f"{inner} (not their words)"

    out: list[str] = []
    theirs = False
    for line in notes.split("\n"):
        spoken, attributed = _SPOKEN.match(line), bool(_ATTRIBUTED.search(line))
        if _QUOTED.search(line):
            out.append(_QUOTED.sub(quoted, line) if attributed or theirs or spoken else line)
        elif spoken and (theirs or ">" not in spoken[1]) and _plain(spoken[2]) not in words:
            out.append(f"{spoken[1].replace('>', '')}{spoken[2]} (not their words)")
        else:
            out.append(line)
        # A quotation may stand on the lines below the one that says whose it is.
        begins = attributed and line.rstrip().endswith((":", "："))
        theirs = begins or (theirs and (not line.strip() or ">" in line[:3]))
    return "\n".join(out)


def _plain(text: str) -> str:
    return " ".join(text.split()).strip("\"'. ").casefold()
