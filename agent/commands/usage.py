"""What the session has cost so far: tokens, cache, time and money, by model."""

from __future__ import annotations

from collections.abc import Iterable

from agent.commands.base import Face
from runtime.crew import total
from transcripts.records import Usage

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    sums = by_model(e.record for e in face.session.log.entries if e.kind == "usage")
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
