"""`refold sessions`: the sessions that are kept, what is in them, and what can be done with them as files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent import check_session
from agent import sessions as files
from agent.abandoned import clear
from agent.clean import one_line, plain
from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.exits import Exit, Stop
from agent.export import forms as export
from agent.faults import reason
from agent.settings import home_folder
from transcripts.blobs import Blobs
from transcripts.catalog import NotFound, SessionInfo, describe, find_session, list_sessions, tasks_of
from transcripts.log import LogHeld, LogWriteError, TranscriptLog, VersionError
from transcripts.records import Assistant, Checkpoint, Gap, Rewind, ToolResult, User

Values = dict[str, Any]


def sessions(values: Values) -> int:
    """Does to sessions what the words ask for."""
    return told(lambda: _sessions(values))


def _sessions(values: Values) -> int:
    cwd = folder_of(values)
    home = home_folder(cwd)
    action, ref = values["action"] or "list", values["ref"]
    if action not in ACTIONS:
        action, ref = "show", action
    if action in ("list", "rm") and (gone := clear(home)):
        print(f"refold: removed what an interrupted copy had left: {', '.join(map(str, gone))}", file=sys.stderr)
    try:
        return ACTIONS[action](home, cwd, ref, values) or 0
    except (NotFound, LogHeld, VersionError, ValueError) as error:
        raise Stop(Exit.USAGE, str(error)) from None
    except (OSError, LogWriteError) as error:
        raise Stop(Exit.FAILED, f"sessions {action} failed: {reason(error)}") from None


def _list(home: Path, cwd: Path, ref: str, values: Values) -> None:
    found = list_sessions(home, None if values["all"] else cwd, tasks=values["tasks"])
    if values["json"]:
        for info in found:
            print(json.dumps({**info.__dict__, "path": str(info.path)}, ensure_ascii=False))
        return
    if not found:
        print("No session yet." if values["all"] else "No session of this folder yet (--all shows those of others).")
    for info in found:
        print(_row(info, values["all"]))


def _row(info: SessionInfo, everywhere: bool) -> str:
    words = one_line(info.name or info.first or "(nothing was said)", 60)
    words = f"sub-agent of {info.task_of}: {words}" if info.task_of else words
    trouble = f"  [{info.problem}]" if info.problem else ""
    where = f"  {info.cwd}" if everywhere else ""
    size = f"{info.size / 1024:>7.0f} KB"
    return f"{info.id}  {age(info.updated):>10}  {size}  {one_line(info.model, 28):<28}  {words}{trouble}{where}"


def age(stamp: str) -> str:
    """How long ago a UTC time was, in one unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(stamp.replace("Z", "+00:00"))).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"


def _show(home: Path, cwd: Path, ref: str, values: Values) -> None:
    """The conversation as text, with the sequence number of each record."""
    log = TranscriptLog.open(find_session(home, cwd, ref), readonly=True)
    try:
        for problem in log.problems:
            print(f"refold: {problem}", file=sys.stderr)
        for entry in log.entries:
            if line := _shown(entry.record):
                print(f"#{entry.seq} {plain(line)}")
    finally:
        log.close()


def _shown(record: Any) -> str:
    match record:
        case User():
            return f"{'you' if record.source == 'typed' else record.source}: {record.text}"
        case Assistant():
            calls = "".join(f"\n  -> {c.name} {one_line(c.arguments)}" for c in record.calls)
            return f"refold: {record.text}".rstrip() + calls
        case ToolResult():
            lines = plain(record.text).strip().split("\n")
            more = f" (and {len(lines) - 1} more line{'s' if len(lines) > 2 else ''})" if len(lines) > 1 else ""
            return f"  {record.name} {record.status}: {one_line(lines[0])}{more}"
        case Checkpoint():
            return f"~ folded ({', '.join(record.strategies)}): {record.tokens_before} -> {record.tokens_after} tokens"
        case Rewind():
            return f"~ went back to #{record.to}"
        case Gap():
            return f"~ lost: {f'records {record.first} to {record.last}' if record.first else f'{record.bytes} bytes'}"
    return ""


def _path(home: Path, cwd: Path, ref: str, values: Values) -> None:
    print(find_session(home, cwd, ref))


def _verify(home: Path, cwd: Path, ref: str, values: Values) -> int:
    """Whether every record can be read and every request comes out as it was sent."""
    one = None if values["all"] else find_session(home, cwd, ref)
    paths = [one, *tasks_of(one)] if one else [s.path for s in list_sessions(home, tasks=True)]
    found = [check_session.check(path) for path in paths]
    for one in found:
        print(json.dumps(one.as_json(), ensure_ascii=False) if values["json"] else one.words())
    return int(Exit.OK if all(one.good for one in found) else Exit.CHECK)


def _export(home: Path, cwd: Path, ref: str, values: Values) -> None:
    form = values["format"] or _form_of(values["output"])
    text = export.export(find_session(home, cwd, ref), form)
    if not values["output"] or values["output"] == "-":
        sys.stdout.write(text)
        return
    Path(os.path.expanduser(values["output"])).write_text(text, encoding="utf-8", newline="\n")
    print(f"Written: {values['output']}")


def _form_of(output: str | None) -> str:
    """The format that a file's name asks for; Markdown where it says nothing."""
    ending = Path(output).suffix.lstrip(".") if output else ""
    return ending if ending in export.FORMATS else "md"


def _import(home: Path, cwd: Path, ref: str, values: Values) -> None:
    if not ref:
        raise Stop(Exit.USAGE, "which file? refold sessions import FILE")
    path = export.read(home, cwd, Path(os.path.expanduser(ref)))
    print(f"{files.id_of(path)}  {path}")


def _fork(home: Path, cwd: Path, ref: str, values: Values) -> None:
    """A copy, up to a record where `--at` names one."""
    log, ident = files.fork(home, cwd, find_session(home, cwd, ref), values["at"] or 0)
    log.close()
    print(f"{ident}  {log.path}")


def _rename(home: Path, cwd: Path, ref: str, values: Values) -> None:
    name = values["name"] or ""
    if not ref or not name.strip():
        raise Stop(Exit.USAGE, "refold sessions rename REF NAME")
    path = find_session(home, cwd, ref)
    other = next((s for s in list_sessions(home) if s.name == name and s.path != path), None)
    if other is not None:
        raise Stop(Exit.USAGE, f"the session {other.id} has the name {name!r} already")
    files.rename(path, name)
    print(f"Renamed: {name}")


def _remove(home: Path, cwd: Path, ref: str, values: Values) -> None:
    """Removes a session that nobody holds, with its blobs and what was set aside beside it. What is gone is gone: the
    person is asked first, and where nobody can answer it takes --yes."""
    if not ref:
        raise Stop(Exit.USAGE, "which one? refold sessions rm REF")
    path = find_session(home, cwd, ref)
    if not values["yes"]:
        _ask_to_remove(path)
    files.remove(home, path)
    print(f"Removed {files.id_of(path)}: {path}")


def _ask_to_remove(path: Path) -> None:
    """Raises Stop unless the person says yes."""
    if not (os.isatty(0) and os.isatty(2)):
        why = f"sessions rm removes {files.id_of(path)} for good, and nobody can be asked here: add --yes"
        raise Stop(Exit.USAGE, why)
    TranscriptLog.lock_only(path).close()  # one that is in use is not asked about
    print(_what_goes(path), end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise Stop(Exit.FAILED, "nothing was removed")


def _what_goes(path: Path) -> str:
    """The session and what goes with it, and the question."""
    info = describe(path)
    words = one_line(info.name or info.first or "(nothing was said)", 60) if info else "(nothing is in it)"
    about = f", {info.messages} messages, last used {age(info.updated)}, of {plain(info.cwd)}" if info else ""
    bodies, tasks = Blobs(path.with_suffix(".blobs")).names(), tasks_of(path)
    more = [f"{len(bodies)} stored {'body' if len(bodies) == 1 else 'bodies'}"] if bodies else []
    more += [f"{len(tasks)} {'sub-agent' if len(tasks) == 1 else 'sub-agents'}"] if tasks else []
    goes = ", ".join([*more, "its snapshots for /undo"])
    return f"{files.id_of(path)}: {words}{about}\nWith it go {goes}. Remove it for good? [y/N] "


ACTIONS: dict[str, Callable[[Path, Path, str, Values], int | None]] = {
    "list": _list,
    "show": _show,
    "path": _path,
    "verify": _verify,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "rename": _rename,
    "rm": _remove,
}
