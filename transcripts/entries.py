"""Entries: the lines of a log as the program holds them, decoded when somebody asks and let go when there are many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

from transcripts.records import Record

KEPT = 24 * 1024 * 1024
"""Bytes of log lines whose records are held decoded. What the view shows is held by the view itself; this is for what
is read again, and it bounds what a session of any length costs in memory."""


class Source(Protocol):
    """What reads a record from its place."""

    def load(self, offset: int, length: int, kind: str) -> Record: ...

    def hold(self, entry: Entry) -> None: ...


class Entry:
    """One line of the log: its number, when it was written (UTC, ISO 8601), its kind, and the record itself.

    `key` is the key of a note, so that notes can be told apart without being decoded; `altered` marks a line whose
    checksum does not fit its words, which are whole all the same (somebody edited the file).
    """

    __slots__ = ("_record", "_source", "altered", "at", "key", "kind", "length", "offset", "seq")

    def __init__(
        self,
        seq: int,
        at: str,
        kind: str,
        record: Record | None,
        source: Source | None = None,
        place: tuple[int, int] = (0, 0),
        key: str = "",
    ) -> None:
        self.seq = seq
        self.at = at
        self.kind = kind
        self.key = key
        self.altered = False
        self.offset, self.length = place
        self._record = record
        self._source = source
        if record is not None and source is not None:
            source.hold(self)

    @property
    def record(self) -> Any:
        """The record (a dataclass of `transcripts.records`), read from the file when it is not at hand."""
        found = self._record
        if found is None:
            assert self._source is not None
            found = self._record = self._source.load(self.offset, self.length, self.kind)
            self._source.hold(self)
        return found

    def forget(self) -> None:
        """Lets the decoded record go; it can be read again."""
        if self._source is not None:
            self._record = None

    def __repr__(self) -> str:
        return f"Entry({self.seq}, {self.kind})"


class Held:
    """The entries whose records are decoded, oldest first; beyond `most` bytes the oldest are let go."""

    def __init__(self, most: int = KEPT) -> None:
        self.most = most
        self.size = 0
        self._entries: deque[Entry] = deque()

    def add(self, entry: Entry) -> None:
        """Takes one in."""
        self._entries.append(entry)
        self.size += entry.length
        while self.size > self.most and len(self._entries) > 1:
            old = self._entries.popleft()
            self.size -= old.length
            old.forget()


def newest_note(entries: Iterable[Entry], key: str) -> Any:
    """The value of the newest note of that key; None where there is none. Give the entries newest first."""
    return next((e.record.value for e in entries if e.key == key), None)
