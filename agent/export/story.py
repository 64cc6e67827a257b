"""A session told in order: who said what, with the results of each call beside it, and what its sub-agents said and
did. What all exports are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from agent.faults import reason
from agent.sessions import id_of, start_of
from agent.subagents.logs import BEGUN as TASK_BEGUN
from runtime.context.history import HistoryManager
from runtime.context.rounds import RoundSegmenter
from transcripts.blobs import Blobs
from transcripts.catalog import tasks_of
from transcripts.log import Entry, TranscriptLog, VersionError, newest_note
from transcripts.records import Assistant, Checkpoint, Gap, Request, SessionStart, ToolResult, Usage, User


@dataclass(frozen=True)
class Item:
    """One thing that was said or done. `results`: of an answer's calls, by call id; `tasks`: the ids of the sub-agents
    that worked for them, by call id; `usage`: what the answer cost."""

    seq: int
    at: str
    record: User | Assistant | ToolResult | Checkpoint | Gap
    results: Mapping[str, ToolResult] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    usage: Usage | None = None


@dataclass(frozen=True)
class Story:
    """A whole session: its beginning, its items in order, the system prompt and tools of its newest request, and those
    of its sub-agents, by id. `problems` say what of it cannot be read."""

    start: SessionStart
    name: str
    items: Sequence[Item]
    request: Request | None
    blobs: Blobs
    problems: Sequence[str] = ()
    tasks: Mapping[str, Story] = field(default_factory=dict)


def story_of(log: TranscriptLog) -> Story:
    """The conversation as it stands: what a rewind set aside is left out, what a fold left out is there. So are the
    sub-agents that worked for it."""
    start = start_of(log.entries) or SessionStart(id_of(log.path) if log.path else "", "")
    request = next((e.record for e in reversed(log.entries) if e.kind == Request.kind), None)
    name = newest_note(reversed(log.entries), "name")
    return Story(
        start, str(start.name if name is None else name), _items(log.entries), request, log.blobs, tuple(log.problems),
        _tasks(log),
    )  # fmt: skip


def _tasks(log: TranscriptLog) -> dict[str, Story]:
    """The sub-agents of a session; one whose log cannot be read has nothing but the reason."""
    out: dict[str, Story] = {}
    for path in tasks_of(log.path) if log.path else ():
        try:
            with closing(TranscriptLog.open(path, readonly=True)) as own:
                out[id_of(path)] = story_of(own)
        except (OSError, VersionError) as error:
            start = SessionStart(id_of(path), "")
            why = f"what this sub-agent said and did cannot be read: {reason(error, path)}"
            out[start.id] = Story(start, "", (), None, log.blobs, (why,))
    return out


def _items(entries: Sequence[Entry]) -> list[Item]:
    history, costs, begun = HistoryManager(), _costs(entries), _begun(entries)
    for entry in entries:
        history.append(entry)
    items: list[Item] = []
    for step in RoundSegmenter().steps(history.messages):
        results = {call: entry.record for call, entry in step.results.items()}
        tasks = {c: str(r.meta["task"]) for c, r in results.items() if r.meta.get("task")}
        tasks = {**begun.get(step.head.seq, {}), **tasks}
        items.append(Item(step.head.seq, step.head.at, step.head.record, results, tasks, costs.get(step.head.seq)))
    items += [Item(e.seq, e.at, e.record) for e in entries if e.kind in ("checkpoint", "gap")]
    return sorted(items, key=lambda item: item.seq)


def _begun(entries: Sequence[Entry]) -> dict[int, dict[str, str]]:
    """The sub-agents that began for the calls of each answer, by its number and the call's id: also for one whose call
    has no result."""
    out: dict[int, dict[str, str]] = {}
    answer = 0
    for entry in entries:
        if entry.kind == Assistant.kind:
            answer = entry.seq
        elif entry.key == TASK_BEGUN and isinstance(entry.record.value, dict):
            note = entry.record.value
            out.setdefault(answer, {})[str(note.get("call"))] = str(note.get("id"))
    return out


def _costs(entries: Sequence[Entry]) -> dict[int, Usage]:
    """What each answer cost, by its number: the usage that was noted behind it."""
    out: dict[int, Usage] = {}
    answer = 0
    for entry in entries:
        if entry.kind == Assistant.kind:
            answer = entry.seq
        elif entry.kind == Usage.kind and answer and entry.record.purpose == "step":
            out[answer], answer = entry.record, 0
    return out
