"""Sessions out of and into refold: what `sessions export` writes and `sessions import` reads."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent import sessions
from agent.export_atif import atif
from agent.export_story import story_of
from agent.export_text import markdown, page
from agent.version import VERSION
from transcripts.blobs import Blobs
from transcripts.catalog import new_path, tasks_folder, tasks_of
from transcripts.lines import encode, strip
from transcripts.log import TranscriptLog, now
from transcripts.records import FORMAT_VERSION, Note, SessionStart, from_json, to_json

FORMAT = "refold-session"
_TASK_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


def whole(log: TranscriptLog) -> str:
    """All records and blobs of a session and of its sub-agents as one JSON document, from which `read` makes the same
    session again."""
    document = _of_log(log)
    tasks = {path.stem: _of_file(path) for path in (tasks_of(log.path) if log.path else ())}
    return json.dumps({**document, "tasks": tasks} if tasks else document, indent=1) + "\n"


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
    id of its own and names the old one as where it comes from.

    Raises ValueError where the file is neither, OSError, VersionError.
    """
    with file.open("rb") as opened:
        is_log = strip(opened.read(64)).startswith(b'{"v":')
    if is_log:
        log, _ = sessions.fork(home, cwd, file)
        log.close()
        assert log.path is not None
        return log.path
    document = _document(file)
    ident, path = new_path(home, cwd)
    sessions.write_all(path, _lines(document, ident), _blobs(document))
    for name, task in dict(document.get("tasks") or {}).items():
        if not _TASK_NAME.fullmatch(name) or not isinstance(task, dict):
            raise ValueError(f"{file} has a sub-agent that is named {name!r}.")
        sessions.write_all(tasks_folder(path) / f"{name}.jsonl", _lines(task), _blobs(task))
    return path


def _document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{file} is no export of refold's own; `refold sessions export --format json` makes one.")
    if not isinstance(document.get("version"), int) or document["version"] > FORMAT_VERSION:
        raise ValueError(f"{file} was written by a newer refold.")
    if not isinstance(document.get("records"), list):
        raise ValueError(f"{file} has no records.")
    return document


def _lines(document: Mapping[str, Any], ident: str = "") -> Iterator[bytes]:
    """The records as lines; with `ident` as those of a new session of that id."""
    last = -1
    begun = False
    for data in document["records"]:
        record, seq, at = from_json(data), int(data["seq"]), str(data.get("at") or now())
        if seq <= last:
            raise ValueError(f"Record {seq} stands behind record {last}.")
        last = seq
        if isinstance(record, SessionStart) and ident:
            origin = Note("origin", {"id": record.id})
            own = SessionStart(ident, record.cwd, record.program, record.model, branch=record.branch, parent=record.id)
            record, begun = (origin if begun else own), True
        yield encode(record, seq, at)


def _blobs(document: Mapping[str, Any]) -> Blobs:
    memory = Blobs(None)
    for body in dict(document.get("blobs") or {}).values():
        memory.put(base64.b64decode(body, validate=True))
    return memory


def _body(blobs: Blobs, name: str) -> bytes:
    try:
        return blobs.get(name)
    except KeyError:
        return b""
