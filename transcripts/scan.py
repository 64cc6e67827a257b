"""Reading a log from front to back: lines become entries, damage becomes gaps, and whatever is whole is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from transcripts.entries import Entry, Source
from transcripts.lines import AROUND, MOST_SEQ, Head, LineError, decode, head, read_head, strip, whole_in
from transcripts.records import FORMAT_VERSION, Gap

_TRUSTED = frozenset({"session", "user", "assistant", "tool_result"})
"""Kinds that are kept where a line was edited by hand: words. What steers the program is not believed then."""


@dataclass
class Scan:
    """What a file holds. `entries` are in the order of their numbers, with a Gap wherever numbers are missing;
    `problems` says in plain words what is wrong with it; `size` is bytes read, `torn` the offset from which on nothing
    can be read (-1: it ends well)."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    size: int = 0
    torn: int = -1


@dataclass
class _Region:
    """Bytes that are no record."""

    offset: int
    size: int
    why: str


def scan(lines: Iterable[bytes], source: Source) -> Scan:
    """Reads all lines of a file. Raises VersionError where a newer version wrote it."""
    reader = _Reader(source)
    for line in lines:
        reader.take(line)
    return reader.result()


class _Reader:
    """Takes a file line by line."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0
        self.found: list[Entry] = []
        self.edited: list[Entry] = []
        self.bad: list[_Region] = []
        self.repeated = self.padding = 0
        self.disorder = False
        self._seen: dict[int, bytes] = {}
        self._last = 0

    def take(self, line: bytes) -> None:
        start = self.offset
        self.offset += len(line)
        # Nearly all lines end like this; only others are looked at more closely, which may copy them.
        stop = len(line) - 1 if line.endswith(b'"}\n') else len(line)
        try:
            self._keep(line, start, 0, stop)
        except LineError as error:
            self._look_closer(line, start, str(error))

    def _keep(self, line: bytes, offset: int, start: int, stop: int) -> None:
        known = head(line, start, stop)
        if self._seen.get(known.seq) == known.crc:
            self.repeated += 1
            return
        if self.edited:
            self._settle(known.seq)
        self._seen[known.seq] = known.crc
        self.disorder = self.disorder or known.seq < self._last
        self._last = known.seq
        self.found.append(self._entry(known, offset + start, stop - start))

    def _entry(self, known: Head, offset: int, size: int) -> Entry:
        return Entry(known.seq, known.at, known.kind, None, self.source, (offset, size), known.key)

    def _look_closer(self, line: bytes, offset: int, why: str) -> None:
        """A line that is not simply a record: blank, padded, glued together, edited or damaged."""
        body = strip(line)
        if not body:
            if b"\0" in line:
                self._damaged(offset, len(line), "nothing but NUL bytes")
            return
        start = line.find(body)
        try:
            self._keep(line, offset, start, start + len(body))
            self.padding += line.count(b"\0")
        except LineError:
            if not self._edited(line, offset, start, start + len(body)):
                self._salvage(line, offset, why)

    def _edited(self, line: bytes, offset: int, start: int, stop: int) -> bool:
        """Whether the line is words whose checksum does not fit but which can be read: then it is set by."""
        try:
            known = read_head(line, start, stop)
            if known.kind not in _TRUSTED or known.version != FORMAT_VERSION:
                return False
            # Two records glued together can look like one that says its kind twice.
            if decode(line[start:stop]).kind != known.kind:
                return False
        except LineError:
            return False
        entry = self._entry(known, offset + start, stop - start)
        entry.altered = True
        self.edited.append(entry)
        return True

    def _settle(self, following: int) -> None:
        """Edited lines count where exactly their numbers are missing between their neighbours: who edits words leaves
        the lines alone, while damage makes numbers up or lets lines vanish."""
        fits = [e.seq for e in self.edited] == list(range(self._last + 1, following))
        for entry in self.edited:
            if fits:
                self.found.append(entry)
                self._seen[entry.seq], self._last = b"", entry.seq
            else:
                self._damaged(entry.offset, entry.length, "its checksum does not match")
        self.edited = []

    def _salvage(self, line: bytes, offset: int, why: str) -> None:
        end = 0
        for start, stop in whole_in(line):
            try:
                self._keep(line, offset, start, stop)
            except LineError:  # whole, and yet no record: its number or its kind is none
                continue
            if start > end:
                self._damaged(offset + end, start - end, why)
            end = stop
        if end == 0 or line[end:].strip(AROUND):
            self._damaged(offset + end, len(line) - end, why)

    def _damaged(self, offset: int, size: int, why: str) -> None:
        last = self.bad[-1] if self.bad else None
        if last is not None and last.offset + last.size == offset:
            last.size += size
        else:
            self.bad.append(_Region(offset, size, why))

    def result(self) -> Scan:
        self._settle(self._last + len(self.edited) + 1)
        self.bad.sort(key=lambda r: r.offset)
        out = Scan(size=self.offset)
        end = max((e.offset for e in self.found), default=-1)
        out.torn = next((r.offset for r in self.bad if r.offset > end), -1)
        if self.repeated:
            out.problems.append(
                f"{self.repeated} repeated {'record was' if self.repeated == 1 else 'records were'} counted once"
            )
        if self.padding:
            out.problems.append(f"{self.padding:,} NUL bytes stood around records; no record is missing there")
        if self.disorder:
            self.found.sort(key=lambda e: e.seq)
            out.problems.append("records stood in the wrong order and were put right by their numbers")
        self._with_gaps(out, [r for r in self.bad if r.offset <= end])
        return out

    def _with_gaps(self, out: Scan, regions: list[_Region]) -> None:
        expected = passed = stray = 0
        for entry in self.found:
            size = 0
            while passed < len(regions) and regions[passed].offset < entry.offset:
                size += regions[passed].size
                passed += 1
            if entry.seq > expected + 1:
                out.entries.append(_gap(out, size, expected + 1, entry.seq - 1))
            else:
                stray += size
            if entry.altered:
                out.problems.append(f"record {entry.seq} was changed by hand (its checksum does not match); it is kept")
            out.entries.append(entry)
            expected = max(expected, upto(entry))
        if stray:
            out.problems.append(f"{stray:,} bytes are no record ({regions[0].why}); no record is missing there")


def upto(entry: Entry) -> int:
    """The number up to which records are accounted for by an entry: its own, or the last one that a gap names."""
    last = entry.record.last if entry.kind == Gap.kind else 0
    return max(entry.seq, last if last < MOST_SEQ else 0)


def _gap(out: Scan, size: int, first: int, last: int) -> Entry:
    lost = f"record {first} is" if first == last else f"records {first} to {last} are"
    where = f" ({size:,} damaged bytes)" if size else ""
    out.problems.append(f"{lost} lost{where}; the rest is whole")
    return Entry(first, "", Gap.kind, Gap(size, first, last, "damaged" if size else "missing"))
