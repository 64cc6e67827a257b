"""Replay: every request of a session built again from its log, to be looked at or compared with what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.version import WORDING
from runtime.context.engine import ContextEngine
from runtime.context.notes import notes_view
from runtime.context.projection import canonical
from transcripts.blobs import Blobs
from transcripts.log import Entry, TranscriptLog
from transcripts.records import Request


@dataclass(frozen=True)
class Rebuilt:
    """One request, built again. `number` counts from 1; `sha` is the hash of what was built, "" where that is not
    possible; `problem` says in plain words what differs from what was sent, "" where nothing does. `reworded`: it was
    sent by a refold that words things otherwise, and nothing else is wrong with it."""

    number: int
    entry: Entry
    request: Request
    body: Mapping[str, Any]
    sha: str
    problem: str = ""
    reworded: bool = False


@dataclass(frozen=True)
class Verified:
    """How many requests a session made, how many of them come out the same, the differences, first one first, and how
    many were sent by a refold of another wording, which this one cannot build again byte for byte: no damage."""

    requests: int
    same: int
    differences: tuple[str, ...] = field(default=())
    reworded: int = 0


def rebuild(log: TranscriptLog) -> Iterator[Rebuilt]:
    """Every request of a log in order, as it was sent. Reads the log, writes nothing."""
    # The engine itself does it, over a log that is not kept: what it would do today is what is compared.
    memory = TranscriptLog.memory()
    memory.blobs = _Lent(log.blobs)
    engine = ContextEngine(memory, system="")
    number = last = 0
    differs, wording = False, 1
    damaged = next((e.seq for e in log.entries if e.kind == "gap" or e.altered), 1 << 62)
    for entry in log.entries:
        memory.entries.append(entry)
        engine.take(entry)
        wording = _wording(entry.record.value) if entry.key == "opened" else wording
        if entry.kind == Request.kind:
            number += 1
            one = _one(engine, log, entry, number, last)
            if one.problem and one.sha and wording != WORDING and entry.seq < damaged:
                words = f"sent by a refold that words what it shows otherwise (wording {wording}; this one: {WORDING})"
                one = replace(one, problem=words, reworded=True)
            elif one.problem and differs:
                one = replace(one, problem="it differs too")
            yield one
            differs = differs or bool(one.problem) and not one.reworded
            last = entry.seq


def _wording(note: Any) -> int:
    """How the process that opened the log words things; nothing noted is the first wording."""
    found = note.get("wording", 1) if isinstance(note, dict) else 1
    return found if isinstance(found, int) else 1


def reworded_words(count: int) -> str:
    """What is said of so many requests that were worded otherwise."""
    was = "was" if count == 1 else "were"
    return f"{was} sent by a refold of another wording and cannot come out byte for byte; nothing that was said is lost"


def verify(log: TranscriptLog) -> Verified:
    """Builds all requests again and compares their hashes."""
    total = same = reworded = 0
    differences: list[str] = []
    for one in rebuild(log):
        total += 1
        same += not one.problem
        reworded += one.reworded
        if one.problem and not one.reworded:
            differences.append(f"request {one.number} (record #{one.entry.seq}): {one.problem}")
    return Verified(total, same, tuple(differences), reworded)


def _one(engine: ContextEngine, log: TranscriptLog, entry: Entry, number: int, last: int) -> Rebuilt:
    request: Request = entry.record
    system, tools = _blob(log.blobs, request.system), _blob(log.blobs, request.tools)
    view = engine.current()
    if request.words:
        view = notes_view(view, request.words, request.head)
    specs = _list(tools) if tools else []
    tools = None if specs is None else tools
    body = {
        "model": request.model,
        "messages": [{"role": "system", "content": system}, *view.messages],
        "tools": specs,
        **request.params,
    }
    if system is None or tools is None:
        lost = "system prompt" if system is None else "list of tools"
        return Rebuilt(number, entry, request, body, "", f"its {lost} is not among the session's blobs any more")
    sha = view.sha(canonical(system) + canonical(specs))
    problem = "" if sha == request.view else _difference(log, request, len(view.messages), last, entry.seq)
    return Rebuilt(number, entry, request, body, sha, problem)


def _difference(log: TranscriptLog, request: Request, messages: int, last: int, here: int) -> str:
    """What can be told of a difference: how many messages there are, and what the log has suffered since the request
    before."""
    new = [e for e in log.entries if last < e.seq < here]
    lost = [f"#{e.record.first or e.seq} to #{e.record.last or e.seq}" for e in new if e.kind == "gap"]
    changed = [f"#{e.seq}" for e in new if e.altered]
    words = [f"{request.messages} messages were sent, {messages} are rebuilt" if request.messages != messages else ""]
    words.append(f"records {', '.join(lost)} are lost" if lost else "")
    words.append(f"record {', '.join(changed)} was changed by hand" if changed else "")
    told = "; ".join(w for w in words if w) or "the same number of messages, but other words"
    return f"{told} (new since the request before: records #{last + 1} to #{here - 1})"


def _blob(blobs: Blobs, name: str) -> str | None:
    try:
        return blobs.get(name).decode()
    except (KeyError, ValueError):
        return None


def _list(text: str) -> list[Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


class _Lent(Blobs):
    """Another session's blobs for reading; what is put stays in memory."""

    def __init__(self, owner: Blobs) -> None:
        super().__init__(None)
        self._owner = owner

    def get(self, name: str) -> bytes:
        try:
            return super().get(name)
        except KeyError:
            return self._owner.get(name)
