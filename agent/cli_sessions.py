"""`refold sessions`: the sessions that are kept, and what is in them."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.cli_common import told
from agent.exits import Exit, Stop
from agent.settings import Settings
from transcripts.catalog import NotFound, SessionInfo, describe, find_session, list_sessions
from transcripts.log import LogHeld, TranscriptLog
from transcripts.records import Assistant, Checkpoint, ToolResult, User

ACTIONS = ("list", "show", "path", "rm")


def sessions(values: dict[str, Any]) -> int:
    """Lists, shows, finds or removes sessions."""
    return told(lambda: _sessions(values))


def _sessions(values: dict[str, Any]) -> None:
    cwd = Path(values["cd"] or ".").expanduser().resolve()
    home = Settings.load({}, os.environ, cwd).home
    action, ref = values["action"] or "list", values["ref"]
    if action not in ACTIONS:
        action, ref = "show", action
    if action == "list":
        _list(list_sessions(home, None if values["all"] else cwd), values["json"], values["all"])
        return
    try:
        path = find_session(home, cwd, ref)
    except NotFound as error:
        raise Stop(Exit.USAGE, str(error)) from None
    {"show": _show, "path": lambda p: print(p), "rm": _remove}[action](path)


def _list(found: list[SessionInfo], as_json: bool, everywhere: bool) -> None:
    if as_json:
        for info in found:
            print(json.dumps({**info.__dict__, "path": str(info.path)}, ensure_ascii=False))
        return
    if not found:
        print("No session yet." if everywhere else "No session of this folder yet (--all shows those of others).")
    for info in found:
        words = info.name or info.first[:60] or "(nothing was said)"
        where = f"  {info.cwd}" if everywhere else ""
        print(f"{info.id}  {age(info.updated):>8}  {info.size / 1024:>7.0f} KB  {info.model[:28]:<28}  {words}{where}")


def age(stamp: str) -> str:
    """How long ago a UTC time was, in one unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(stamp.replace("Z", "+00:00"))).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"


def _show(path: Path) -> None:
    """The conversation as text, with the sequence number of each record."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        for entry in log.entries:
            if line := _shown(entry.kind, entry.record):
                print(f"#{entry.seq} {line}")
    finally:
        log.close()


def _shown(kind: str, record: Any) -> str:
    match record:
        case User():
            return f"{'you' if record.source == 'typed' else record.source}: {record.text}"
        case Assistant():
            calls = "".join(f"\n  -> {c.name} {c.arguments[:200]}" for c in record.calls)
            return f"refold: {record.text}{calls}"
        case ToolResult():
            first = record.text.strip().partition("\n")[0][:200]
            return f"  {record.name} {record.status}: {first}"
        case Checkpoint():
            return f"~ folded ({', '.join(record.strategies)}): {record.tokens_before} -> {record.tokens_after} tokens"
    return ""


def _remove(path: Path) -> None:
    """Removes a session that nobody holds, with its blobs and what was set aside beside it."""
    info = describe(path)
    try:
        TranscriptLog.open(path).close()
    except LogHeld as error:
        raise Stop(Exit.USAGE, f"{error}; it is not removed") from None
    for beside in path.parent.glob(path.stem + ".*"):
        shutil.rmtree(beside) if beside.is_dir() else beside.unlink()
    print(f"Removed {info.id if info else path.stem}: {path}")
