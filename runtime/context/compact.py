"""ContextCompactor: one fold as one transaction. Strategies by rising cost of loss until it fits; then the fold is
checked, and only then is it a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.context.compact_store import CompactStore
from runtime.context.discard import Discard, all_strategies
from runtime.context.draft import Draft
from runtime.context.facts import Section, empty_facts, gather, state_block, state_sections, told_paths
from runtime.context.notes import without_fences
from runtime.context.projection import Patch, ProjectionBuilder, message_units, place, preface
from runtime.context.retention import Retained, measure, must_keep, text_of
from runtime.context.shape import problems
from transcripts.log import Entry
from transcripts.records import Checkpoint, clean

LEAST_SHRINK = 0.25
"""A fold that frees less than this part of what can leave is no progress: it would come again after a few steps."""

RESCUE_LOSS = 30
"""Loss up to which strategies need no model."""

NOTES_SHARE = 0.10
"""Part of the window that notes may fill, however long they are: twice what was asked for."""


@dataclass(frozen=True)
class CompactOutcome:
    """A fold that may be committed, or why there is none. `floor`: what cannot leave, in tokens."""

    checkpoint: Checkpoint | None
    reason: str
    floor: dict[str, int] = field(default_factory=dict)


class ContextCompactor:
    """Thinks a fold out. Writes nothing: whoever called it appends the checkpoint, and that record is the commit."""

    def __init__(self, store: CompactStore, projection: ProjectionBuilder, strategies: Sequence[Discard] = ()) -> None:
        self.store = store
        self.projection = projection
        self.strategies = list(strategies) or all_strategies()

    async def compact(
        self, draft: Draft, messages: Sequence[Entry], *, cause: str, before: int, most_loss: int = 100, limit: int = 0
    ) -> CompactOutcome:
        """Runs the ladder over a draft, up to `most_loss`. Tokens: `before` of the request as it stands, `limit` under
        which a fold is better than none where the goal is out of reach."""
        ran: list[str] = []
        await self._run(draft, most_loss, ran)
        outcome = self._checked(draft, messages, cause, before, ran)
        over = sum(outcome.floor.values()) - draft.goal
        if over > 0:
            # What stands between the steps was more than was held free for it. No model is asked a second time.
            draft.fixed += over / draft.estimator.factor
            await self._run(draft, min(most_loss, RESCUE_LOSS), ran)
            outcome = self._checked(draft, messages, cause, before, ran, limit)
        return outcome

    async def _run(self, draft: Draft, most_loss: int, ran: list[str]) -> None:
        for strategy in self.strategies:
            if strategy.loss > most_loss or not strategy.wanted(draft):
                continue
            size, notes = draft.tokens, draft.notes_upto
            await strategy.discard(draft)
            if strategy.name not in ran and (draft.tokens < size or draft.notes_upto > notes):
                ran.append(strategy.name)

    def _checked(
        self, draft: Draft, messages: Sequence[Entry], cause: str, before: int, ran: list[str], limit: int = 0
    ) -> CompactOutcome:
        old = draft.active.meta.get("facts") if draft.active else None
        old = old or empty_facts()
        facts = gather(old, messages[place(messages, old["upto"] + 1) :])
        values = {
            **draft.patch_values(), "cause": cause, "strategies": tuple(ran), "tokens_before": before,
            "notes_status": draft.notes_status, "meta": {"facts": facts},
        }  # fmt: skip
        trial = _Trial(self.projection, draft, messages, self.store.create_checkpoint(**values))
        trial.settle(facts)
        fixed, after = draft.estimator.tokens(draft.system_units), trial.tokens
        floor = {"system and tools": fixed, "what has to stay": after - fixed}
        if after > max(draft.goal, limit):
            return CompactOutcome(None, f"it cannot be brought under {draft.goal:,} tokens (best: {after:,})", floor)
        if after - fixed > (before - fixed) * (1 - LEAST_SHRINK):
            return CompactOutcome(None, f"it would free too little ({before:,} to {after:,} tokens)", floor)
        if wrong := problems(trial.view.messages):
            return CompactOutcome(None, f"the folded view is malformed ({wrong[0]}); this is a bug of refold", floor)
        return CompactOutcome(replace(trial.checkpoint, tokens_after=after), "folded", floor)


class _Trial:
    """A checkpoint that is tried: with as much of the state as the goal has room for, and what survived.

    The tries differ in the preface alone, so the view is made for the first and for the last of them only.
    """

    def __init__(
        self, projection: ProjectionBuilder, draft: Draft, messages: Sequence[Entry], checkpoint: Checkpoint
    ) -> None:
        self.projection, self.draft, self.messages, self.checkpoint = projection, draft, messages, checkpoint
        self._show()
        self._rest = self.view.units - self._preface_units()
        """Units of what stands behind the preface."""

    def settle(self, facts: dict[str, Any]) -> None:
        """Finds the largest state that fits, then looks what survived."""
        shown = {e.seq for s in self.draft.visible() for e in s.entries()} - {int(n) for n in self.draft.texts}
        sections = state_sections(facts, shown)
        most = self.draft.policy.state_room
        for notes in self._notes():
            self.checkpoint = replace(self.checkpoint, notes=notes)
            if any(self._try(self._state(sections, part * most)) for part in (1.0, 0.5, 0.25, 0.0)):
                break
        self._show()
        if self.draft.notes and not self.checkpoint.notes:
            self.checkpoint = replace(
                self.checkpoint, notes_upto=0, notes_status="no notes: there was no room for them"
            )
        retained = self._retained(facts)
        account = {"total": retained.total, "in_view": retained.in_view, "by_id": retained.by_id}
        self.checkpoint = replace(self.checkpoint, meta={**self.checkpoint.meta, "retained": account})

    def _notes(self) -> Iterator[str]:
        """The notes, then less and less of them, at last none: they are a refinement, and the fold is the rescue."""
        notes, room = self.draft.notes, NOTES_SHARE * self.draft.policy.window
        size = self.draft.estimator.tokens(self.draft.estimator.units(notes))
        if size > room:
            notes = notes[: int(len(notes) * room / size)]
        yield from dict.fromkeys((notes, notes[: len(notes) // 2], notes[: len(notes) // 4], ""))

    def _state(self, sections: Sequence[Section], most: float) -> str:
        """The state in at most so many tokens; names and figures take more of them than prose."""
        estimator = self.draft.estimator
        room = most * self.draft.settings.chars_per_token / estimator.factor
        left_out = self._left_out()
        while room > 200:
            state = without_fences(state_block(sections, left_out, int(room)))
            size = estimator.tokens(estimator.units(state))
            if size <= most:
                return state
            room *= most / size * 0.99
        return ""

    def _try(self, state: str) -> bool:
        self.checkpoint = replace(self.checkpoint, state=state.strip())
        units = self._rest + self._preface_units()
        return self.draft.estimator.tokens(units + self.draft.system_units) <= self.draft.goal

    def _preface_units(self) -> float:
        return message_units({"content": clean(preface(self.checkpoint))}, self.draft.estimator)

    def _show(self) -> None:
        self.view = self.projection.project(self.messages, self.checkpoint).view
        self.tokens = self.draft.estimator.tokens(self.view.units + self.draft.system_units)

    def _left_out(self) -> str:
        """One line that says how much is out of view and where it stands."""
        spans, shorter = Patch(self.checkpoint).spans, len(self.checkpoint.texts)
        if not spans and not shorter:
            return ""
        count = sum(place(self.messages, last + 1) - place(self.messages, first) for first, last, _ in spans)
        left = [f"left out: {count} of the messages #{spans[0][0]} to #{spans[-1][1]}"] if spans else []
        return "; ".join([*left, *([f"shortened: {shorter}"] if shorter else []), "recall shows all of it"])

    def _retained(self, facts: dict[str, Any]) -> Retained:
        musts = must_keep(facts, self.messages)
        there = {m.seq for m in musts if _is_there(self.messages, m.seq)}
        shown = [text_of(self.view.messages), *told_paths(self.checkpoint.state)]
        return measure(musts, "\n".join(shown), there)


def _is_there(messages: Sequence[Entry], seq: int) -> bool:
    """Whether there is a message with this number."""
    at = place(messages, seq)
    return at < len(messages) and messages[at].seq == seq
