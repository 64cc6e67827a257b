"""Sessions out of and into refold: what `sessions export` writes and `sessions import` reads."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent import sessions
from agent.export.atif import atif
from agent.export.story import story_of
from agent.export.text import markdown, page
from agent.faults import reason
from agent.sessions import PARENTS_SNAPSHOT as PARENTS
from agent.undo import NOTE as SNAPSHOT
from agent.version import VERSION
from transcripts.blobs import Blobs
from transcripts.catalog import describe, list_sessions, new_path, tasks_folder, tasks_of
from transcripts.lines import MOST_SEQ, LineError, encode, head, strip
from transcripts.log import TranscriptLog, VersionError, now
from transcripts.records import FORMAT_VERSION, Note, SessionStart, from_json, to_json

FORMAT = "refold-session"
_TASK_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


def whole(log: TranscriptLog) -> str:
    """All records and blobs of a session and of its sub-agents as one JSON document, from which `read` makes the same
    session again; of a sub-agent whose log cannot be read it says why."""
    document = _of_log(log)
    tasks, lost = dict[str, Any](), dict[str, str]()
    for path in tasks_of(log.path) if log.path else ():
        try:
            tasks[path.stem] = _of_file(path)
        except (OSError, VersionError) as error:
            lost[path.stem] = reason(error, path)
    more: dict[str, Any] = {"tasks": tasks} if tasks else {}
    more |= {"unreadable_tasks": lost} if lost else {}
    return json.dumps({**document, **more}, indent=1) + "\n"


def _of_file(path: Path) -> dict[str, Any]:
    log = TranscriptLog.open(path, readonly=True)
    try:
        return _of_log(log)
    finally:
        log.close()


def _of_log(log: TranscriptLog) -> dict[str, Any]:
    names = log.blobs.names()
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "program": f"refold {VERSION}",
        "records": [{"seq": e.seq, "at": e.at, **to_json(e.record)} for e in log.entries],
        "blobs": {name: base64.b64encode(body).decode() for name in names if (body := _body(log.blobs, name))},
    }


FORMATS: Mapping[str, Callable[[TranscriptLog], str]] = {
    "md": lambda log: markdown(story_of(log)),
    "html": lambda log: page(story_of(log)),
    "json": whole,
    "atif": lambda log: atif(story_of(log)),
}
"""Name -> what makes the text of a log."""


def export(path: Path, form: str) -> str:
    """The session in that file in one of FORMATS. Raises ValueError where that cannot be, OSError, VersionError."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        return FORMATS[form](log)
    finally:
        log.close()


def read(home: Path, cwd: Path, file: Path) -> Path:
    """Makes a session of an export in JSON, or of a log that lies elsewhere; gives its file. It is a new one: it has an
    id of its own and names the old one as where it comes from. A name that a session here has already stays with that.

    Raises ValueError where the file is neither, OSError, VersionError.
    """
    with file.open("rb") as opened:
        # A pipe (`<(ssh there refold sessions export ...)`) can be read only once.
        begin = opened.read(64)
        is_log = strip(begin).startswith(b'{"v":') and os.path.isfile(file)
        text = b"" if is_log else begin + opened.read()
    if is_log:
        log, _ = sessions.fork(home, cwd, file)
        log.close()
        assert log.path is not None
        return log.path
    document = _document(file, text)
    try:
        return _made(home, cwd, document)
    except ValueError as error:
        raise ValueError(f"{file} cannot be imported: {error}") from error


def _made(home: Path, cwd: Path, document: Mapping[str, Any]) -> Path:
    """A session of such a document, all of it or nothing."""
    ident, path = new_path(home, cwd)
    taken = {s.name for s in list_sessions(home)}
    sessions.write_all(path, _lines(document, ident), _blobs(document))
    try:
        for name, task in _tasks(document).items():
            if not _TASK_NAME.fullmatch(name):
                raise ValueError(f"it has a sub-agent that is named {name!r}.")
            sessions.write_all(tasks_folder(path) / f"{name}.jsonl", _lines(task), _blobs(task))
        info = describe(path)
        if info is not None and info.name in taken - {""}:
            sessions.rename(path, "")
    except BaseException:
        sessions.remove_files(path)
        raise
    return path


def _document(file: Path, text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{file} is no export of refold's own; `refold sessions export --format json` makes one.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"{file} does not say which version of the format it has.")
    if version > FORMAT_VERSION:
        raise ValueError(f"{file} was written by a newer refold.")
    if not isinstance(document.get("records"), list) or not document["records"]:
        raise ValueError(f"{file} has no records.")
    return document


def _tasks(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    tasks = document.get("tasks") or {}
    if not isinstance(tasks, dict) or not all(isinstance(task, dict) for task in tasks.values()):
        raise ValueError("what it says of sub-agents has the wrong shape.")
    return tasks


def _lines(document: Mapping[str, Any], ident: str = "") -> Iterator[bytes]:
    """The records as lines; with `ident` as those of a new session of that id."""
    last = -1
    begun = False
    records = document.get("records")
    for number, data in enumerate(records if isinstance(records, list) else (), 1):
        if not isinstance(data, dict) or type(seq := data.get("seq")) is not int or not 0 < seq < MOST_SEQ:
            raise ValueError(f"Its record {number} has no number of its own.")
        record, at = from_json(data), str(data.get("at") or now())
        if seq <= last:
            raise ValueError(f"Record {seq} stands behind record {last}.")
        last = seq
        if isinstance(record, SessionStart) and ident:
            origin = Note("origin", {"id": record.id})
            own = SessionStart(ident, record.cwd, record.program, record.model, branch=record.branch, parent=record.id)
            record, begun = (origin if begun else own), True
        elif isinstance(record, Note) and record.key == SNAPSHOT:
            # As in a fork: /undo begins with the copy, and the other's snapshots are removed with the other.
            record = Note(PARENTS, record.value)
        line = encode(record, seq, at)
        try:
            head(strip(line))
        except LineError as error:
            raise ValueError(f"Its record {number} could not be read again: {error}.") from error
        yield line


def _blobs(document: Mapping[str, Any]) -> Blobs:
    memory = Blobs(None)
    bodies = document.get("blobs") or {}
    if not isinstance(bodies, dict) or not all(isinstance(body, str) for body in bodies.values()):
        raise ValueError("Its blobs have the wrong shape.")
    for body in bodies.values():
        memory.put(base64.b64decode(body, validate=True))
    return memory


def _body(blobs: Blobs, name: str) -> bytes:
    try:
        return blobs.get(name)
    except KeyError:
        return b""
