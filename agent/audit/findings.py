"""The audit of a session: what each answer could not see, what each fold cost, and what went wrong afterwards that
would not have gone wrong with everything in view. Told from the log alone; nothing is written and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from agent.audit.signs import Finding, Place, Signs
from runtime.context.compact_store import CompactStore
from runtime.context.estimate import TokenEstimator, units
from runtime.context.history import HistoryManager
from runtime.context.projection import ProjectionBuilder
from runtime.context.recall import found_nothing
from transcripts.log import Entry, TranscriptLog
from transcripts.records import Checkpoint, ToolCall, Usage

_ENDS_A_VIEW = ("checkpoint", "unfold", "rewind")


@dataclass(frozen=True)
class Stretch:
    """Answers `first` to `last` (from 1; 0 where there was none), all given under one view. `unseen`: what became
    of messages -> their numbers, as ranges; messages that were shown whole are not in it. `tokens`: what
    they would take, about; `messages`: how many there were when it began."""

    fold: str
    messages: int
    tokens: int
    counts: Mapping[str, int]
    unseen: Mapping[str, str]
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Asked:
    """One request and the answer to it. `seq`: number of the request's record, `answer` of the answer's (0: none came).
    Tokens: as estimated before and as reported after, None where nothing was reported. `stretch`: which view."""

    seq: int
    purpose: str
    stretch: int
    window: int
    estimate: int
    answer: int = 0
    input: int | None = None
    cached: int | None = None
    output: int | None = None


@dataclass(frozen=True)
class Fold:
    """One fold. Tokens are estimates of the whole request, but for `uncached_after`: what the provider had to read anew
    at the next request, as reported. `recalled`: what the model asked back before the next fold. `notes_*`: what the
    request for notes cost. `answers`: how many came before the view changed again."""

    id: str
    seq: int
    at: str
    cause: str
    strategies: tuple[str, ...]
    before: int
    after: int
    shrink: float
    notes: str
    kept: Mapping[str, int]
    undone: bool = False
    answers: int = 0
    uncached_after: int | None = None
    cached_after: int | None = None
    notes_input: int | None = None
    notes_cached: int | None = None
    notes_seconds: float = 0.0
    recalled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """Everything the audit found, in the order of the session."""

    session: str
    model: str
    window: int
    records: int
    stretches: tuple[Stretch, ...]
    requests: tuple[Asked, ...]
    folds: tuple[Fold, ...]
    findings: tuple[Finding, ...]
    rates: Mapping[str, float] = field(default_factory=dict)
    """Parts of one: folds soon followed by a re-read (the same for commands and questions), input that was cached,
    cached input of the requests for notes."""


def audit(log: TranscriptLog) -> Audit:
    """Audits a log that was opened for reading."""
    walk = _Walk()
    for entry in log.entries:
        walk.take(entry)
    return walk.result(log)


class _Walk:
    """Reads the records in their order and keeps what the model saw at each point."""

    def __init__(self) -> None:
        self.history, self.store, self.signs = HistoryManager(), CompactStore(), Signs()
        self.projection = ProjectionBuilder(TokenEstimator(), lambda image: "")
        self.stretches: list[Stretch] = []
        self.requests: list[Asked] = []
        self.folds: list[Fold] = []
        self.calls: dict[str, ToolCall] = {}
        self.session = self.model = ""
        self.window = self.answers = 0
        self._notes: Usage | None = None
        self._by_kind: dict[str, Callable[[Entry], None]] = {
            "session": self._session, "request": self._request, "assistant": self._assistant, "usage": self._usage,
            "checkpoint": self._checkpoint, "unfold": self._unfold, "user": self._user, "tool_result": self._result,
        }  # fmt: skip
        self._open_view()

    def take(self, entry: Entry) -> None:
        """One more record."""
        self.history.append(entry)
        self.store.append(entry)
        found = self._by_kind.get(entry.kind)
        if found is not None:
            found(entry)
        if entry.kind in _ENDS_A_VIEW:
            self._open_view()

    def _open_view(self) -> None:
        active = self.store.active_checkpoint
        fates = self.projection.fates(self.history.messages, active) if active else {}
        self.stretches.append(_stretch(self.history, active, fates))
        self.signs.place = Place(active, {seq: fate for seq, fate in fates.items() if fate != "shown"})

    # -- by kind of record --------------------------------------------------------------------------------------------

    def _session(self, entry: Entry) -> None:
        self.session, self.model = entry.record.id, entry.record.model

    def _request(self, entry: Entry) -> None:
        record = entry.record
        self.window, self.model = record.window or self.window, record.model or self.model
        here = len(self.stretches) - 1
        self.requests.append(Asked(entry.seq, record.purpose, here, record.window, record.estimate))

    def _assistant(self, entry: Entry) -> None:
        self.answers += 1
        self.calls.update({call.id: call for call in entry.record.calls})
        self._amend_request("step", answer=entry.seq)
        last = self.stretches[-1]
        self.stretches[-1] = replace(last, first=last.first or self.answers, last=self.answers)
        if self.folds:
            self.folds[-1] = replace(self.folds[-1], answers=self.folds[-1].answers + 1)
        self.signs.answered(self.answers, entry)

    def _usage(self, entry: Entry) -> None:
        record: Usage = entry.record
        self._amend_request(record.purpose, input=record.input, cached=record.cached, output=record.output)
        if record.purpose != "step":
            self._notes = record
        elif self.folds and self.folds[-1].answers == 1 and record.input is not None and record.cached is not None:
            uncached = record.input - record.cached
            self.folds[-1] = replace(self.folds[-1], uncached_after=uncached, cached_after=record.cached)

    def _checkpoint(self, entry: Entry) -> None:
        fold, notes, self._notes = _fold(entry), self._notes, None
        if notes is not None:
            fold = replace(
                fold, notes_input=notes.input, notes_cached=notes.cached, notes_seconds=round(notes.seconds, 3)
            )
        self.folds.append(fold)

    def _unfold(self, entry: Entry) -> None:
        undone = entry.record.checkpoint
        self.folds = [replace(f, undone=True) if f.id == undone else f for f in self.folds]

    def _user(self, entry: Entry) -> None:
        self.signs.said(entry)

    def _result(self, entry: Entry) -> None:
        call = self.calls.get(entry.record.call_id)
        came = entry.record.name == "recall" and entry.record.status == "ok" and not found_nothing(entry.record.text)
        if came and self.folds:
            words = ", ".join(f"{k}={v}" for k, v in call.args.items()) if call else "?"
            self.folds[-1] = replace(self.folds[-1], recalled=(*self.folds[-1].recalled, f"#{entry.seq} {words}"))
        self.signs.done(entry, call)

    def _amend_request(self, purpose: str, **values: Any) -> None:
        for n in range(len(self.requests) - 1, max(-1, len(self.requests) - 4), -1):
            if self.requests[n].purpose == purpose:
                self.requests[n] = replace(self.requests[n], **values)
                return

    # -- the whole ----------------------------------------------------------------------------------------------------

    def result(self, log: TranscriptLog) -> Audit:
        """The audit of all that was taken."""
        findings = tuple(self.signs.all())
        requests, folds = tuple(self.requests), tuple(self.folds)
        return Audit(
            session=log.path.stem if log.path else self.session,
            model=self.model,
            window=self.window,
            records=len(log.entries),
            stretches=tuple(s for s in self.stretches if s.first),
            requests=tuple(_renumbered(requests, self.stretches)),
            folds=folds,
            findings=findings,
            rates={k: round(v, 4) for k, v in _rates(requests, folds, findings)},
        )


def _stretch(history: HistoryManager, active: Checkpoint | None, fates: Mapping[int, str]) -> Stretch:
    """The view that begins here: neighbours in the history with one fate are one range."""
    spans: dict[str, list[str]] = {}
    for fate, run in groupby(sorted(fates), key=fates.__getitem__):
        seqs = list(run)
        spans.setdefault(fate, []).append(f"#{seqs[0]}" if len(seqs) == 1 else f"#{seqs[0]} to #{seqs[-1]}")
    spans.pop("shown", None)
    texts = (entry.record.text for seq, fate in fates.items() if fate != "shown" and (entry := history.get(seq)))
    return Stretch(
        fold=active.id if active else "",
        messages=len(history),
        tokens=int(sum(units(text) for text in texts)),
        counts={fate: sum(f == fate for f in fates.values()) for fate in spans},
        unseen={fate: ", ".join(parts) for fate, parts in spans.items()},
    )


def _fold(entry: Entry) -> Fold:
    c: Checkpoint = entry.record
    shrink = round(1 - c.tokens_after / c.tokens_before, 4) if c.tokens_before else 0.0
    return Fold(
        c.id, entry.seq, entry.at, c.cause, c.strategies, c.tokens_before, c.tokens_after, shrink, c.notes_status,
        c.meta.get("retained", {}),
    )  # fmt: skip


def _renumbered(requests: Sequence[Asked], stretches: Sequence[Stretch]) -> Iterator[Asked]:
    """Requests with the places of their stretches among those that had an answer; -1 for others."""
    places = {n: place for place, n in enumerate(n for n, s in enumerate(stretches) if s.first)}
    yield from (replace(r, stretch=places.get(r.stretch, -1)) for r in requests)


def _rates(
    requests: Sequence[Asked], folds: Sequence[Fold], findings: Sequence[Finding]
) -> Iterator[tuple[str, float]]:
    if folds:
        for kind in ("re-read", "same command", "same question"):
            yield f"folds followed by: {kind}", len({f.fold for f in findings if f.kind == kind}) / len(folds)
    for purpose, name in (("step", "input that was cached"), ("summary", "input for notes that was cached")):
        known = [r for r in requests if r.purpose == purpose and r.input and r.cached is not None]
        if known:
            yield name, sum(r.cached or 0 for r in known) / sum(r.input or 0 for r in known)
