"""Shows or changes what may run unasked: plan, ask, edits, auto, yolo."""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Choice, Face
from agent.permissions import MODES

TAKES = "[mode]"
WHILE_BUSY = True

MEANING = {
    "plan": "reads only; nothing is changed",
    "ask": "asks before every edit and command",
    "edits": "edits files of this folder unasked, asks before commands",
    "auto": "works in the sandbox unasked, asks for everything beyond it",
    "yolo": "asks for nothing",
}


async def run(face: Face, words: str) -> None:
    session = face.session
    choices = [Choice(m, m, MEANING[m] + (" (now)" if m == session.permissions.mode else "")) for m in MODES]
    mode = words or await face.choose("What may run unasked?", choices)
    if not mode:
        return
    try:
        session.set_mode(mode)
    except ValueError as error:
        face.say(str(error), "error")
        return
    face.say(f"{mode}: {MEANING[mode]}.", "ok")


def complete(face: Face, words: str) -> Sequence[str]:
    return [m for m in MODES if m.startswith(words)]
