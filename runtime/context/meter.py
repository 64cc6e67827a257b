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

_OTHER_SIZE, _SAME_SHARE = 1.5, 0.8
"""Two requests of which one is so many times larger, and of which so much the same part was counted: a server that cuts
counts less and less of what grows, so the tokenizer is a thrifty one, and nothing was cut."""


class Meter:
    """Counts of the requests since the last fold. `cut_at`: tokens at which the server silently cut the last request; 0
    where it did not. `proved`: tokens of the largest request that the model has taken whole; `least`: of the smallest
    that was counted, 0 where none was."""

    def __init__(self, estimator: TokenEstimator) -> None:
        self.estimator = estimator
        self.forget()
        self.reset()

    def forget(self) -> None:
        """Forgets what another model has shown; the estimator has learned about texts, and keeps that."""
        self.proved = self.least = 0
        self._wronged = False
        self._doubt: tuple[int, float] | None = None

    def take_wronged(self) -> bool:
        """Whether the server was held to have cut a request, and had not; said once."""
        wronged, self._wronged = self._wronged, False
        return wronged

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
        thrifty = self._anchor is None and self._is_thrifty(reported, units)
        if not thrifty and was_cut(reported, self._anchor, self.estimator, units):
            self._doubt = (reported, units)
            # A server that cuts keeps the system prompt, and cuts nothing that is smaller than what it took before.
            if reported >= self.estimator.tokens(floor) and self.tokens(units) > self.proved:
                self.cut_at = max(reported, self.proved)
            return
        if thrifty:
            self._wronged, self._doubt, self.cut_at = True, None, 0
        if not self.estimator.plausible(units, reported):
            return
        self.estimator.observe(units, reported)
        believed = min(reported, int(units * FACTOR_MAX))
        self._anchor = (believed, units)
        self.proved = max(self.proved, believed)
        self.least = min(self.least or believed, believed)

    def _is_thrifty(self, reported: int, units: float) -> bool:
        """Whether of another request, which was held to be cut, the same part was counted as of this one."""
        if self._doubt is None:
            return False
        counted, other = self._doubt
        sizes, shares = sorted((units, other)), sorted((reported / units, counted / other))
        return sizes[1] >= sizes[0] * _OTHER_SIZE and shares[0] >= shares[1] * _SAME_SHARE

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
