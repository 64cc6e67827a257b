"""Lets a pinned message be folded again."""

from __future__ import annotations

from agent.commands.base import Face
from agent.commands.pin import change

TAKES = "#id"
WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    change(face, words, False)
