"""Meter: what the provider counted for the requests of this view, how far that is believed, and what follows from it.

Counts come from servers of every kind: some report nothing, some only what their cache did not have, some nonsense. A
count that cannot be true is no measure, so it never folds, and never makes the window smaller.
"""

from __future__ import annotations

from runtime.context.estimate import FACTOR_MAX, TokenEstimator, was_cut
from transcripts.records import Request, Usage

LEAST_ROOM = 2
"""A refusal that names no limit never makes the window less than so many times what system and tools take."""

REFUSED_SHARE = 0.9
"""What is taken for the window after a refusal that names no limit: this part of what was refused."""


class Meter:
    """Counts of the requests since the last fold. `cut_at`: tokens at which the server silently cut the last request; 0
    where it did not. `proved`: tokens of the largest request that the model has taken whole."""

    def __init__(self, estimator: TokenEstimator) -> None:
        self.estimator = estimator
        self.proved = 0
        self.reset()

    def reset(self) -> None:
        """Forgets the counts of a view that is no more."""
        self._anchor: tuple[int, float] | None = None
        self._asked: float | None = None
        self.cut_at = 0

    def learn(self, record: Request | Usage, floor: float) -> None:
        """Learns from what was sent and what was counted for it; `floor`: units of system prompt and tools."""
        if record.purpose != "step":
            return
        if isinstance(record, Request):
            self._asked = record.units
        elif record.input and record.input > 0 and self._asked is not None:
            self._count(record.input, self._asked, floor)

    def _count(self, reported: int, units: float, floor: float) -> None:
        if was_cut(reported, self._anchor, self.estimator, units):
            # A server that cuts keeps the system prompt, and cuts nothing that is smaller than what it took before.
            if reported >= self.estimator.tokens(floor) and self.tokens(units) > self.proved:
                self.cut_at = max(reported, self.proved)
            return
        self.estimator.observe(units, reported)
        believed = min(reported, int(units * FACTOR_MAX))
        self._anchor = (believed, units)
        self.proved = max(self.proved, believed)

    def tokens(self, units: float) -> int:
        """The larger of (last count + what came since) and the weighed text."""
        weighed = self.estimator.tokens(units)
        if self._anchor is None:
            return weighed
        counted, anchor = self._anchor
        return max(weighed, counted + self.estimator.tokens(max(0.0, units - anchor)))

    def believes(self, limit: int, floor: int) -> bool:
        """Whether a limit that a refusal names can be the window. One that not even system and tools fit into cannot,
        where more than it was taken before: then it is a number of something else."""
        return limit >= floor or limit >= self.proved

    def window_after_refusal(self, window: int, refused: int, floor: int) -> int:
        """The window that a refusal without a limit shows, where `refused` tokens were too many of `window`."""
        return min(window, max(int(refused * REFUSED_SHARE), self.proved, floor * LEAST_ROOM))
