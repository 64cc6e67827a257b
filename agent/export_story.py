"""A session told in order: who said what, with the results of each call beside it. What all exports are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.sessions import id_of, start_of
from runtime.context.history import HistoryManager
from runtime.context.rounds import RoundSegmenter
from transcripts.blobs import Blobs
from transcripts.log import Entry, TranscriptLog, newest_note
from transcripts.records import Assistant, Checkpoint, Gap, Request, SessionStart, ToolResult, Usage, User


@dataclass(frozen=True)
class Item:
    """One thing that was said or done. `results`: of an answer's calls, by call id; `usage`: what the answer cost."""

    seq: int
    at: str
    record: User | Assistant | ToolResult | Checkpoint | Gap
    results: Mapping[str, ToolResult] = field(default_factory=dict)
    usage: Usage | None = None


@dataclass(frozen=True)
class Story:
    """A whole session: its beginning, its items in order, the system prompt and tools of its newest request."""

    start: SessionStart
    name: str
    items: Sequence[Item]
    request: Request | None
    blobs: Blobs
    problems: Sequence[str] = ()


def story_of(log: TranscriptLog) -> Story:
    """The conversation as it stands: what a rewind set aside is left out, what a fold left out is there."""
    start = start_of(log.entries) or SessionStart(id_of(log.path) if log.path else "", "")
    request = next((e.record for e in reversed(log.entries) if e.kind == Request.kind), None)
    name = newest_note(reversed(log.entries), "name")
    return Story(
        start, str(start.name if name is None else name), _items(log.entries), request, log.blobs, tuple(log.problems)
    )


def _items(entries: Sequence[Entry]) -> list[Item]:
    history, costs = HistoryManager(), _costs(entries)
    for entry in entries:
        history.append(entry)
    items: list[Item] = []
    for step in RoundSegmenter().steps(history.messages):
        results = {call: entry.record for call, entry in step.results.items()}
        items.append(Item(step.head.seq, step.head.at, step.head.record, results, costs.get(step.head.seq)))
    items += [Item(e.seq, e.at, e.record) for e in entries if e.kind in ("checkpoint", "gap")]
    return sorted(items, key=lambda item: item.seq)


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
