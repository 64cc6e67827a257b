"""The log of a session from the session's side: opening the right one, and what it says of the session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import sessions
from agent.faults import reason
from agent.safety import OWN_KEYS
from agent.settings import PERMISSION_MODES, Settings
from agent.subagents.logs import ENDED
from agent.version import VERSION, WORDING
from runtime.crew import total
from tools.base import ToolContext
from transcripts.catalog import NotFound, find_session, new_path
from transcripts.log import Entry, LogHeld, TranscriptLog, VersionError
from transcripts.records import Note, SessionStart, Usage

_MOST_RESULTS, _MOST_BYTES = 2_000, 4_000_000
"""How far back a resume looks for the files the model has seen; one that is older is simply read again."""


_COUNTED = ("input", "output", "cached", "reasoning", "cost", "seconds")


class SessionError(Exception):
    """A session that cannot be opened; the message says why and what to do."""


@dataclass(frozen=True)
class Kept:
    """What a log says of its session. `spec` is the model as it was named last, `todo` and `cwd` are the tools' own."""

    start: SessionStart | None = None
    name: str = ""
    spec: str = ""
    usage: Usage = field(default_factory=Usage)
    todo: list[Any] | None = None
    cwd: str = ""
    mode: str = ""
    """The permission mode the person chose last; never yolo, which has to be chosen anew."""


def open_log(settings: Settings, cwd: Path, resume: str, fork: bool, persist: bool) -> tuple[TranscriptLog, str]:
    """(log, id): a new one, one that exists, or a copy of one. Raises SessionError."""
    log, ident = _log(settings.home, cwd, resume, fork, persist)
    log.secrets = own_keys(settings)
    return log, ident


def _log(home: Path, cwd: Path, resume: str, fork: bool, persist: bool) -> tuple[TranscriptLog, str]:
    if not resume:
        ident, path = new_path(home, cwd)
        try:
            return (TranscriptLog.create(path) if persist else TranscriptLog.memory()), ident
        except OSError as error:
            about = path if error.filename == str(path) else path.parent
            raise SessionError(
                f"The session cannot be written to {path.parent}: {reason(error, about)}. "
                "Set REFOLD_HOME to another folder, or keep no session: --no-session-persistence."
            ) from error
    try:
        path = find_session(home, cwd, resume)
        if fork:
            return sessions.fork(home, cwd, path)
        log = TranscriptLog.open(path)
    except NotFound as error:
        raise SessionError(str(error)) from error
    except LogHeld as error:
        raise SessionError(f"{error}. Close it there, or go on in a copy with --fork-session.") from error
    except (VersionError, OSError) as error:
        raise SessionError(f"The session {resume} cannot be opened: {reason(error, resume)}") from error
    start = sessions.start_of(log.entries)
    return log, (start.id if start else "") or sessions.id_of(path)


def begin(log: TranscriptLog, ident: str, cwd: Path, spec: str, name: str, branch: str) -> None:
    """Writes the first record, where there is none yet."""
    if sessions.start_of(log.entries) is None:
        log.append(SessionStart(ident, str(cwd), f"refold {VERSION}", spec, name, branch))


def opened(name: str, model: str) -> Note:
    """The note that a process opens a log: who holds it, and how it words what it sends."""
    return Note("opened", {"pid": os.getpid(), "name": name, "model": model, "wording": WORDING})


def discard_if_empty(log: TranscriptLog) -> None:
    """Removes a log in which nothing was said. Call it only for one that this process made."""
    if log.path is not None and not any(e.kind in ("user", "assistant") for e in log.entries):
        sessions.remove_files(log.path)


def own_keys(settings: Settings) -> tuple[str, ...]:
    """Keys of ours that must not reach a log or a model."""
    return tuple({settings.api_key, *(os.environ.get(name, "") for name in OWN_KEYS)} - {""})


def kept(entries: Sequence[Entry]) -> Kept:
    """What the log says, read from its end back to the last note that sums it up."""
    start = sessions.start_of(entries)
    found: dict[str, Any] = {}
    usage = Usage()
    for entry in reversed(entries):
        if entry.kind == "usage":
            usage = total(entry.record, usage)
        elif entry.key == ENDED:
            usage = total(usage_of_note(entry.record.value.get("usage")), usage)
        elif entry.key in ("name", "model", "mode"):
            found.setdefault(entry.key, entry.record.value)
        elif entry.key == "state" and isinstance(entry.record.value, dict):
            state = entry.record.value
            usage = total(usage_of_note(state.get("usage")), usage)
            found = {**state, **found}
            break
    name = found.get("name", start.name if start else "")
    spec = found.get("model") or (start.model if start else "")
    todo = found["todo"] if isinstance(found.get("todo"), list) else None
    mode = str(found.get("mode") or "")
    mode = mode if mode in PERMISSION_MODES and mode != "yolo" else ""
    return Kept(start, str(name or ""), str(spec or ""), usage, todo, str(found.get("cwd") or ""), mode)


def state(usage: Usage, name: str, spec: str, mode: str, ctx: ToolContext, messages: int) -> dict[str, Any]:
    """The note that sums a session up, so that a resume and a list need not read what stands before it."""
    counted = {k: v for k, v in vars(usage).items() if v and k in _COUNTED}
    todo = {"todo": ctx.state["todo"]} if isinstance(ctx.state.get("todo"), list) else {}
    todo |= {"mode": mode} if mode else {}
    return {"name": name, "model": spec, "messages": messages, "usage": counted, "cwd": str(ctx.cwd), **todo}


def usage_of_note(value: Any) -> Usage:
    """The usage that `state` wrote; what is not understood counts as unknown."""
    known = {k: v for k, v in value.items() if isinstance(v, (int, float))} if isinstance(value, dict) else {}
    counts: dict[str, Any] = {k: v for k, v in known.items() if k in _COUNTED}
    return Usage(**counts)


def restore_tools(ctx: ToolContext, messages: Sequence[Entry], known: Kept) -> None:
    """What the tools knew before a resume: files seen, the todo list, the folder bash was in."""
    seen: dict[str, str] = {}
    todo, cwd = None, ""
    count = size = 0
    for entry in reversed(messages):
        if entry.kind != "tool_result":
            continue
        count, size = count + 1, size + entry.length
        if count > _MOST_RESULTS or size > _MOST_BYTES:
            break
        meta = entry.record.meta
        for path, sha in entry.record.files.items():
            seen.setdefault(path, sha)
        todo = meta["todo"] if todo is None and isinstance(meta.get("todo"), list) else todo
        cwd = cwd or str(meta.get("cwd") or "")
    ctx.seen.update(reversed(seen.items()))
    todo = known.todo if todo is None else todo
    if todo is not None:
        ctx.state["todo"] = [dict(item) if isinstance(item, dict) else item for item in todo]
    cwd = cwd or known.cwd
    if cwd and os.path.isdir(cwd):
        ctx.cwd = Path(cwd)


def cwd_of(known: Kept, cwd: Path) -> Path:
    """Where the session works: where it began, as long as that folder is there."""
    began = Path(known.start.cwd) if known.start and known.start.cwd else cwd
    return began if os.path.isdir(began) else cwd


def spec_for(settings: Settings, known: Kept, resume: str) -> str:
    """The model named on the command line, else the one the session used last, else the configured one."""
    if resume and not settings.source("model").startswith("--"):
        return known.spec or settings.model
    return settings.model
