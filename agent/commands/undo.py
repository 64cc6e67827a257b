"""Takes back what was done to the files since the last message that changed any.

Everything is covered that a snapshot covers, whoever changed it: edits, commands, yourself. The difference is shown
first, and /redo brings it back. The conversation stays; /rewind takes that back as well.
"""

from __future__ import annotations

from agent.commands.base import Choice, Face
from agent.faults import reason
from agent.rewinding import go, last_step, next_step, outcome, summary
from agent.undo import SnapshotError, Step


async def run(face: Face, words: str) -> None:
    await move(face, forth=False)


async def move(face: Face, *, forth: bool) -> None:
    """One step back or forth, after the difference was shown and agreed to."""
    session = face.session
    try:
        step = await (next_step(session) if forth else last_step(session))
        if step is None or not step.changes:
            face.say("There is nothing to redo." if forth else "There is nothing to undo.")
            return
        show(face, step)
        if not await face.choose("Do it?", [Choice(True, "Yes"), Choice(False, "No")]):
            return
        report = await go(session, step, forth=forth)
    except (SnapshotError, OSError) as error:
        face.say(f"It cannot be done: {reason(error)}", "error")
        return
    for line, role in outcome(report):
        face.say(line, role)


def show(face: Face, step: Step) -> None:
    """What a step would do to the files: the difference as it would be made."""
    face.say(summary(step) + ".")
    if step.back:
        face.diff(step.back)
