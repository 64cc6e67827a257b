"""Gives the session a name, by which it can be resumed from anywhere."""

from __future__ import annotations

import shlex

from agent.commands.base import Face

ALIASES = ("rename",)
TAKES = "NAME"
WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    name = words or await face.ask("Name › ", face.session.name)
    if not name or not name.strip():
        return
    face.session.rename(name.strip())
    face.say(f"This session is {name.strip()!r}: refold --resume {shlex.quote(name.strip())}", "ok")
