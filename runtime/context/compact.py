"""ContextCompactor: one fold as one transaction. Strategies by rising cost of loss until it fits; then the fold is
checked, and only then is it a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.context.compact_store import CompactStore
from runtime.context.discard import Discard, all_strategies
from runtime.context.draft import Draft
from runtime.context.facts import empty_facts, gather, state_block
from runtime.context.projection import ProjectionBuilder
from transcripts.log import Entry
from transcripts.records import Checkpoint

LEAST_SHRINK = 0.25
"""A fold that frees less than this part of what can leave is no progress: it would come again after a few steps."""

STATE_SHARE = 0.05
"""Part of the window that the state block may fill; half of what a draft holds free for the preface."""


@dataclass(frozen=True)
class CompactOutcome:
    """A fold that may be committed, or why there is none. `floor`: what cannot leave, in tokens."""

    checkpoint: Checkpoint | None
    reason: str
    floor: dict[str, int] = field(default_factory=dict)


class ContextCompactor:
    """Thinks a fold out. Writes nothing: whoever called it appends the checkpoint, and that one record is the commit."""

    def __init__(self, store: CompactStore, projection: ProjectionBuilder, strategies: Sequence[Discard] = ()) -> None:
        self.store = store
        self.projection = projection
        self.strategies = list(strategies) or all_strategies()

    async def compact(self, draft: Draft, messages: Sequence[Entry], *, cause: str, before: int) -> CompactOutcome:
        """Runs the ladder over a draft. `before`: tokens of the request as it stands."""
        ran: list[str] = []
        for strategy in self.strategies:
            if not strategy.wanted(draft):
                continue
            size, notes = draft.tokens, draft.notes_upto
            await strategy.discard(draft)
            if draft.tokens < size or draft.notes_upto > notes:
                ran.append(strategy.name)
        return self._checked(draft, messages, cause, before, ran)

    def _checked(
        self, draft: Draft, messages: Sequence[Entry], cause: str, before: int, ran: list[str]
    ) -> CompactOutcome:
        old = draft.active.meta.get("facts") if draft.active else None
        facts = gather(old or empty_facts(), messages)
        room = draft.policy.window * STATE_SHARE * draft.settings.chars_per_token
        for part in (1.0, 0.5, 0.25, 0.0):
            state = state_block(facts, _left_out(draft), int(room * part)) if part else ""
            checkpoint = self._checkpoint(draft, state, facts, cause, before, ran)
            after = self._measure(draft, messages, checkpoint)
            if after <= draft.goal:
                break
        fixed = draft.estimator.tokens(draft.system_units)
        floor = {"system and tools": fixed, "what has to stay": after - fixed}
        if after > draft.goal:
            return CompactOutcome(None, f"it cannot be brought under {draft.goal:,} tokens (best: {after:,})", floor)
        if after - fixed > (before - fixed) * (1 - LEAST_SHRINK):
            return CompactOutcome(None, f"it would free too little ({before:,} to {after:,} tokens)", floor)
        return CompactOutcome(replace(checkpoint, tokens_after=after), "folded", floor)

    def _checkpoint(
        self, draft: Draft, state: str, facts: dict[str, Any], cause: str, before: int, ran: list[str]
    ) -> Checkpoint:
        return self.store.create_checkpoint(
            **draft.patch_values(),
            state=state,
            cause=cause,
            strategies=tuple(ran),
            tokens_before=before,
            notes_status=draft.notes_status,
            meta={"facts": facts},
        )

    def _measure(self, draft: Draft, messages: Sequence[Entry], checkpoint: Checkpoint) -> int:
        view = self.projection.project(messages, checkpoint).view
        return draft.estimator.tokens(view.units + draft.system_units)


def _left_out(draft: Draft) -> str:
    """One line that says how much is out of view and where it stands."""
    gone = [s for s in draft.steps if s.first in draft.reasons]
    if not gone and not draft.texts:
        return ""
    words = f"left out: {len(gone)} steps (#{gone[0].first} to #{gone[-1].last})" if gone else "left out: no whole step"
    return f"{words}; shown shorter: {len(draft.texts)} messages; all of it by recall"
