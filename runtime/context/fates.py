"""What became of a call that has no result: done, not started, or unknown, and what the model is told of it.

A call with effects leaves its start on the disk before any effect, with the hashes of the files it names. So a call
without a start did nothing, a file that is as it was has not been written, one that is as the call meant to leave it
has; all else is unknown and is called so. Nothing is ever run again because of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.context.hashes import UNREADABLE, file_hash
from transcripts.log import Entry
from transcripts.records import ToolCall, ToolResult, ToolStarted

_NOT_RUN = "[Interrupted before this call had any effect. Make it again if it is still needed.]"
_READ = "[Interrupted: no result came. It only reads, so it can simply be made again.]"
_UNCHANGED = "[Interrupted before this call changed anything: {files}. Make it again if it is still needed.]"
_DONE = "[Interrupted right after this call had done its work: {files}. Do not repeat it.]"
_MIXED = "[Interrupted while this call ran, and it cannot be told how far it came: {files}. Look before you repeat it.]"
_STOPPED = "[Stopped while this call ran: it may have done a part of its work or all of it. Look before you repeat it.]"
_CRASHED = (
    "[refold ended while this call ran. It may have run in part, in whole or not at all; what it said is lost. "
    "Look at what it did before you repeat it.]"
)
_DAMAGED = "[The log was damaged here. This call may have run. Look at what it would have done before you repeat it.]"


def since_answer(entries: list[Entry], answer: int) -> tuple[dict[str, ToolStarted], bool]:
    """(started calls by id, whether records were lost) of what stands behind the answer with this number."""
    started: dict[str, ToolStarted] = {}
    lost = False
    for entry in reversed(entries):
        if entry.seq <= answer:
            break
        if entry.kind == ToolStarted.kind:
            started.setdefault(entry.record.call_id, entry.record)
        lost = lost or entry.kind == "gap"
    return started, lost


def fate(call: ToolCall, started: ToolStarted | None, *, lost: bool, crashed: bool) -> ToolResult:
    """The result of a call that nobody saw end. `lost`: records behind its answer are gone; `crashed`: the process that
    began it is gone too. Status: ok (done), not_run (not started), interrupted (stopped here), unknown."""
    if started is None:
        return ToolResult(call.id, call.name, _DAMAGED if lost else _NOT_RUN, "unknown" if lost else "not_run")
    if started.effect == "read":
        return ToolResult(call.id, call.name, _READ, "interrupted")
    if started.before:
        return _by_files(call, started)
    return ToolResult(call.id, call.name, _CRASHED if crashed else _STOPPED, "unknown" if crashed else "interrupted")


def _by_files(call: ToolCall, started: ToolStarted) -> ToolResult:
    now = {path: file_hash(Path(path)) for path in started.before}
    states = {path: _state(path, now[path], started) for path in now}
    files = "; ".join(f"{path} {words}" for path, words in states.items())
    kinds = set(states.values())
    if kinds == {_AS_MEANT}:
        return ToolResult(call.id, call.name, _DONE.format(files=files), "ok", meta=_facts(now))
    if kinds == {_AS_BEFORE}:
        return ToolResult(call.id, call.name, _UNCHANGED.format(files=files), "not_run")
    return ToolResult(call.id, call.name, _MIXED.format(files=files), "unknown")


_AS_BEFORE = "is as it was before"
_AS_MEANT = "is as the call was to leave it"
_OTHER = "has changed"
_UNTOLD = "cannot be read"


def _state(path: str, now: str, started: ToolStarted) -> str:
    before, after = started.before[path], started.after.get(path)
    if UNREADABLE in (now, before):
        return _UNTOLD
    if now == before:
        return _AS_BEFORE
    return _AS_MEANT if now == after else _OTHER


def _facts(now: Mapping[str, str]) -> dict[str, Any]:
    """What a write's result says of its files, so that tools and folds know of them."""
    files = [{"path": path, "sha": sha} for path, sha in now.items()]
    return files[0] if len(files) == 1 else {"files": files}
