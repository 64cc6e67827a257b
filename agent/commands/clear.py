"""Begins a new session on a clear screen.

The old one stays on disk; /resume brings it back.
"""

from __future__ import annotations

from agent.commands.base import Face

ALIASES = ("new",)
TAKES = "[name]"


async def run(face: Face, words: str) -> None:
    old = face.session.id
    await face.open(name=words)
    face.clear()
    face.say(f"A new session. /resume {old} brings the last one back.")
