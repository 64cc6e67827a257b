"""Finding sessions: a list of what there is, by project folder, without reading whole files."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from transcripts.files import opened
from transcripts.lines import MOST_SEQ, LineError, VersionError, decode, head, strip
from transcripts.records import Note, Record, SessionStart, User

_FRONT, _BACK = 64 * 1024, 64 * 1024
"""Bytes read from a file's two ends: the first words stand at the front, the note that sums it up at the back."""

_MOST_BACK = 4 * 1024 * 1024
"""Bytes from the end in which that note is looked for, in growing steps; only a long turn that crashed needs more than
the first."""


class NotFound(Exception):
    """No session answers to this; the message says what there is."""


@dataclass(frozen=True)
class SessionInfo:
    """One row of the list. Times are UTC, ISO 8601; `size` is bytes; `first` the person's first words; `messages` how
    many were said (0 where that cannot be told from the ends of the file); `problem` why it cannot be resumed as a
    whole, in plain words, "" where it can; `task_of` the id of the session whose sub-agent it is, "" for a session."""

    id: str
    path: Path
    cwd: str
    name: str
    first: str
    started: str
    updated: str
    size: int
    model: str
    branch: str
    messages: int = 0
    problem: str = ""
    task_of: str = ""


def sessions_folder(home: Path) -> Path:
    """Where all sessions live."""
    return home / "sessions"


def project_folder(home: Path, cwd: Path) -> Path:
    """The folder of one project's sessions: a readable name and a short hash of the whole path."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", cwd.name)[:40] or "root"
    whole = str(cwd).encode("utf-8", "surrogateescape")
    return sessions_folder(home) / f"{name}-{hashlib.sha256(whole).hexdigest()[:8]}"


def new_path(home: Path, cwd: Path) -> tuple[str, Path]:
    """(id, path) of a session to be created now."""
    ident = secrets.token_hex(4)
    return ident, project_folder(home, cwd) / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{ident}.jsonl"


def tasks_folder(session: Path) -> Path:
    """Where the logs of a session's sub-agents lie: beside its own file, under its name."""
    return session.with_suffix(".tasks")


def tasks_of(session: Path) -> list[Path]:
    """The logs of a session's sub-agents, oldest first."""
    return sorted(tasks_folder(session).glob("*.jsonl"))


def list_sessions(home: Path, cwd: Path | None = None, *, tasks: bool = False) -> list[SessionInfo]:
    """Sessions in which something was said, the one used last first; of one folder where `cwd` is given. Those of
    sub-agents only with `tasks`.

    A file that is damaged, or newer than this program, is there with its problem; one that cannot be opened is not.
    """
    place = project_folder(home, cwd) if cwd else sessions_folder(home)
    above = "" if cwd else "*/"
    files = [*place.glob(f"{above}*.jsonl"), *(place.glob(f"{above}*.tasks/*.jsonl") if tasks else ())]
    found = [info for path in files if (info := describe(path)) is not None]
    return sorted((s for s in found if s.first or s.messages or s.problem), key=lambda s: s.updated, reverse=True)


def find_session(home: Path, cwd: Path, ref: str) -> Path:
    """The file of a session: "latest" (of this folder), a path, a name, an id or the beginning of one. A sub-agent's is
    found by its id.

    Raises NotFound where nothing or more than one answers.
    """
    if ref in ("", "latest"):
        here = [s for s in list_sessions(home, cwd) if not s.problem]
        if not here:
            raise NotFound(f"There is no session of {cwd} yet.{_moved_here(home, cwd)}")
        return here[0].path
    if ref.endswith(".jsonl") and _is_file(path := Path(os.path.expanduser(ref))):
        if not holds_records(path):
            raise NotFound(f"{path} is not the log of a session: it holds no record of one.")
        return path
    everywhere = list_sessions(home)
    found = [s for s in everywhere if s.name == ref][:1] or [s for s in everywhere if s.id.startswith(ref)]
    found = found or [s for s in list_sessions(home, tasks=True) if s.task_of and s.id.startswith(ref)]
    if not found:
        raise NotFound(f"No session has the id or name {ref!r}; `refold sessions` lists them.")
    if len({s.id for s in found}) > 1:
        raise NotFound(f"{ref!r} is the beginning of {len(found)} ids: {', '.join(s.id for s in found[:5])}.")
    return found[0].path


def _is_file(path: Path) -> bool:
    """Raises NotFound where that cannot even be looked at."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.") from None


def named(home: Path, name: str) -> SessionInfo | None:
    """The session of that name, the one used last; None where there is none."""
    return next((s for s in list_sessions(home) if s.name == name), None)


def _moved_here(home: Path, cwd: Path) -> str:
    """What can be said of a folder that was renamed or moved: whose folder is gone may be meant."""
    gone = [s for s in list_sessions(home) if s.cwd and not s.problem and not os.path.exists(s.cwd)]
    gone = [s for s in gone if os.path.basename(s.cwd) == cwd.name] or gone
    if not gone:
        return ""
    return f" The newest of a folder that is gone, {gone[0].cwd}, goes on here with --resume {gone[0].id}."


def holds_records(path: Path) -> bool:
    """Whether a file holds a record of ours, at its beginning or its end; False too where it cannot be read."""
    try:
        with opened(path) as file:
            front = _Ends()
            front.take(file.read(_FRONT).split(b"\n"))
            size = os.fstat(file.fileno()).st_size
            return bool(front.records or front.problem) or bool(size > _FRONT and _read_back(file, size).records)
    except OSError:
        return False


def describe(path: Path) -> SessionInfo | None:
    """The row of one file; None where it is empty, or no file at all."""
    try:
        with opened(path) as file:
            stat = os.fstat(file.fileno())
            front = back = _Ends()
            front.take(file.read(_FRONT).split(b"\n"))
            front.first = front.first or front.ran or _beginning(file)
            if stat.st_size <= _FRONT:
                front.whole = True
            else:
                back = _read_back(file, stat.st_size)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        return _unreadable(path, error)
    if not stat.st_size:
        return None
    start = front.start or back.start or SessionStart(path.stem.rpartition("-")[2], "")
    summary = back.state or {}
    return SessionInfo(
        id=start.id,
        path=path,
        cwd=start.cwd,
        name=str(_first_of(back.name, summary.get("name"), front.name, start.name)),
        first=" ".join(front.first[:300].split()),
        started=_started(path, stat.st_mtime),
        updated=_utc(stat.st_mtime),
        size=stat.st_size,
        model=str(_first_of(back.model, summary.get("model"), front.model, start.model)),
        branch=start.branch,
        messages=_count(summary.get("messages")) + back.messages if back.state or back.whole else 0,
        problem=front.problem or back.problem or ("" if front.records + back.records else "nothing in it can be read"),
        task_of=path.parent.stem.rpartition("-")[2] if path.parent.suffix == ".tasks" else "",
    )


def _unreadable(path: Path, error: OSError) -> SessionInfo:
    """The row of a file that is there and cannot be read: it does not vanish without a word."""
    started = _started(path, 0.0)
    problem = f"it cannot be read: {error.strerror or error}"
    return SessionInfo(path.stem.rpartition("-")[2], path, "", "", "", started, started, 0, "", "", problem=problem)


class _Ends:
    """What the lines at one end of a file say. Of notes the one taken last counts."""

    def __init__(self) -> None:
        self.start: SessionStart | None = None
        self.first = self.ran = ""
        self.name: str | None = None
        self.model: str | None = None
        self.state: dict[str, Any] | None = None
        self.messages = self.records = 0
        self.problem = ""
        self.whole = False

    def take(self, lines: Iterable[bytes]) -> None:
        """Reads lines in order; what is no whole record is passed over."""
        for line in lines:
            body = strip(line)
            try:
                known = head(body)
                self.records += 1
                self.messages += known.kind in ("user", "assistant", "tool_result")
                if known.kind in ("session", "user") or known.key in ("name", "model", "state"):
                    self._record(decode(body))
            except LineError:
                continue
            except VersionError as error:
                self.problem = str(error)

    def _record(self, record: Record) -> None:
        match record:
            case SessionStart():
                self.start = self.start or record
            case User(text, "shell"):
                self.ran = self.ran or "! " + text.partition("\n$ ")[2].partition("\n")[0]
            case User():
                self.first = self.first or (record.text if record.source != "harness" else "")
            case Note("name", value):
                self.name = str(value)
            case Note("model", value):
                self.model = str(value)
            case Note("state", dict() as value):
                self.state, self.name, self.model, self.messages = value, None, None, 0
            case _:
                pass


def _read_back(file: BinaryIO, size: int) -> _Ends:
    """Reads from the end of a file back to the note that sums it up, or as far as that is worth it."""
    length = _BACK
    while True:
        file.seek(max(0, size - length))
        back = _Ends()
        back.take(file.read().split(b"\n")[0 if length >= size else 1 :])
        back.whole = length >= size
        if back.whole or back.state is not None or length >= _MOST_BACK:
            return back
        length *= 4


def _beginning(file: BinaryIO) -> str:
    """The first words of a message whose line is longer than what was read of the file."""
    file.seek(0)
    found = _LONG_WORDS.search(file.read(_FRONT))
    return found[1].decode("utf-8", "ignore").replace("\\n", " ").replace('\\"', '"') if found else ""


_LONG_WORDS = re.compile(rb'"kind":"user","text":"((?:[^"\\]|\\.){1,1200})')


def _first_of(*values: Any) -> Any:
    """The first value that says anything; a name that was taken away ("") counts as said."""
    return next((v for v in values if v is not None), "")


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < MOST_SEQ else 0


def _utc(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        moment = datetime.fromtimestamp(0, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def _started(path: Path, changed: float) -> str:
    """When a session began, by the name of its file; else when the file was last changed."""
    found = re.match(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-", path.name)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else _utc(changed)
