"""What a long session must not forget: 300 steps, 12 facts of each of ten kinds, a small window, and a model that
writes notes well, badly or not at all. Notes are a refinement: with none of them is anything lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from agent.models.scripted import Step
from runtime.model import ModelError, ModelErrorKind
from tests.support.recorded import Played, by_recall, in_view, play
from tests.support.workload import KINDS, PLANTED, Workload

WINDOW = 16_000
LEAST_IN_VIEW = 0.97
"""Over all kinds, and for each of them."""

SUMMARISERS: dict[str, Step] = {
    "good": "The areas were done one after the other, each with its tests; nothing was decided against. Go on there.",
    "blank": "  \n",
    "failing": ModelError(ModelErrorKind.UNKNOWN, "no notes today"),
    "slow": {"text": "Too late to be of any use to anybody.", "delay": 30},
}
LADDER = ("tool_results", "sliding_window", "truncation", "summarisation")
NOTES = {
    "good": {"ok", ""},
    "blank": {"no notes: the answer was blank"},
    "failing": {"no notes: no notes today"},
    "slow": {"no notes: timed out after 1 s"},
}


@dataclass
class Account:
    """Of the facts known at each fold: how many there were, how many the view told right after it; by kind."""

    workload: Workload
    known: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    largest: int = 0

    def take(self, played: Played) -> None:
        """Counts after a fold."""
        lines, estimator = played.shown(), played.session.engine.estimator
        state = played.folds[-1].checkpoint.state
        self.largest = max(self.largest, estimator.tokens(estimator.units(state)))
        for fact in self.workload.facts:
            if fact.step <= played.answers:
                self.known[fact.kind] += 1
                self.shown[fact.kind] += in_view(fact, lines)

    def short(self) -> dict[str, float]:
        """The kinds of which less was in view than there should be, and how much that was."""
        shares = {kind: self.shown[kind] / self.known[kind] for kind in KINDS}
        shares["all"] = self.shown.total() / self.known.total()
        return {k: share for k, share in shares.items() if share < LEAST_IN_VIEW}


@pytest.mark.parametrize("summariser", SUMMARISERS)
def test_what_was_planted_is_in_view_or_within_reach(tmp_path, summariser):
    workload = Workload(steps=300)
    account = Account(workload)
    notes = SUMMARISERS[summariser]
    played = play(workload, tmp_path, window=WINDOW, notes=notes, at_fold=account.take, summary_timeout=1)
    with played.session:
        lines = played.shown()
        lost = [f for f in workload.facts if not in_view(f, lines) and not by_recall(f, played.session)]

    assert Counter(f.kind for f in workload.facts) == dict.fromkeys(KINDS, PLANTED)
    assert [e.reason for e in played.ends] == ["done"] * len(workload.rounds)
    assert played.answers == 300
    assert lost == []
    assert account.short() == {}
    assert account.largest <= played.session.engine.policy.state_room
    assert len(played.folds) >= 20
    assert NOTES[summariser] <= {f.checkpoint.notes_status for f in played.folds}
    used = {name for f in played.folds for name in f.checkpoint.strategies}
    assert used == set(LADDER[: 4 if summariser == "good" else 3])
    assert any(f.checkpoint.notes for f in played.folds) == (summariser == "good")


def test_a_fold_says_how_much_of_it_survived(tmp_path):
    played = play(Workload(steps=80), tmp_path, window=WINDOW)
    with played.session:
        kept = [f.checkpoint.meta["retained"] for f in played.folds]
    assert kept and all(k["in_view"] + k["by_id"] == k["total"] for k in kept)
