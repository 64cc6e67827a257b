"""What has changed in this folder since the session began, whoever changed it."""

from __future__ import annotations

import asyncio

from agent.commands.base import Face
from agent.faults import reason
from agent.session import Session
from agent.undo import SnapshotError

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    try:
        text = await asyncio.to_thread(since_start, face.session)
    except (SnapshotError, OSError) as error:
        face.say(f"The changes cannot be told: {reason(error)}", "error")
        return
    if text.strip():
        face.diff(text)
    else:
        face.say("Nothing has changed.")


def since_start(session: Session) -> str:
    """A unified diff of the folder from before the first call with effects until now; "" where there was none. Raises
    SnapshotError."""
    first = next((e.seq for e in session.engine.history.messages if e.kind == "user"), None)
    step = None if first is None else session.safety.timeline.step_to(first)
    return step.diff if step else ""
