"""Going back in a session: its files, its conversation, or both; and forth again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.session import Session
from agent.undo import NOTE, RestoreReport, Step
from transcripts.records import Note, Rewind


@dataclass(frozen=True)
class Turn:
    """One message of the person: its number in the log and its text."""

    seq: int
    text: str


def turns(session: Session) -> list[Turn]:
    """The person's messages, newest first."""
    said = (e for e in session.engine.history.messages if e.kind == "user")
    found = [e for e in said if e.record.source not in ("harness", "hook")]
    return [Turn(e.seq, e.record.text) for e in reversed(found)]


async def last_step(session: Session) -> Step | None:
    """Back before the newest turn that changed a file; None where there is none. Raises SnapshotError, OSError."""
    seqs = [t.seq for t in turns(session)]
    return await asyncio.to_thread(session.safety.timeline.last_step, seqs)


async def step_to(session: Session, turn: Turn) -> Step | None:
    """Back to the files as they were when a message was sent; None where nothing was done to them since. Raises
    SnapshotError, OSError."""
    return await asyncio.to_thread(session.safety.timeline.step_to, turn.seq)


async def next_step(session: Session) -> Step | None:
    """What was undone last; None where nothing was. Raises SnapshotError, OSError."""
    return await asyncio.to_thread(session.safety.timeline.forth)


async def go(session: Session, step: Step, *, forth: bool = False) -> RestoreReport:
    """Restores the files of a step and writes it down. Raises SnapshotError, OSError."""
    timeline = session.safety.timeline
    report, note = await asyncio.to_thread(timeline.redo if forth else timeline.go, step)
    session.engine.append(Note(NOTE, note))
    return report


def rewind_conversation(session: Session, turn: Turn) -> None:
    """The conversation goes on from before a message; what came after stays in the log."""
    session.settle()
    session.engine.append(Rewind(turn.seq - 1))


NAMED = 5
"""Paths that are named; more are counted."""


def summary(step: Step) -> str:
    """What a step would do to the files, in a few words."""
    # The step undoes: what was created is deleted again.
    words = {"created": "deleted", "deleted": "brought back", "changed": "changed back", "mode": "given its mode back"}
    counts = Counter(words[c.what] for c in step.changes)
    parts = [f"{n} {'file is' if n == 1 else 'files are'} {what}" for what, n in counts.items()]
    return f"{', '.join(parts)}: {_named([c.path for c in step.changes])}"


def _named(paths: Collection[str]) -> str:
    """The first few paths, and how many more there are."""
    shown, more = sorted(paths)[:NAMED], len(paths) - NAMED
    return f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def outcome(report: RestoreReport) -> Sequence[tuple[str, str]]:
    """What was done, and what could not be: (a line, its role for Face.say) each."""
    done = {"restored": report.written, "deleted": report.deleted}
    parts = [f"{len(p)} path{'s' if len(p) != 1 else ''} {what}: {_named(p)}" for what, p in done.items() if p]
    lines = [(f"{'; '.join(parts) or 'Nothing restored'}.", "ok")]
    lines += [(f"not restored: {path}: {why}", "warn") for path, why in sorted(report.failed.items())]
    if left_out := report.left_out.keys() - {".git"}:  # nobody expects the repository itself to be taken back
        lines.append((f"never covered: {_named(left_out)}", "info"))
    return lines
