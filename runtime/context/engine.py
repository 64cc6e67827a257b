"""ContextEngine: the one owner of what was said and of what is shown.

`append` makes a record durable and then lets it count. `compact_if_needed` and `reactive_compact` fold;
`build_model_view` gives exactly what the next request shows. Nothing in a step walks the history: the view grows by
what is new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from runtime.context import door
from runtime.context.budget import CompactDecision, ContextBudgetPolicy, ContextSettings
from runtime.context.compact import CompactOutcome, ContextCompactor
from runtime.context.compact_store import CompactStore
from runtime.context.draft import Draft
from runtime.context.estimate import TokenEstimator
from runtime.context.fates import fate, since_answer
from runtime.context.history import HistoryManager
from runtime.context.images import data_url
from runtime.context.meter import Meter
from runtime.context.notes import NoteTaker
from runtime.context.price import PAYS_WITHIN, PRUNING_LOSS, break_even, is_cold, suffix_units
from runtime.context.projection import Patch, ProjectionBuilder, View, canonical
from runtime.context.recall import Recall
from runtime.context.redact import Redactor, without_keys
from runtime.context.shape import problems
from runtime.model import Model, ModelError, ModelView
from transcripts.log import Entry, LogWriteError, TranscriptLog
from transcripts.records import Assistant, Checkpoint, Image, Note, Record, Request, ToolResult, Unfold, User

_FOLDS = frozenset({"checkpoint", "unfold", "rewind"})
_FIGURES = frozenset({"request", "usage"})
LEARNED = "learned from a refusal"
"""The source of a window that is smaller than the model's because of what the server did."""
_LEARNED = 128
"""Requests, usages and folds that a resume looks at; what older ones would teach has faded by then."""


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
        redactor: Redactor | None = None,
    ) -> None:
        self.log = log
        self.settings = settings or ContextSettings()
        self.estimator = TokenEstimator(self.settings.chars_per_token)
        self.meter = Meter(self.estimator)
        self.history = HistoryManager()
        self.store = CompactStore()
        self._dropped: frozenset[str] = frozenset()
        self.projection = ProjectionBuilder(self.estimator, self._resolve)
        self.compactor = ContextCompactor(self.store, self.projection)
        self.pinned: frozenset[int] = frozenset()
        self.window, self.window_source = self._named = 128_000, "default"
        self.redactor = redactor or Redactor()
        self._on_write = on_write
        self._owed: list[Record] = []
        self._opened_at = log.entries[-1].seq if log.entries else 0
        self.notes, self._cap = NoteTaker(self), 0
        self._set_fixed(system, specs)
        self._resume(log.entries)

    # -- the log ----------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> Entry:
        """Makes a record durable, then lets it count. Raises LogWriteError; nothing has happened then, but an answer,
        a result or a line typed meanwhile is kept and written as soon as it can be."""
        try:
            entry = self.log.append(record)
        except LogWriteError:
            steered = isinstance(record, User) and record.source == "steered"
            if steered or isinstance(record, (Assistant, ToolResult)):
                self._owed.append(record)
            raise
        self.take(entry)
        self._on_write(entry)
        return entry

    def append_result(self, result: ToolResult, keep: str = "both") -> Entry:
        """Appends a call's result. Keys are taken out of it first (meta `redacted` counts them); what is over its share
        of the window is spilled to a blob."""
        result = without_keys(result, self.redactor)
        if door.too_large(result.text, self.policy.share):
            try:
                blob = result.blob or self.log.blobs.put(result.text.encode("utf-8", "surrogatepass"))
            except LogWriteError:
                self._owed.append(result)
                raise
            words = door.shown(result.text, self.policy.share, blob, keep)
            result = replace(result, text=words, blob=blob, chars=len(result.text))
        return self.append(result)

    def close_open_calls(self) -> list[Entry]:
        """Gives every call that Ctrl-C or a crash left open its answer, and writes down what a full disk would not
        take. The only place that does. Raises LogWriteError."""
        self._pay()
        calls = self.history.open_calls()
        if not calls:
            return []
        answer = self.history.last("assistant")
        started, lost = since_answer(self.log.entries, answer)
        crashed = answer <= self._opened_at
        return [self.append(fate(c, started.get(c.id), lost=lost, crashed=crashed)) for c in calls]

    def _pay(self) -> None:
        """Writes down what could not be written before."""
        owed, self._owed = self._owed, []
        for n, record in enumerate(owed):
            try:
                self.append_result(record) if isinstance(record, ToolResult) else self.append(record)
            except LogWriteError:
                self._owed = owed[n:]
                raise

    def _resume(self, entries: Sequence[Entry]) -> None:
        """Takes up a log. Of the figures of its requests only the newest matter, so no more of them is read."""
        for entry in entries:
            self._file(entry)
        self._reset_view()
        for entry in [e for e in entries if e.kind in _FIGURES or e.kind in _FOLDS][-_LEARNED:]:
            if entry.kind in _FOLDS:
                self.meter.reset()
            else:
                self.meter.learn(entry.record, self.fixed_units)
        self.meter.take_wronged()  # if it was, the log says so already

    def take(self, entry: Entry) -> None:
        """Lets a record that is in the log count; for `append`, and for whoever reads a log again from the start."""
        self._file(entry)
        if entry.kind in _FOLDS:
            self._reset_view()
        elif entry.kind in _FIGURES:
            self.meter.learn(entry.record, self.fixed_units)

    def _file(self, entry: Entry) -> None:
        self.history.append(entry)
        self.store.append(entry)
        if entry.key == "pins":
            self.pinned, self._futile = frozenset(entry.record.value), 0
        elif entry.kind == "note":
            self._take_note(entry)

    def _take_note(self, entry: Entry) -> None:
        # Most notes are none of ours: they are told by their keys, not read.
        if entry.key in ("window_cap", "model"):
            self._cap = entry.record.value if entry.key == "window_cap" else 0
            if entry.key == "model":
                self.meter.forget()
            self.set_window(*self._named)
        elif entry.key == "images_dropped":
            self._dropped |= frozenset(entry.record.value)
            self._reset_view()
        elif entry.key == "plain":
            self.projection.plain = True
            self._reset_view()

    def _resolve(self, image: Image) -> str:
        return "" if image.blob in self._dropped else data_url(image, self.log.blobs)

    def drop_images(self) -> bool:
        """Shows no picture of the history any more, for a provider that refuses them; False where there is none."""
        messages = (e.record for e in self.history.messages if e.kind != "assistant")
        blobs = {i.blob for record in messages for i in record.images} - self._dropped
        if blobs:
            self.append(Note("images_dropped", sorted(blobs)))
        return bool(blobs)

    def plain_down(self) -> bool:
        """Shows nothing but words, calls and results, without what a provider asked to have back; False where that is
        so already."""
        if self.projection.plain:
            return False
        self.append(Note("plain"))
        return True

    # -- the view ---------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> ContextBudgetPolicy:
        """The budget for the window as it is known now."""
        return ContextBudgetPolicy(self.settings, self.window)

    def set_window(self, tokens: int, source: str) -> None:
        """The window of the model in use, and who said so. One that a refusal has shown to be smaller is believed."""
        before, self._named = self.window, (tokens, source)
        capped = 0 < self._cap < tokens
        self.window, self.window_source = (self._cap, LEARNED) if capped else self._named
        if self.window != before:
            self._futile = 0

    def build_model_view(self) -> ModelView:
        """Exactly what the next request shows. The previous view is its head, until a checkpoint."""
        view = self.current()
        return ModelView(
            system=self.system,
            messages=tuple(view.messages),
            tools=self.specs,
            sha=view.sha(self.fixed),
            estimate=self.estimate(),
            checkpoint=self._patch.checkpoint.id if self._patch.checkpoint else "",
        )

    def record_request(
        self, view: ModelView, model: str, purpose: str = "step", words: str = "", head: int = 0
    ) -> Entry:
        """Notes what is about to be sent, so that it can be rebuilt and compared. One that is no step shows the first
        `head` messages of the view with `words` behind them. What a strict provider would refuse in it is a fault of
        ours: a note `shape` says so, and the request is made all the same."""
        if purpose == "step":
            self._check_shape(view)
        if self.meter.take_wronged():
            self.append(Note("window_cap", 0))
        elif 0 < self._cap < self.meter.proved:
            self.append(Note("window_cap", self.meter.proved))  # more than that has been taken since
        units = round(self.current().units + self.fixed_units, 1)
        return self.append(
            Request(
                view.sha, self._system_id, self._tools_id, model, view.estimate, purpose, len(view.messages), units,
                view.checkpoint, words, head, dict(view.params), self.window,
            )
        )  # fmt: skip

    def _check_shape(self, view: ModelView) -> None:
        """Looks at what is new since the last request; a message of the user's at the end may still grow."""
        found = problems(view.messages, self._checked)
        ends = bool(view.messages) and view.messages[-1]["role"] == "user"
        self._checked = len(view.messages) - ends
        if found:
            self.append(Note("shape", found[:10]))

    def estimate(self) -> int:
        """Tokens of the whole request: the larger of (last reported usage + what came since) and the weighed text."""
        return self.meter.tokens(self.current().units + self.fixed_units)

    def floor(self) -> int:
        """Tokens that are sent whatever is folded: system prompt and tools."""
        return self.estimator.tokens(self.fixed_units)

    def current(self) -> View:
        """The view, grown by what is new. A step whose calls still wait for results is not in it yet."""
        messages, whole = self.history.messages, self._whole()
        if self._view is None:
            self._view = self.projection.project(messages[:whole], self._patch.checkpoint).view
        elif self._shown < whole:
            for step in self.projection.segmenter.steps(messages[self._shown : whole]):
                self.projection.extend(self._view, step, self._patch)
        self._shown = whole
        return self._view

    def _whole(self) -> int:
        """How many messages stand before the first call that waits for its result."""
        if not self.history.open_calls():
            return len(self.history)
        return self.history.index(self.history.last("assistant"))

    def _reset_view(self) -> None:
        self._view: View | None = None
        self._shown = self._checked = self._dear = 0
        self._patch = Patch(self.store.active_checkpoint)
        self._futile = 0
        self.meter.reset()

    def _set_fixed(self, system: str, specs: Sequence[dict[str, Any]]) -> None:
        self.system = system
        self.specs: Sequence[dict[str, Any]] = tuple(specs)
        tools = canonical(list(specs))
        self.fixed = canonical(system) + tools
        self.fixed_units = self.estimator.units(system) + self.estimator.units(tools.decode()) + 8
        self._system_id = self.log.blobs.put(system.encode("utf-8", "replace"))
        self._tools_id = self.log.blobs.put(json.dumps(list(specs), ensure_ascii=False).encode())

    # -- folding ----------------------------------------------------------------------------------------------------

    def should_compact(self) -> CompactDecision:
        """Whether the next request is over the trigger. Where a fold was no use, the next is tried only after the view
        has grown by a twentieth of the window."""
        estimate = self.estimate()
        decision = self.policy.should_compact(estimated_tokens=estimate, message_count=len(self.history))
        if self.meter.cut_at:
            return replace(decision, should_compact=True, reason="silently_cut")
        if decision.should_compact and self._futile and estimate < self._futile + self.window // 20:
            return replace(decision, should_compact=False, reason="futile")
        return decision

    async def compact_if_needed(self, model: Model | None) -> CompactOutcome | None:
        """Folds if the next request is over the trigger; None where it is not."""
        if not self.should_compact().should_compact:
            return None
        if self.meter.cut_at:
            self.append(Note("window_cap", self.meter.cut_at))
            self.meter.cut_at = 0
            return await self.compact(model, cause="the server silently cut the last request")
        return await self.compact(model, cause="threshold")

    async def reactive_compact(self, model: Model | None, error: ModelError | None = None) -> CompactOutcome:
        """Folds after a refusal: the refusal is believed, not the estimate. Needs no model."""
        estimate = self.estimate()
        if error is not None and error.used:
            self.estimator.observe(self.current().units + self.fixed_units, error.used)
            estimate = max(estimate, error.used)
        limit = self.named_window(error) or self.meter.window_after_refusal(self.window, estimate, self.floor())
        if limit < self.window:
            self.append(Note("window_cap", limit))
        return await self.compact(model, cause="prompt_too_long")

    def named_window(self, error: ModelError | None) -> int:
        """The window that a refusal names, in tokens; 0 where it names none that can be believed."""
        limit = error.limit if error is not None else None
        return limit if limit and self.meter.believes(limit, self.floor()) else 0

    async def compact(self, model: Model | None, *, cause: str = "asked", focus: str = "") -> CompactOutcome:
        """Thinks a fold out and commits it with one record; where it is no progress, nothing changes."""
        shaped = self._patch
        outcome = await self.plan(model, cause=cause, focus=focus)
        if self._patch is not shaped:  # somebody brought a message back while the model wrote its notes
            outcome = await self.plan(None, cause=cause)
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

    def pin(self, seq: int, on: bool = True) -> None:
        """Keeps a message in the view whatever is folded, or no longer. Raises ValueError where there is none; what is
        pinned and was rewound over can be let go."""
        if self.history.get(seq) is None and (on or seq not in self.pinned):
            raise ValueError(f"There is no message #{seq}.")
        self.append(Note("pins", sorted(self.pinned | {seq} if on else self.pinned - {seq})))

    async def prune_when_cheap(self) -> CompactOutcome | None:
        """Before a turn: lets old results go early where that costs nothing (the provider's cache is cold) or soon pays
        for itself. None where it is not worth it; with a warm cache it is then weighed again only after the view has
        grown by a twentieth of the window."""
        estimate, cold = self.estimate(), is_cold(self.log.entries)
        if estimate <= self.policy.target or self.should_compact().reason != "below_threshold":
            return None
        if not cold and self._dear and estimate < self._dear + self.window // 20:
            return None
        self._dear = estimate
        cause = "the provider's cache is cold" if cold else "it soon pays for itself"
        outcome = await self.plan(None, cause=cause, most_loss=PRUNING_LOSS)
        if outcome.checkpoint is None:
            return None
        after = self.projection.project(self.history.messages, outcome.checkpoint).view
        suffix = suffix_units(self.current().messages, after.messages, self.estimator)
        if not cold and break_even(suffix, self.current().units - after.units) > PAYS_WITHIN:
            return None
        self.append(outcome.checkpoint)
        return outcome

    async def plan(
        self, model: Model | None, *, cause: str = "asked", focus: str = "", most_loss: int = 100
    ) -> CompactOutcome:
        """The fold that `compact` would commit, without committing it; only by strategies up to `most_loss`."""
        before = self.estimate()
        goal = self.policy.goal(before, self.floor())
        draft = Draft(
            messages=self.history.messages, active=self._patch.checkpoint, policy=self.policy,
            estimator=self.estimator, system_units=self.fixed_units, goal=goal, pinned=self.pinned,
            summarise=self.notes.writer(model, asked=cause == "asked"), focus=focus,
        )  # fmt: skip
        # Where the goal is out of reach: under the trigger work goes on, and less than was refused may be taken.
        limit = 0 if most_loss < 100 else before if cause == "prompt_too_long" else self.policy.trigger
        return await self.compactor.compact(
            draft, self.history.messages, cause=cause, before=before, most_loss=most_loss, limit=limit
        )

    # -- what is out of view ----------------------------------------------------------------------------------------

    def recall(self, id: str = "", query: str = "", path: str = "", start: int = 1, count: int = 0) -> str:
        """Shows what left the view. Raises ValueError in words for the model."""
        reader, share = Recall(self.log.blobs), self.policy.share - 200
        if id:
            return reader.by_id(self.history.messages, id, start, count, share)
        return reader.search(self.history.messages, self.fates(), query, path, share)

    def fates(self) -> dict[int, str]:
        """What became of each message: shown, stub, covered, left out: reason. The sum is the history."""
        return self.projection.fates(self.history.messages, self._patch.checkpoint)
