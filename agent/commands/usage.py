"""What the session has cost so far: tokens, cache, time and money, by model."""

from __future__ import annotations

from collections.abc import Iterable

from agent.commands.base import Face
from agent.logbook import usage_of_note
from agent.subagents.logs import ENDED
from runtime.crew import total
from transcripts.records import Usage

WHILE_BUSY = True
OF_TASKS = "sub-agents"


async def run(face: Face, words: str) -> None:
    entries = face.session.log.entries
    sums = by_model(e.record for e in entries if e.kind == "usage")
    for cost in (e.record.value for e in entries if e.key == ENDED):
        n, usage = sums.get(OF_TASKS, (0, Usage()))
        sums[OF_TASKS] = (n + int(cost.get("requests", 0)), total(usage, usage_of_note(cost.get("usage"))))
    if not sums:
        face.say("No request has been answered yet.")
        return
    rows = [
        (name, str(n), number(u.input), share(u.cached, u.input), number(u.output), f"{u.seconds:.0f} s", money(u.cost))
        for name, (n, u) in sums.items()
    ]
    face.table(rows, ("model", "requests", "tokens in", "cached", "out", "time", "cost"))


def by_model(records: Iterable[Usage]) -> dict[str, tuple[int, Usage]]:
    """(requests, sum) by model; requests for notes apart from those of the conversation."""
    sums: dict[str, tuple[int, Usage]] = {}
    for record in records:
        name = record.model or "unknown"
        key = name if record.purpose == "step" else f"{name} ({record.purpose})"
        n, usage = sums.get(key, (0, Usage()))
        sums[key] = (n + 1, total(usage, record))
    return sums


def number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def share(part: int | None, whole: int | None) -> str:
    return f"{part / whole:.0%}" if part is not None and whole else "unknown"


def money(value: float | None) -> str:
    return "n/a" if value is None else f"${value:.4f}"
