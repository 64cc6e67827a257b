"""The price of folding early. With a prefix cache, touching old text makes everything behind it uncached once; that
pays only after so many further calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from runtime.context.estimate import TokenEstimator
from runtime.context.projection import Wire, message_units
from transcripts.log import Entry

CACHE_RATIO = 10.0
"""Price of an uncached input token over a cached one; 10 with the large providers, where a write costs 1.0 to 1.25."""

CACHE_SECONDS = 300.0
"""How long a provider keeps an unused prefix; five minutes is the shortest of the usual promises."""

PAYS_WITHIN = 3.0
"""Further calls within which an early fold has to pay for itself; a turn seldom has fewer."""

PRUNING_LOSS = 10
"""Loss up to which a strategy may work before it has to: that of old tool results, which a tool can say again."""


def break_even(suffix: float, freed: float, ratio: float = CACHE_RATIO) -> float:
    """Further calls after which freeing `freed` of `suffix` tokens pays. `suffix` counts from the first changed byte,
    what is freed included; infinite where nothing is freed."""
    return (ratio - 1) * (suffix - freed) / freed if freed > 0 else float("inf")


def suffix_units(before: Sequence[Wire], after: Sequence[Wire], estimator: TokenEstimator) -> float:
    """Units of the old view from the first message that the new one does not have at the same place."""
    same = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return sum(message_units(m, estimator) for m in before[same:])


def is_cold(entries: Sequence[Entry], now: float | None = None) -> bool:
    """Whether the provider's cache can hold nothing of this session any more: no request in the last five minutes, or
    another model since the last one."""
    for entry in reversed(entries):
        if entry.kind == "usage":
            then = datetime.fromisoformat(entry.at).timestamp()
            return (time.time() if now is None else now) - then > CACHE_SECONDS
        if entry.kind == "note" and entry.record.key == "model":
            return True
    return True
