"""Finding sessions: a list of what there is, by project folder, without reading whole files."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from transcripts.lines import LineError, VersionError, decode, head, strip
from transcripts.records import Note, Record, SessionStart, User

_FRONT, _BACK = 64 * 1024, 256 * 1024
"""Bytes read from a file's two ends: the first words stand at the front, the newest name and model at the back."""


class NotFound(Exception):
    """No session answers to this; the message says what there is."""


@dataclass(frozen=True)
class SessionInfo:
    """One row of the list. Times are UTC, ISO 8601; `size` is bytes; `first` the person's first words."""

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


def sessions_folder(home: Path) -> Path:
    """Where all sessions live."""
    return home / "sessions"


def project_folder(home: Path, cwd: Path) -> Path:
    """The folder of one project's sessions: a readable name and a short hash of the whole path."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", cwd.name)[:40] or "root"
    return sessions_folder(home) / f"{name}-{hashlib.sha256(str(cwd).encode()).hexdigest()[:8]}"


def new_path(home: Path, cwd: Path) -> tuple[str, Path]:
    """(id, path) of a session to be created now."""
    ident = secrets.token_hex(4)
    return ident, project_folder(home, cwd) / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{ident}.jsonl"


def list_sessions(home: Path, cwd: Path | None = None) -> list[SessionInfo]:
    """Sessions, the one used last first; of one folder where `cwd` is given. Files that cannot be read are left out."""
    place = project_folder(home, cwd) if cwd else sessions_folder(home)
    files = place.glob("*.jsonl") if cwd else place.glob("*/*.jsonl")
    found = [info for path in files if (info := describe(path)) is not None]
    return sorted(found, key=lambda s: s.updated, reverse=True)


def find_session(home: Path, cwd: Path, ref: str) -> Path:
    """The file of a session: "latest" (of this folder), a path, an id or the beginning of one, or a name.

    Raises NotFound where nothing or more than one answers.
    """
    if ref in ("", "latest"):
        here = list_sessions(home, cwd)
        if not here:
            raise NotFound(f"There is no session of {cwd} yet.")
        return here[0].path
    if ref.endswith(".jsonl") and Path(ref).expanduser().is_file():
        return Path(ref).expanduser()
    everywhere = list_sessions(home)
    named = [s for s in everywhere if s.name == ref] or [s for s in everywhere if s.id.startswith(ref)]
    if not named:
        raise NotFound(f"No session has the id or name {ref!r}; `refold sessions` lists them.")
    if len({s.id for s in named}) > 1 and named[0].name != ref:
        raise NotFound(f"{ref!r} is the beginning of {len(named)} ids: {', '.join(s.id for s in named[:5])}.")
    return named[0].path


def describe(path: Path) -> SessionInfo | None:
    """The row of one file; None where it is no session or cannot be read."""
    try:
        stat = path.stat()
        records = _ends(path, stat.st_size)
    except OSError:
        return None
    start = next((r for r in records if isinstance(r, SessionStart)), None)
    first = next((r.text for r in records if isinstance(r, User) and r.source != "harness"), "")
    notes = {r.key: r.value for r in records if isinstance(r, Note)}
    if start is None and not first:
        return None
    updated = datetime.fromtimestamp(stat.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return SessionInfo(
        id=start.id if start else path.stem.rpartition("-")[2],
        path=path,
        cwd=start.cwd if start else "",
        name=str(notes.get("name") or (start.name if start else "")),
        first=" ".join(first[:300].split()),
        started=datetime.fromtimestamp(stat.st_ctime, UTC).isoformat() if start is None else _started(path, updated),
        updated=updated,
        size=stat.st_size,
        model=str(notes.get("model") or (start.model if start else "")),
        branch=start.branch if start else "",
    )


def _started(path: Path, default: str) -> str:
    found = re.match(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-", path.name)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else default


def _ends(path: Path, size: int) -> list[Record]:
    with path.open("rb") as file:
        front = file.read(_FRONT)
        file.seek(max(len(front), size - _BACK))
        back = file.read()
    lines = front.split(b"\n")
    if len(front) + len(back) < size or back:
        lines += back.split(b"\n")
    return [record for line in lines if (record := _record(line)) is not None]


def _record(line: bytes) -> Record | None:
    body = strip(line)
    try:
        return decode(body) if head(body).kind in ("session", "user", "note") else None
    except (LineError, VersionError):
        return None
