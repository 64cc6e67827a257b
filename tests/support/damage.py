"""Ways in which a file is damaged, and what has to be true of a log that was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.support.lived import next_request
from tests.support.strict import refusals
from transcripts.log import TranscriptLog

KINDS = ("cut", "nul", "nul run", "duplicate", "lose")


@dataclass(frozen=True)
class Damage:
    """One way at one place: `size` bytes from `offset` on."""

    kind: str
    offset: int
    size: int

    def apply(self, raw: bytes) -> bytes:
        """The file afterwards."""
        start, stop = self.offset, self.offset + self.size
        if self.kind == "cut":
            return raw[:start]
        if self.kind.startswith("nul"):
            return raw[:start] + b"\0" * (min(stop, len(raw)) - start) + raw[stop:]
        if self.kind == "duplicate":
            return raw[:stop] + raw[start:]
        return raw[:start] + raw[stop:]


def at(offset: int, kind: str, random: Random) -> Damage:
    """A damage of that kind there, of one byte or of some size."""
    size = 1 if kind == "nul" else random.choice((1, 7, 80, 700, 5000))
    return Damage(kind, offset, size)


class Victim:
    """A log that is damaged again and again, each time from its whole state, in a file of its own."""

    def __init__(self, path: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.lay_anew(path.read_bytes())

    def lay_anew(self, raw: bytes) -> None:
        """Goes on from other bytes: what is whole in them is what has to be kept from now on."""
        self.raw = raw
        self._lay(raw)
        log = TranscriptLog.open(self.scratch, readonly=True)
        found = {e.seq: (log.raw(e), e) for e in log.entries if e.length}
        log.close()
        self.records = {seq: (entry.kind, line) for seq, (line, entry) in found.items()}
        self.places = {seq: (e.offset, e.offset + e.length) for seq, (_, e) in found.items()}

    def faults(self, damage: Damage) -> list[str]:
        """What is wrong after this damage; [] where all that has to hold does."""
        broken = damage.apply(self.raw)
        self._lay(broken)
        whole = {seq: kept for seq, kept in self.records.items() if self._spared(seq, damage) or kept[1] in broken}
        messages, first, _ = next_request(self.scratch)
        out = [f"{damage}: {what}" for what in refusals(messages)]
        log = TranscriptLog.open(self.scratch, readonly=True)
        found = {e.seq: (e.kind, log.raw(e)) for e in log.entries if e.length}
        log.close()
        lost = [seq for seq, kept in whole.items() if found.get(seq) != kept]
        out += [f"{damage}: record {seq} is whole and was lost" for seq in lost]
        self._lay(broken)
        if next_request(self.scratch)[1] != first:
            out.append(f"{damage}: a second resume shows something else")
        return out

    def _spared(self, seq: int, damage: Damage) -> bool:
        """Whether a record lies where nothing was done."""
        start, stop = self.places[seq]
        return stop <= damage.offset or (damage.kind != "cut" and start >= damage.offset + damage.size)

    def _lay(self, raw: bytes) -> None:
        self.scratch.with_suffix(".torn").unlink(missing_ok=True)
        self.scratch.write_bytes(raw)


def points(victim: Victim, tail: int, middle: int, random: Random) -> list[Damage]:
    """`tail` places spread over the last 64 KB, each in every way in turn, and `middle` random ones before."""
    size = len(victim.raw)
    begin = max(0, size - 64 * 1024)
    step = max(1, (size - begin) // max(1, tail))
    spread = [at(o, KINDS[n % len(KINDS)], random) for n, o in enumerate(range(begin, size, step))]
    return spread + [at(random.randrange(size), random.choice(KINDS), random) for _ in range(middle)]
