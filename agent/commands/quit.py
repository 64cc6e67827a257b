"""Ends the chat. The session stays; `refold --continue` goes on with it."""

from __future__ import annotations

from agent.commands.base import Face

WHILE_BUSY = True
ALIASES = ("exit", "q")


async def run(face: Face, words: str) -> None:
    face.quit()
