"""The logs of sub-agents: beside the session's, in a folder of its name, so that they go where the session goes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.faults import reason
from runtime.context.engine import ContextEngine
from runtime.crew import total
from transcripts.catalog import tasks_folder
from transcripts.log import Entry, LogHeld, LogWriteError, TranscriptLog, VersionError
from transcripts.records import Usage

BEGUN, ENDED = "task", "task_end"
"""Notes in the session's log: a sub-agent begins (call, id, description, kind), and what it cost when it has ended."""

_LAST = 8
"""Calls of a sub-agent that was stopped that are named."""


def new_task_log(session: Path | None) -> tuple[str, TranscriptLog]:
    """(id, log) of a new sub-agent of the session in that file; None: nothing is kept. Raises OSError."""
    ident = secrets.token_hex(4)
    if session is None:
        return ident, TranscriptLog.memory()
    return ident, TranscriptLog.create(tasks_folder(session) / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{ident}.jsonl")


def task_path(session: Path | None, ident: str) -> Path | None:
    """The file of a sub-agent's log; None where there is none."""
    if session is None or not ident.isalnum():
        return None
    return next(tasks_folder(session).glob(f"*-{ident}.jsonl"), None)


@dataclass(frozen=True)
class Found:
    """What the log of a sub-agent says. `done`: it had given its report, `text` is the newest thing it said; `calls`
    are its last ones, each with what became of it; `began`: one with effects had begun."""

    requests: int = 0
    usage: Usage = Usage()
    done: bool = False
    text: str = ""
    calls: tuple[str, ...] = ()
    began: bool = False


def examine(path: Path) -> Found:
    """Reads the log of a sub-agent that works no more; what a crash left open in it is mended and answered, as in any
    session. Raises OSError, VersionError."""
    try:
        log = TranscriptLog.open(path)
        with suppress(LogWriteError):
            ContextEngine(log, system="").close_open_calls()
    except LogHeld:
        log = TranscriptLog.open(path, readonly=True)
    try:
        return found_in(log.entries)
    finally:
        log.close()


def found_in(entries: Sequence[Entry]) -> Found:
    """What these records of a sub-agent say."""
    usages = [e.record for e in entries if e.kind == "usage"]
    usage = Usage()
    for one in usages:
        usage = total(usage, one)
    texts = (e.record.text for e in reversed(entries) if e.kind == "assistant")
    ends = [e.record.reason for e in entries if e.kind == "turn_end"]
    results = [e.record for e in entries if e.kind == "tool_result"][-_LAST:]
    return Found(
        requests=sum(u.purpose == "step" for u in usages),
        usage=usage,
        done=ends[-1:] == ["done"],
        text=next((t for t in texts if t.strip()), ""),
        calls=tuple(f"{_call_words(r)}: {r.status}" for r in results),
        began=any(e.kind == "tool_started" and e.record.effect != "read" for e in entries),
    )


def _call_words(result: Any) -> str:
    about = result.meta.get("command") or result.meta.get("path") or ""
    return f"{result.name} {' '.join(str(about).split())[:80]}".strip()


def transcript(path: Path) -> str:
    """All that a sub-agent was told, said and did, as text. Raises OSError, VersionError."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        return "\n".join(transcript_lines(log.entries))
    finally:
        log.close()


def transcript_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """The messages of a log in words; results as they were shown."""
    for entry in entries:
        record = entry.record
        if entry.kind == "user":
            yield f"task: {record.text}"
        elif entry.kind == "assistant":
            yield f"said: {record.text}"
            yield from (f"  -> {c.name}({c.arguments})" for c in record.calls)
        elif entry.kind == "tool_result":
            yield f"{record.name} {record.status}: {record.text}"


def readable(path: Path | None) -> str:
    """The transcript of a sub-agent, or in words why there is none."""
    try:
        return transcript(path) if path is not None else "[nothing is kept of it]"
    except (OSError, VersionError) as error:
        return f"[its log cannot be read: {reason(error)}]"
