"""Folds the conversation now.

Words after the name say what the notes should keep. Nothing is lost: what leaves the view stays in the log, and the
model can recall it.
"""

from __future__ import annotations

from agent.commands.base import Face

TAKES = "[what matters]"


async def run(face: Face, words: str) -> None:
    await face.follow(face.session.compact(words))
