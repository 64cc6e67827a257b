"""ContextEngine: the one owner of what was said and of what is shown.

`append` makes a record durable and then lets it count. `compact_if_needed` and `reactive_compact` fold;
`build_model_view` gives exactly what the next request shows. Nothing in a step walks the history: the view grows by
what is new.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.context import door
from runtime.context.budget import CompactDecision, ContextBudgetPolicy, ContextSettings
from runtime.context.compact import CompactOutcome, ContextCompactor
from runtime.context.compact_store import CompactStore
from runtime.context.draft import Draft, SummaryFailed
from runtime.context.estimate import TokenEstimator
from runtime.context.fates import fate, since_answer
from runtime.context.history import HistoryManager
from runtime.context.images import data_url
from runtime.context.projection import Patch, ProjectionBuilder, View, canonical
from runtime.context.recall import Recall
from runtime.model import Answer, Model, ModelError, ModelView
from transcripts.log import Entry, LogWriteError, TranscriptLog
from transcripts.records import Assistant, Checkpoint, Record, Request, ToolResult, Unfold, Usage, User

_PATIENCE = 2
"""Summaries that may fail one after the other before folds stop asking for them."""


@dataclass(frozen=True)
class ContextReport:
    """What fills the window: (label, tokens) from the front of the request to its end, and what is out of view."""

    parts: list[tuple[str, int]]
    window: int
    window_source: str
    trigger: int
    estimate: int
    checkpoint: Checkpoint | None
    fates: dict[int, str] = field(default_factory=dict)


class ContextEngine:
    """Holds the log, the history, the folds and the view of one session.

    `system` and `specs` (tool schemas) are fixed for the session: they stand at the head of every request.
    """

    def __init__(
        self,
        log: TranscriptLog,
        *,
        system: str,
        specs: Sequence[dict[str, Any]] = (),
        settings: ContextSettings | None = None,
        on_write: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        self.log = log
        self.settings = settings or ContextSettings()
        self.estimator = TokenEstimator(self.settings.chars_per_token)
        self.history = HistoryManager()
        self.store = CompactStore()
        self.projection = ProjectionBuilder(self.estimator, lambda image: data_url(image, log.blobs))
        self.compactor = ContextCompactor(self.store, self.projection)
        self.pinned: frozenset[int] = frozenset()
        self.window = 128_000
        self.window_source = "default"
        self._on_write = on_write
        self._owed: list[Record] = []
        self._opened_at = log.entries[-1].seq if log.entries else 0
        self._summary_failures = 0
        self._futile = 0
        self._set_fixed(system, specs)
        self._reset_view()
        for entry in log.entries:
            self._take(entry)

    # -- the log ----------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> Entry:
        """Makes a record durable, then lets it count. Raises LogWriteError; nothing has happened then, but an answer,
        a result or a line typed meanwhile is kept and written as soon as it can be."""
        try:
            entry = self.log.append(record)
        except LogWriteError:
            steered = isinstance(record, User) and record.source == "steered"
            if (steered or isinstance(record, (Assistant, ToolResult))) and record not in self._owed:
                self._owed.append(record)
            raise
        self._take(entry)
        self._on_write(entry)
        return entry

    def append_result(self, result: ToolResult, keep: str = "both") -> Entry:
        """Appends a call's result; what is over its share of the window is spilled to a blob first."""
        if door.too_large(result.text, self.policy.share):
            blob = result.blob or self.log.blobs.put(result.text.encode("utf-8", "surrogatepass"))
            words = door.shown(result.text, self.policy.share, blob, keep)
            result = replace(result, text=words, blob=blob, chars=len(result.text))
        return self.append(result)

    def close_open_calls(self) -> list[Entry]:
        """Gives every call that Ctrl-C or a crash left open its answer, and writes down what a full disk would not
        take. The only place that does. Raises LogWriteError."""
        while self._owed:
            self.append(self._owed[0])
            del self._owed[0]
        calls = self.history.open_calls()
        if not calls:
            return []
        answer = self.history.last("assistant")
        started, lost = since_answer(self.log.entries, answer)
        crashed = answer <= self._opened_at
        return [self.append(fate(c, started.get(c.id), lost=lost, crashed=crashed)) for c in calls]

    def _take(self, entry: Entry) -> None:
        self.history.append(entry)
        self.store.append(entry)
        if entry.kind in ("checkpoint", "unfold", "rewind"):
            self._reset_view()
        elif entry.kind == "note" and entry.record.key == "pins":
            self.pinned = frozenset(entry.record.value)
        elif entry.kind == "usage" and entry.record.purpose == "step":
            self._learn(entry.record)
        elif entry.kind == "request" and entry.record.purpose == "step":
            self._asked = (entry.record.messages, entry.record.units)

    # -- the view ---------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> ContextBudgetPolicy:
        """The budget for the window as it is known now."""
        return ContextBudgetPolicy(self.settings, self.window)

    def set_window(self, tokens: int, source: str) -> None:
        """The window of the model in use, and who said so."""
        self.window, self.window_source = tokens, source

    def build_model_view(self) -> ModelView:
        """Exactly what the next request shows. The previous view is its head, until a checkpoint."""
        view = self._current()
        return ModelView(
            system=self.system,
            messages=tuple(view.messages),
            tools=self.specs,
            sha=view.sha(self._fixed),
            estimate=self.estimate(),
            checkpoint=self._patch.checkpoint.id if self._patch.checkpoint else "",
        )

    def record_request(
        self, view: ModelView, model: str, purpose: str = "step", words: str = "", head: int = 0
    ) -> Entry:
        """Notes what is about to be sent, so that it can be rebuilt and compared. One that is no step shows the first
        `head` messages of the view with `words` behind them."""
        units = round(self._current().units + self._fixed_units, 1)
        return self.append(
            Request(
                view.sha, self._system_id, self._tools_id, model, view.estimate, purpose, len(view.messages), units,
                view.checkpoint, words, head, dict(view.params),
            )
        )  # fmt: skip

    def estimate(self) -> int:
        """Tokens of the whole request: the larger of (last reported usage + what came since) and the weighed text."""
        units = self._current().units + self._fixed_units
        weighed = self.estimator.tokens(units)
        if self._anchor is None:
            return weighed
        tokens, anchor_units = self._anchor
        return max(weighed, tokens + self.estimator.tokens(max(0.0, units - anchor_units)))

    def floor(self) -> int:
        """Tokens that are sent whatever is folded: system prompt and tools."""
        return self.estimator.tokens(self._fixed_units)

    def _current(self) -> View:
        """The view, grown by what is new. Called only when no call is open, so steps are whole."""
        if self._view is None:
            self._view = self.projection.project(self.history.messages, self._patch.checkpoint).view
        elif self._shown < len(self.history):
            for step in self.projection.segmenter.steps(self.history.messages[self._shown :]):
                self.projection.extend(self._view, step, self._patch)
        self._shown = len(self.history)
        return self._view

    def _reset_view(self) -> None:
        self._view: View | None = None
        self._shown = 0
        self._patch = Patch(self.store.active_checkpoint)
        self._anchor: tuple[int, float] | None = None
        self._asked: tuple[int, float] | None = None

    def _set_fixed(self, system: str, specs: Sequence[dict[str, Any]]) -> None:
        self.system, self.specs = system, tuple(specs)
        tools = canonical(list(specs))
        self._fixed = canonical(system) + tools
        self._fixed_units = self.estimator.units(system) + self.estimator.units(tools.decode()) + 8
        self._system_id = self.log.blobs.put(system.encode("utf-8", "replace"))
        self._tools_id = self.log.blobs.put(json.dumps(list(specs), ensure_ascii=False).encode())

    def _learn(self, usage: Usage) -> None:
        if not usage.input or self._asked is None:
            return
        self.estimator.observe(self._asked[1], usage.input)
        self._anchor = (usage.input, self._asked[1])

    # -- folding ----------------------------------------------------------------------------------------------------

    def should_compact(self) -> CompactDecision:
        """Whether the next request is over the trigger. Where a fold was no use, the next is tried only after the view
        has grown by a twentieth of the window."""
        estimate = self.estimate()
        decision = self.policy.should_compact(estimated_tokens=estimate, message_count=len(self.history))
        if decision.should_compact and self._futile and estimate < self._futile + self.window // 20:
            return replace(decision, should_compact=False, reason="futile")
        return decision

    async def compact_if_needed(self, model: Model | None) -> CompactOutcome | None:
        """Folds if the next request is over the trigger; None where it is not."""
        if not self.should_compact().should_compact:
            return None
        return await self.compact(model, cause="threshold")

    async def reactive_compact(self, model: Model | None, error: ModelError | None = None) -> CompactOutcome:
        """Folds after a refusal: the refusal is believed, not the estimate. Needs no model."""
        estimate = self.estimate()
        if error is not None and error.used:
            self.estimator.observe(self._current().units + self._fixed_units, error.used)
            estimate = max(estimate, error.used)
        limit = error.limit if error is not None and error.limit else min(self.window, int(estimate * 0.9))
        if limit < self.window:
            self.set_window(limit, "learned from a refusal")
        return await self.compact(model, cause="prompt_too_long")

    async def compact(self, model: Model | None, *, cause: str = "asked", focus: str = "") -> CompactOutcome:
        """Thinks a fold out and commits it with one record; where it is no progress, nothing changes."""
        outcome = await self.plan(model, cause=cause, focus=focus)
        if outcome.checkpoint is not None:
            self.append(outcome.checkpoint)
        self._futile = 0 if outcome.checkpoint else self.estimate()
        return outcome

    def undo_fold(self) -> Checkpoint | None:
        """Drops the active fold with a record of its own; the view is what it was before. None where there is none."""
        active = self.store.active_checkpoint
        if active is not None:
            self.append(Unfold(active.id))
        return active

    async def plan(self, model: Model | None, *, cause: str = "asked", focus: str = "") -> CompactOutcome:
        """The fold that `compact` would commit, without committing it."""
        before = self.estimate()
        goal = self.policy.goal(before, self.floor())
        asks = model is not None and self.settings.summarise and self._summary_failures < _PATIENCE
        draft = Draft(
            messages=self.history.messages,
            active=self._patch.checkpoint,
            policy=self.policy,
            estimator=self.estimator,
            system_units=self._fixed_units,
            goal=goal,
            pinned=self.pinned,
            summarise=(lambda words: self._summary(model, words)) if asks else None,
            focus=focus,
        )
        return await self.compactor.compact(draft, self.history.messages, cause=cause, before=before)

    async def _summary(self, model: Model | None, words: str) -> str:
        """Notes by the model: the request it has just seen with one instruction appended, so that its cache serves."""
        assert model is not None
        try:
            async with asyncio.timeout(self.settings.summary_timeout):
                notes = await self._ask_for_notes(model, words)
        except TimeoutError as error:
            self._summary_failures += 1
            raise SummaryFailed(f"timed out after {self.settings.summary_timeout:g} s") from error
        except ModelError as error:
            self._summary_failures += 1
            raise SummaryFailed(error.message) from error
        except SummaryFailed:
            self._summary_failures += 1
            raise
        self._summary_failures = 0
        return notes

    async def _ask_for_notes(self, model: Model, words: str) -> str:
        most = max(256, self.window // 20)
        head = _head_that_fits(self._current(), self._room(most))
        view = notes_view(self._current(), words, head)
        request = ModelView(
            system=self.system, messages=tuple(view.messages), tools=self.specs, sha=view.sha(self._fixed),
            estimate=self.estimator.tokens(view.units + self._fixed_units),
            params={"max_tokens": most, "tool_choice": "none"},
        )  # fmt: skip
        self.record_request(request, model.name, "summary", words, head)
        answer = None
        async for event in model.stream(request):
            answer = event if isinstance(event, Answer) else answer
        if answer is None:
            raise SummaryFailed("no answer")
        self.append(replace(answer.usage, purpose="summary"))
        return _usable(answer.message, most * 8)

    def _room(self, output: int) -> float:
        """Units that a request for notes may have before its instruction."""
        return (self.window - output - self.window // 32) / self.estimator.factor - self._fixed_units - 200

    # -- what is out of view ----------------------------------------------------------------------------------------

    def recall(self, id: str = "", query: str = "", path: str = "", start: int = 1, count: int = 0) -> str:
        """Shows what left the view. Raises ValueError in words for the model."""
        reader, share = Recall(self.log.blobs), self.policy.share - 200
        if id:
            return reader.by_id(self.history.messages, id, start, count, share)
        if not (query or path):
            raise ValueError("Say what to look for: id, query or path.")
        return reader.search(self.history.messages, self.fates(), query, path, share)

    def fates(self) -> dict[int, str]:
        """What became of each message: shown, stub, covered, left out: reason. The sum is the history."""
        return self.projection.fates(self.history.messages, self._patch.checkpoint)

    def report(self) -> ContextReport:
        """What fills the window, for the person."""
        sizes = {"system": self.estimator.units(self.system), "tools": 0.0, "user": 0.0, "assistant": 0.0, "tool": 0.0}
        sizes["tools"] = self._fixed_units - sizes["system"]
        for message in self._current().messages:
            one = View(self.estimator)
            one.add(message)
            sizes[message["role"]] += one.units
        names = {
            "user": "your words",
            "assistant": "answers",
            "tool": "tool results",
            "system": "system",
            "tools": "tools",
        }
        parts = [(names[k], self.estimator.tokens(v)) for k, v in sizes.items() if v]
        return ContextReport(
            parts, self.window, self.window_source, self.policy.trigger, self.estimate(), self._patch.checkpoint,
            self.fates(),
        )  # fmt: skip


def notes_view(current: View, words: str, head: int) -> View:
    """The first `head` messages of a view with an instruction behind them."""
    view = current.copy()
    if head < len(current.messages):
        view = View(current.estimator)
        for message in current.messages[:head]:
            view.add(message)
    view.add({"role": "user", "content": words})
    return view


def _head_that_fits(current: View, room: float) -> int:
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


def _usable(message: Assistant, most: int) -> str:
    """Notes that may be kept. Raises SummaryFailed for a blank or cut-off answer."""
    text = message.text.strip()
    if message.finish == "length":
        raise SummaryFailed("the answer was cut off")
    if len(text) < 20:
        raise SummaryFailed("the answer was blank")
    return text[:most]
