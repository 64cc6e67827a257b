"""A session is cut, filled with NUL bytes, partly repeated or partly lost at any byte: every whole record is kept,
any provider takes the next request, and resuming twice shows the same.

CRASH_POINTS sets how many places are tried (10000 for a full run: all of the last 64 KB in steps, 2,000 before);
EVERY_BYTE=1 tries each single byte of the last 64 KB in one way a byte.
"""

from __future__ import annotations

import os
from random import Random

from tests.support.damage import KINDS, Victim, at, points

POINTS = int(os.environ.get("CRASH_POINTS", "100"))


def test_damage_anywhere(victim: Victim) -> None:
    random = Random(4)
    middle = min(2_000, POINTS // 4)
    faults = [f for damage in points(victim, POINTS - middle, middle, random) for f in victim.faults(damage)]
    assert faults == []


def test_damage_at_both_ends_of_every_line_of_the_tail(victim: Victim) -> None:
    """Where one record ends and the next begins most can go wrong: one byte before, on and behind each line's end."""
    random = Random(5)
    ends = [n for n, byte in enumerate(victim.raw) if byte == 10][-max(4, POINTS // 40) :]
    places = [(end + d, kind) for end in ends for d in (-1, 0, 1) for kind in KINDS if end + d < len(victim.raw)]
    faults = [f for offset, kind in places for f in victim.faults(at(offset, kind, random))]
    assert faults == []


def test_two_damages_at_once(victim: Victim) -> None:
    """A bad region in the middle and a torn tail: neither hides the other."""
    random = Random(6)
    whole = victim.raw
    for _ in range(max(4, POINTS // 30)):
        first = at(random.randrange(len(whole) // 2), random.choice(KINDS[1:]), random)
        victim.lay_anew(first.apply(whole))
        second = at(random.randrange(len(whole) // 2, len(victim.raw)), random.choice(KINDS), random)
        assert victim.faults(second) == [], first


def test_every_single_byte_of_the_last_64_kilobytes(victim: Victim) -> None:
    size = len(victim.raw)
    places = range(max(0, size - 64 * 1024), size) if os.environ.get("EVERY_BYTE") else range(size - 40, size)
    random = Random(7)
    faults = [f for n, offset in enumerate(places) for f in victim.faults(at(offset, KINDS[n % len(KINDS)], random))]
    assert faults == []
