"""Brings a folded message back into the view.

Name it by its number, as `/context` and `/history` show it; its whole step comes with it.
"""

from __future__ import annotations

from agent.commands.base import Face
from runtime.context.unfold import unfold

TAKES = "#id"


async def run(face: Face, words: str) -> None:
    number = words.strip().lstrip("#")
    if not number.isdecimal():
        face.say("Which message? Name its number, such as /unfold #12.", "error")
        return
    try:
        fold = unfold(face.session.engine, int(number))
    except ValueError as error:
        face.say(str(error), "error")
        return
    tokens = face.session.engine.estimate()
    face.say(f"#{number} is in the view again ({fold.tokens_before:,} to {tokens:,} tokens).")
