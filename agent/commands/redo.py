"""Brings back what /undo or /rewind took away from the files.

As long as nothing new was done since.
"""

from __future__ import annotations

from agent.commands.base import Face
from agent.commands.undo import move


async def run(face: Face, words: str) -> None:
    await move(face, forth=True)
