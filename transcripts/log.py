"""The transcript log: an append-only JSONL file that survives kill -9 at any byte.

One record is one `write()` of one line with a sequence number and a checksum. Opening for writing takes a kernel lock
and seals a torn tail aside before anything is appended; damage in the middle becomes a visible `Gap` and reading goes
on. What was read is kept as places in the file: a record is decoded when somebody asks for it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from transcripts.blobs import Blobs, LogWriteError, sync_folder, write_durably
from transcripts.entries import Entry, Held, newest_note
from transcripts.files import open_file, private_folder
from transcripts.lines import LineError, VersionError, decode, encode, strip
from transcripts.records import (
    Assistant,
    Checkpoint,
    Gap,
    Note,
    Record,
    Request,
    Rewind,
    SessionStart,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Unfold,
    Unknown,
    Usage,
    User,
    from_json,
)
from transcripts.scan import scan, upto
from transcripts.tamed import tamed

try:
    import fcntl
except ImportError:  # Windows has no flock; two processes on one session are then not told apart
    fcntl = None

__all__ = ["Entry", "LogHeld", "LogWriteError", "TranscriptLog", "VersionError", "newest_note", "now"]

_DURABLE = (SessionStart, User, ToolResult, Checkpoint, Unfold, Rewind, TurnEnd, Gap)
_BINARY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LEAST_SECRET = 8
"""Characters from which on a key is looked for; a shorter one would be found in ordinary words."""

_UNREADABLE = "[What stood here cannot be read.]"
_STAND_INS: Mapping[str, Record] = {
    "user": User(_UNREADABLE, "harness"),
    "assistant": Assistant(_UNREADABLE),
    "tool_result": ToolResult("", "", _UNREADABLE, "unknown"),
    "request": Request("", "", ""),
    "note": Note(""),
    "tool_started": ToolStarted("", ""),
    "checkpoint": Checkpoint("", 0),
    "unfold": Unfold(""),
    "rewind": Rewind(1 << 62),
    "usage": Usage(),
    "turn_end": TurnEnd("error", _UNREADABLE),
    "session": SessionStart("", ""),
    "gap": Gap(0, why=_UNREADABLE),
}
"""What a line counts as that is whole, by its checksum, and yet has the wrong shape."""


class LogHeld(Exception):
    """Another process writes this log; `pid` is its number where known, else 0, `since` when it opened the log."""

    def __init__(self, path: Path, pid: int, since: str = "") -> None:
        who = f"process {pid}" if pid else "another process"
        when = f" since {since[:16].replace('T', ' ')} UTC" if since else ""
        super().__init__(f"the session {path.stem} is held by {who}{when}")
        self.pid = pid
        self.since = since


class TranscriptLog:
    """One session's log. `problems` says in plain words what opening found and mended.

    Use `create` for a new one, `open` for one that exists, `memory` for one that is not kept. `secrets` are keys that
    never reach the disk: where one stands in a record, `[key removed]` is written, and the record says so too.
    """

    def __init__(self, path: Path | None, fd: int = -1, *, writable: bool = True) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.problems: list[str] = []
        self.blobs = Blobs(path.with_suffix(".blobs") if path else None)
        self.secrets: tuple[str, ...] = ()
        self._fd = fd
        self._writable = writable
        self._size = 0
        self._next = 1
        self._torn = -1
        self._ended = True
        self._dirty = self._waits = False
        self._held = Held()

    @classmethod
    def create(cls, path: Path) -> TranscriptLog:
        """A new log, mode 0600, its folder 0700, its name durable. Raises FileExistsError, OSError."""
        private_folder(path.parent)
        log = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY, 0o600))
        log._lock()
        sync_folder(path.parent)
        return log

    @classmethod
    def memory(cls) -> TranscriptLog:
        """A log that lives as long as the process."""
        return cls(None)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> TranscriptLog:
        """Opens a log that exists, mending what a crash left. Raises LogHeld, VersionError, OSError.

        Read-only changes nothing on disk and needs no lock.
        """
        mode = os.O_RDONLY if readonly else os.O_RDWR | os.O_APPEND
        log = cls(path, open_file(path, mode), writable=not readonly)
        try:
            if not readonly:
                log._lock()
            log._read()
        except BaseException:
            log.close()
            raise
        return log

    @classmethod
    def lock_only(cls, path: Path) -> TranscriptLog:
        """Takes the lock of a log without reading it, whatever its state. Raises LogHeld, OSError."""
        log = cls(path, open_file(path, os.O_RDWR), writable=False)
        try:
            log._lock()
        except BaseException:
            log.close()
            raise
        return log

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, record: Record, seq: int = 0) -> Entry:
        """Writes one record as one line; the kinds that matter are on the disk when this returns (see `_durable`),
        and with them everything written before. Others are synced with the next of these.

        `seq` is for copies, which keep the numbers of what they copy, for folds speak of numbers; else it is the next.
        The entry's record is what was written. Raises LogWriteError where it could not be; the file is then as it was.
        """
        if self.path is not None:
            self._ready()
        seq, at = max(seq, self._next), now()
        if self.path is None:
            entry = Entry(seq, at, record.kind, record, key=_key(record))
        else:
            record, line = self._without_secrets(record, encode(record, seq, at))
            place = self.write(line, sync=_durable(record)), len(line)
            entry = Entry(seq, at, record.kind, record, self, place, _key(record))
        self._next = seq + 1
        self.entries.append(entry)
        return entry

    def write(self, data: bytes, *, sync: bool) -> int:
        """Puts whole lines at the end of the file; gives the offset where they begin. Raises LogWriteError."""
        self._ready()
        start = self._size
        try:
            if not self._ended:
                data, start = b"\n" + data, start + 1
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
            self._dirty = True
            if sync and not self._waits:
                self._sync()
        except BaseException as error:
            self._take_back()
            if isinstance(error, OSError):
                raise LogWriteError(f"the log could not be written: {error.strerror or error}") from error
            raise
        self._size, self._ended = start + len(data) - (data[:1] == b"\n"), True
        return start

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is appended inside is made durable at the end, with one sync. Raises LogWriteError."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
            self.sync()

    def sync(self) -> None:
        """Makes everything appended so far durable. Raises LogWriteError."""
        if self._fd < 0 or not self._dirty:
            return
        try:
            self._sync()
        except OSError as error:
            raise LogWriteError(f"the log could not be written to disk: {error.strerror or error}") from error

    def close(self) -> None:
        """Makes everything durable and gives the session back. Records that were not decoded can still be read."""
        try:
            self.sync()
        finally:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd, self._writable = -1, False

    # -- reading ----------------------------------------------------------------------------------------------------

    def load(self, offset: int, length: int, kind: str) -> Record:
        """The record at a place of the file, whose checksum was tested on opening. One of the wrong shape is replaced
        by words that say so. Raises OSError where the file cannot be read."""
        try:
            return tamed(decode(self._bytes(offset, length)))
        except LineError as error:
            self.problems.append(f"a record of kind {kind} at byte {offset:,} cannot be understood: {error}")
            return _STAND_INS.get(kind, Unknown(kind))

    def hold(self, entry: Entry) -> None:
        """Counts a decoded record; the oldest are let go where there are many."""
        self._held.add(entry)

    def raw(self, entry: Entry) -> bytes:
        """The bytes of an entry's line as they stand in the file, without its end."""
        return self._bytes(entry.offset, entry.length)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _bytes(self, offset: int, length: int) -> bytes:
        if self._fd >= 0:
            return strip(_read_at(self._fd, offset, length))
        assert self.path is not None
        fd = open_file(self.path)
        try:
            return strip(_read_at(fd, offset, length))
        finally:
            os.close(fd)

    def _without_secrets(self, record: Record, line: bytes) -> tuple[Record, bytes]:
        found = [k for k in self.secrets if len(k) >= _LEAST_SECRET and _in_json(k) in line]
        if not found:
            return record, line
        for key in found:
            line = line.replace(_in_json(key), b"[key removed]")
        data = json.loads(line)
        clean = from_json(data)
        return clean, encode(clean, data["seq"], data["at"])

    def _ready(self) -> None:
        """The file as it has to be before a line is added. Raises LogWriteError where it cannot be brought there."""
        if not self._writable or self._fd < 0:
            raise LogWriteError(f"the session {self.path.stem if self.path else ''} is not open for writing")
        try:
            if self._torn >= 0:
                self._seal()
            found = os.fstat(self._fd)
        except OSError as error:
            raise LogWriteError(f"the log could not be written: {error.strerror or error}") from error
        if found.st_nlink == 0:
            raise LogWriteError(f"the log was deleted while the session was open: {self.path}")
        if found.st_size != self._size:
            self._size = found.st_size
            self._ended = self._size == 0 or _read_at(self._fd, self._size - 1, 1) == b"\n"

    def _sync(self) -> None:
        (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._fd)
        self._dirty = False

    def _take_back(self) -> None:
        """After a write that failed half way: the file ends where it ended before. Where not even that can be done, the
        rest of a line is left; the next one then begins on a line of its own."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, self._size)

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
                why = error.strerror or error
                self.problems.append(f"this disk has no locks ({why}): a second process on this session is not seen")
                return
            assert self.path is not None
            raise LogHeld(self.path, *_holder(self.path)) from error

    def _read(self) -> None:
        with os.fdopen(os.dup(self._fd), "rb", buffering=1 << 20) as lines:
            found = scan(lines, self)
        self.entries = found.entries
        self.problems += found.problems
        self._size = found.size
        self._next = 1 + (upto(self.entries[-1]) if self.entries else 0)
        self._torn = found.torn
        self._ended = found.size == 0 or _read_at(self._fd, found.size - 1, 1) == b"\n"
        if self._torn >= 0 and not self._writable:
            self.problems.append(f"the last {found.size - self._torn:,} bytes cannot be read (a torn record)")
        elif self._torn >= 0:
            with contextlib.suppress(LogWriteError):
                self._ready()

    def _seal(self) -> None:
        """Moves the torn tail into NAME.torn, durably, cuts it off the log, and notes the gap. Raises OSError."""
        assert self.path is not None
        start, self._torn = self._torn, -1
        try:
            torn = _read_at(self._fd, start, os.fstat(self._fd).st_size - start)
            side = _set_aside(self.path, torn)
            sync_folder(self.path.parent)
            os.ftruncate(self._fd, start)
            os.fsync(self._fd)
        except OSError:
            self._torn = start
            raise
        self._size = start
        self._ended = start == 0 or _read_at(self._fd, start - 1, 1) == b"\n"
        self.problems.append(f"a torn last record ({len(torn):,} bytes) was moved to {side.name}")
        self.append(Gap(len(torn), why=f"torn; moved to {side.name}"))


def _set_aside(path: Path, torn: bytes) -> Path:
    """The file beside a log that took a torn end; where something else bears its name, another. Raises OSError."""
    names = [".torn", ".torn-2", ".torn-3"]
    for side in map(path.with_suffix, names):
        try:
            write_durably(side, torn, os.O_APPEND)
        except OSError:
            if side.suffix == names[-1] or (os.path.isfile(side) and not os.path.islink(side)):
                raise
        else:
            return side
    raise AssertionError("one of the names was tried")


def _durable(record: Record) -> bool:
    if isinstance(record, ToolStarted):
        return record.effect != "read"
    return isinstance(record, _DURABLE)


def _key(record: Record) -> str:
    return record.key if isinstance(record, Note) else ""


def _in_json(key: str) -> bytes:
    return json.dumps(key, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


def now() -> str:
    """The present time as it stands in a record: UTC, ISO 8601, milliseconds."""
    seconds = time.time()
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{int(seconds * 1000) % 1000:03d}Z"


def _read_at(fd: int, offset: int, length: int) -> bytes:
    if not hasattr(os, "pread"):
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)
    data = os.pread(fd, length, offset)
    while len(data) < length and (more := os.pread(fd, length - len(data), offset + len(data))):
        data += more
    return data


def _holder(path: Path) -> tuple[int, str]:
    """(process, time) of who opened this log last, by its own note; (0, "") where there is none."""
    try:
        log = TranscriptLog.open(path, readonly=True)
    except (OSError, VersionError):
        return 0, ""
    for entry in reversed(log.entries):
        if entry.key == "opened" and isinstance(entry.record.value, dict):
            log.close()
            return int(entry.record.value.get("pid", 0)), entry.at
    log.close()
    return 0, ""
