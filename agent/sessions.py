"""Sessions as files: copied, renamed, removed. What is done inside one is agent/session.py."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent.abandoned import hold
from agent.folders import git_root
from agent.safety import snapshots_folder
from agent.subagents.logs import BEGUN as TASK_BEGUN
from agent.undo import NOTE as SNAPSHOT
from agent.undo import SnapshotError
from agent.undo.store import Store
from agent.version import VERSION
from transcripts.blobs import Blobs, sync_folder
from transcripts.catalog import new_path, tasks_folder, tasks_of
from transcripts.files import private_folder
from transcripts.lines import encode
from transcripts.log import Entry, TranscriptLog, VersionError, now
from transcripts.records import Note, SessionStart

PARENTS_SNAPSHOT = f"parents_{SNAPSHOT}"
"""The key of a note that, in a copy, stands for one about a snapshot: it is the other's, and goes with the other."""

_BLOB = re.compile(rb'"([0-9a-f]{32})"')


def start_of(entries: Sequence[Entry]) -> SessionStart | None:
    """The record that says where and when a session began; None where it is lost."""
    return next((e.record for e in entries if e.kind == SessionStart.kind), None)


def id_of(path: Path) -> str:
    """The id that a session's file is named by."""
    return path.stem.rpartition("-")[2]


def fork(home: Path, cwd: Path, source: Path, at: int = 0) -> tuple[TranscriptLog, str]:
    """(log, id) of a new session that begins with everything another one said, or all up to its record `at`.

    Lines are copied as they are, numbers and times included; blobs are copied, not shared; the name stays with the
    other one. Raises ValueError where there is no such record, OSError, VersionError.
    """
    old = TranscriptLog.open(source, readonly=True)
    try:
        entries = old.entries[: whole(old.entries, at)] if at else old.entries
        ident, path = new_path(home, cwd)
        write_all(path, _lines(old, entries, ident, cwd), old.blobs)
        _copy_tasks(source, path, {str(e.record.value.get("id")) for e in entries if e.key == TASK_BEGUN})
    finally:
        old.close()
    log = TranscriptLog.open(path)
    log.append(Note("name", ""))
    return log, ident


def _copy_tasks(source: Path, path: Path, idents: set[str]) -> None:
    """Copies the logs of the sub-agents that are spoken of, as they are."""
    for log in (p for p in tasks_of(source) if id_of(p) in idents):
        tasks_folder(path).mkdir(mode=0o700, exist_ok=True)
        for beside in log.parent.glob(f"{glob.escape(log.stem)}.*"):
            to = tasks_folder(path) / beside.name
            shutil.copytree(beside, to) if os.path.isdir(beside) else shutil.copy2(beside, to)


def whole(entries: Sequence[Entry], at: int) -> int:
    """How many entries a copy up to record `at` takes: where that parts calls from their results, those come along.

    Raises ValueError where there is no record of that number.
    """
    end = next((n + 1 for n, e in enumerate(entries) if e.seq == at), 0)
    if not end:
        last = entries[-1].seq if entries else 0
        raise ValueError(f"There is no record #{at}; they go up to #{last}.")
    waiting = _waiting(entries[:end])
    for n in range(end, len(entries)):
        if not waiting or entries[n].kind in ("user", "assistant"):
            break
        if entries[n].kind == "tool_result":
            waiting.discard(entries[n].record.call_id)
            end = n + 1
    while end < len(entries) and entries[end].kind in ("usage", "turn_end"):
        end += 1
    return end


def _waiting(entries: Sequence[Entry]) -> set[str]:
    """Ids of the calls that have no result at the end of these entries."""
    answered: set[str] = set()
    for entry in reversed(entries):
        if entry.kind == "tool_result":
            answered.add(entry.record.call_id)
        elif entry.kind == "assistant":
            return {c.id for c in entry.record.calls} - answered
        elif entry.kind == "user":
            break
    return set()


def _lines(old: TranscriptLog, entries: Sequence[Entry], ident: str, cwd: Path) -> Iterator[bytes]:
    """The lines of the copy: the session's own beginning in the place of the other's, all else as it is."""
    begun = start_of(entries)
    upto = entries[-1].seq if entries else 0
    start = SessionStart(
        ident, str(cwd), f"refold {VERSION}", begun.model if begun else "", branch=begun.branch if begun else "",
        parent=begun.id if begun else "", parent_seq=upto,
    )  # fmt: skip
    if begun is None:
        yield encode(start, 0, now())
    written = begun is None
    for entry in entries:
        if entry.kind == SessionStart.kind:
            yield encode(Note("origin", {"id": entry.record.id}) if written else start, entry.seq, now())
            written = True
        elif entry.key == SNAPSHOT:
            # /undo in the copy begins with the copy: the other's snapshots are removed with the other.
            yield encode(Note(PARENTS_SNAPSHOT, entry.record.value), entry.seq, entry.at)
        elif entry.altered or not entry.length:
            record = entry.record
            yield encode(record, entry.seq, entry.at or now())
        else:
            yield old.raw(entry) + b"\n"


def write_all(path: Path, lines: Iterable[bytes], blobs: Blobs) -> None:
    """A log of these lines, there as a whole or not at all, with copies of the blobs that its lines name."""
    private_folder(path.parent)
    part = path.with_suffix(".part")
    names: set[str] = set()
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            hold(file)  # as long as it is open, nobody takes it for left behind
            for line in lines:
                names.update(name.decode() for name in _BLOB.findall(line))
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
            Blobs(path.with_suffix(".blobs")).take(blobs, names)
            part.rename(path)
            sync_folder(path.parent)
    except BaseException:
        remove_files(path)
        raise


def remove_files(path: Path) -> None:
    """Removes a session's file and all that lies beside it under its name. Raises OSError."""
    for beside in path.parent.glob(f"{glob.escape(path.stem)}.*"):
        if beside != path:
            shutil.rmtree(beside) if os.path.isdir(beside) else beside.unlink()
    path.unlink(missing_ok=True)


def remove(home: Path, path: Path) -> None:
    """Removes a session that nobody holds, with its blobs and snapshots. Raises LogHeld, OSError."""
    lock = TranscriptLog.lock_only(path)
    try:
        with contextlib.suppress(VersionError, SnapshotError):
            _forget_snapshots(home, path)
        remove_files(path)
    finally:
        lock.close()


def _forget_snapshots(home: Path, path: Path) -> None:
    log = TranscriptLog.open(path, readonly=True)
    try:
        start = start_of(log.entries)
        notes = (e.record.value for e in log.entries if e.key == SNAPSHOT)
        idents = {str(note["id"]) for note in notes if isinstance(note, dict) and "id" in note}
    finally:
        log.close()
    cwd = Path(start.cwd) if start else Path("/")
    folder = snapshots_folder(home, git_root(cwd) or cwd)
    if idents and os.path.isdir(folder):
        Store(folder).forget(idents)


def rename(path: Path, name: str) -> None:
    """Gives a session that nobody holds a name. Raises LogHeld, OSError, LogWriteError, VersionError."""
    log = TranscriptLog.open(path)
    try:
        log.append(Note("name", name))
    finally:
        log.close()
