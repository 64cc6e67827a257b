"""The transcript log: an append-only JSONL file that survives kill -9 at any byte.

One record is one `write()` of one line with a sequence number and a checksum. Opening for writing takes a kernel lock
and seals a torn tail aside before anything is appended; damage in the middle becomes a visible `Gap` and reading goes
on. What was read is kept as places in the file: a record is decoded when somebody asks for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from transcripts.blobs import Blobs
from transcripts.lines import LineError, VersionError, decode, encode, head, strip
from transcripts.records import (
    Checkpoint,
    Gap,
    Note,
    Record,
    Rewind,
    SessionStart,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Unfold,
    User,
)

try:
    import fcntl
except ImportError:  # Windows has no flock; two processes on one session are then not told apart
    fcntl = None

_DURABLE = (SessionStart, User, ToolResult, Checkpoint, Unfold, Rewind, TurnEnd)


class LogHeld(Exception):
    """Another process writes this log; `pid` is its number where known, else 0."""

    def __init__(self, path: Path, pid: int) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"the session {path.stem} is held by {who}")
        self.pid = pid


class LogWriteError(Exception):
    """A record could not be made durable; carries the real reason. Nothing may be done that cannot be recorded."""


class Entry:
    """One line of the log: its number, when it was written (UTC, ISO 8601), its kind, and the record itself."""

    __slots__ = ("_log", "_place", "_record", "at", "kind", "seq")

    def __init__(
        self,
        seq: int,
        at: str,
        kind: str,
        record: Record | None,
        log: TranscriptLog | None = None,
        place: tuple[int, int] = (0, 0),
    ) -> None:
        self.seq = seq
        self.at = at
        self.kind = kind
        self._record = record
        self._log = log
        self._place = place

    @property
    def record(self) -> Any:
        """The record (a dataclass of `transcripts.records`), read from the file at the first use."""
        if self._record is None:
            assert self._log is not None
            self._record = self._log.load(*self._place)
        return self._record

    def __repr__(self) -> str:
        return f"Entry({self.seq}, {self.kind})"


class TranscriptLog:
    """One session's log. `problems` says in plain words what opening found and mended.

    Use `create` for a new one, `open` for one that exists, `memory` for one that is not kept.
    """

    def __init__(self, path: Path | None, file: IO[bytes] | None) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.problems: list[str] = []
        self.blobs = Blobs(path.with_suffix(".blobs") if path else None)
        self._file = file
        self._size = 0
        self._next = 1
        self._reader: IO[bytes] | None = None
        self._dirty = False

    @classmethod
    def create(cls, path: Path) -> TranscriptLog:
        """A new log, mode 0600, its folder 0700. Raises FileExistsError, OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        log = cls(path, os.fdopen(fd, "r+b", buffering=0))
        log._lock()
        _sync_folder(path.parent)
        return log

    @classmethod
    def memory(cls) -> TranscriptLog:
        """A log that lives as long as the process."""
        return cls(None, None)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> TranscriptLog:
        """Opens a log that exists, mending what a crash left. Raises LogHeld, VersionError, OSError.

        Read-only changes nothing on disk and needs no lock.
        """
        file = path.open("rb" if readonly else "r+b", buffering=0)
        log = cls(path, file)
        try:
            if not readonly:
                log._lock()
                os.set_blocking(file.fileno(), True)
            log._read(readonly)
        except BaseException:
            file.close()
            raise
        if readonly:
            file.close()
            log._file = None
        return log

    def append(self, record: Record, seq: int = 0) -> Entry:
        """Writes one record as one line; the kinds that matter are on the disk when this returns (see `_durable`).

        `seq` is for copies, which keep the numbers of what they copy, for folds speak of numbers; else it is the next.

        Raises LogWriteError where it could not be written; the file is then as it was before.
        """
        seq, at = max(seq, self._next), now()
        if self._file is not None:
            self._write(encode(record, seq, at), sync=_durable(record))
        elif self.path is not None:
            raise LogWriteError(f"the session {self.path.stem} is open for reading only")
        entry = Entry(seq, at, record.kind, record)
        self._next = seq + 1
        self.entries.append(entry)
        return entry

    def sync(self) -> None:
        """Makes everything appended so far durable. Raises LogWriteError."""
        if self._file is None or not self._dirty:
            return
        try:
            os.fdatasync(self._file.fileno()) if hasattr(os, "fdatasync") else os.fsync(self._file.fileno())
        except OSError as error:
            raise LogWriteError(f"the log could not be written to disk: {error.strerror or error}") from error
        self._dirty = False

    def close(self) -> None:
        """Makes everything durable and gives the session back."""
        try:
            self.sync()
        finally:
            for file in (self._file, self._reader):
                if file is not None:
                    file.close()
            self._file = self._reader = None

    def load(self, offset: int, length: int) -> Record:
        """The record at a place of the file. Its checksum was tested on opening."""
        if self._reader is None:
            assert self.path is not None
            self._reader = self.path.open("rb")
        self._reader.seek(offset)
        return decode(strip(self._reader.read(length)))

    def _write(self, line: bytes, *, sync: bool) -> None:
        assert self._file is not None
        fd = self._file.fileno()
        try:
            written = os.write(fd, line)
            while written < len(line):
                written += os.write(fd, line[written:])
        except OSError as error:
            self._take_back()
            raise LogWriteError(f"the log could not be written: {error.strerror or error}") from error
        self._size += len(line)
        self._dirty = True
        if sync:
            self.sync()

    def _take_back(self) -> None:
        """After a write that failed half way: the file ends with its last whole line again, if it can be done."""
        assert self._file is not None
        try:
            os.ftruncate(self._file.fileno(), self._size)
        except OSError:
            self.problems.append("a torn line could not be taken back; it is sealed aside at the next opening")

    def _lock(self) -> None:
        if fcntl is None or self._file is None:
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            assert self.path is not None
            raise LogHeld(self.path, _holder(self.path)) from error

    def _read(self, readonly: bool) -> None:
        assert self._file is not None
        scan = _Scan(self)
        self._file.seek(0)
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            for line in lines:
                scan.line(line)
        scan.finish()
        self.entries = scan.ordered()
        self.problems += scan.problems
        self._size = scan.offset
        self._next = max((e.seq for e in self.entries), default=0) + 1
        if scan.tail and not readonly:
            self._seal(scan.offset - scan.tail)
        elif scan.unended and not readonly:
            os.lseek(self._file.fileno(), 0, os.SEEK_END)
            self._write(b"\n", sync=True)
        os.lseek(self._file.fileno(), 0, os.SEEK_END)

    def _seal(self, start: int) -> None:
        """Moves the bytes from `start` on into NAME.torn, durably, and cuts them off the log."""
        assert self._file is not None and self.path is not None
        self._file.seek(start)
        torn = self._file.read()
        side = self.path.with_suffix(".torn")
        fd = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(torn)
            file.flush()
            os.fsync(file.fileno())
        self._file.truncate(start)
        os.fsync(self._file.fileno())
        self._size = start
        self.problems.append(f"a torn last record ({len(torn):,} bytes) was moved to {side.name}")


class _Scan:
    """Goes through the lines of a file once and sorts them into records, gaps and a torn tail."""

    def __init__(self, log: TranscriptLog) -> None:
        self.log = log
        self.offset = 0
        self.tail = 0
        self.unended = False
        self.problems: list[str] = []
        self._found: list[Entry] = []
        self._seen: dict[int, int] = {}
        self._bad = 0
        self._why = ""
        self._dropped = 0

    def line(self, line: bytes) -> None:
        start, self.offset = self.offset, self.offset + len(line)
        body = strip(line)
        if not body and b"\0" not in line:
            if self._bad:
                self._bad += len(line)
            return
        try:
            found = head(body)
        except LineError as error:
            self._bad += len(line)
            self._why = self._why or (str(error) if body else "nothing but NUL bytes")
            return
        self._close_gap()
        self.unended = not line.endswith(b"\n")
        if self._seen.get(found.seq) == hash(body):
            self._dropped += 1
            return
        self._seen[found.seq] = hash(body)
        self._found.append(Entry(found.seq, found.at, found.kind, None, self.log, (start, len(line))))

    def _close_gap(self) -> None:
        if self._bad:
            self._found.append(Entry(-1, "", "gap", Gap(self._bad, why=self._why)))
            self._bad, self._why = 0, ""

    def finish(self) -> None:
        """What is bad at the very end is a torn tail, not a gap."""
        self.tail, self._bad = self._bad, 0
        if self._dropped:
            self.problems.append(f"{self._dropped} repeated record(s) were counted once")

    def ordered(self) -> list[Entry]:
        """The entries by number, with a Gap wherever bytes or numbers are missing."""
        records = [e for e in self._found if e.seq >= 0]
        damaged = [e.record.bytes for e in self._found if e.seq < 0]
        if any(a.seq > b.seq for a, b in zip(records, records[1:], strict=False)):
            records.sort(key=lambda e: e.seq)
            self.problems.append("records stood in the wrong order and were put right by their numbers")
        out: list[Entry] = []
        expected = 1
        for entry in records:
            if entry.seq > expected:
                lost = damaged.pop(0) if damaged else 0
                out.append(self._gap(lost, expected, entry.seq - 1))
            out.append(entry)
            expected = entry.seq + 1
        if damaged:
            self.problems.append(f"{sum(damaged):,} unreadable bytes held no record that is missing")
        return out

    def _gap(self, size: int, first: int, last: int) -> Entry:
        lost = f"record {first}" if first == last else f"records {first} to {last}"
        self.problems.append(f"{lost} cannot be read ({size:,} damaged bytes); the rest is whole")
        return Entry(first, "", "gap", Gap(size, first, last, "damaged"))


def _durable(record: Record) -> bool:
    if isinstance(record, ToolStarted):
        return record.effect != "read"
    return isinstance(record, _DURABLE)


def now() -> str:
    """The present time as it stands in a record: UTC, ISO 8601, milliseconds."""
    seconds = time.time()
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{int(seconds * 1000) % 1000:03d}Z"


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _holder(path: Path) -> int:
    """The process that opened this log last, by its own note; 0 where there is none."""
    try:
        notes = [e for e in TranscriptLog.open(path, readonly=True).entries if e.kind == Note.kind]
    except (OSError, VersionError):
        return 0
    for entry in reversed(notes):
        if entry.record.key == "opened" and isinstance(entry.record.value, dict):
            return int(entry.record.value.get("pid", 0))
    return 0


def iter_messages(entries: list[Entry]) -> Iterator[Entry]:
    """The entries that the model can be shown."""
    return (e for e in entries if e.kind in ("user", "assistant", "tool_result"))
