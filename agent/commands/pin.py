"""Keeps a message in the view, whatever is folded.

Name it by its number, as `/context` and `/history` show it. Without a number it lists what is pinned.
"""

from __future__ import annotations

from agent.commands.base import Face
from runtime.context.ledger import label
from runtime.context.unfold import unfold

TAKES = "[#id]"
WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    engine = face.session.engine
    if not words.strip():
        rows = [(f"#{seq}", label(entry)) for seq in sorted(engine.pinned) if (entry := engine.history.get(seq))]
        face.table(rows, ("id", "message")) if rows else face.say("Nothing is pinned.")
        return
    change(face, words, True)


def change(face: Face, words: str, on: bool) -> None:
    """Pins or unpins the message that `words` names."""
    number = words.strip().lstrip("#")
    try:
        if not number.isdecimal():
            raise ValueError(f"Name a message by its number, such as #12, not {words.strip()!r}.")
        face.session.engine.pin(int(number), on)
    except ValueError as error:
        face.say(str(error), "error")
        return
    face.say(_kept(face, int(number)) if on else f"#{number} may be folded again.")


def _kept(face: Face, seq: int) -> str:
    """Brings what is pinned back into the view, if a fold has taken it out."""
    engine = face.session.engine
    if engine.fates().get(seq) == "shown":
        return f"#{seq} stays in the view from now on."
    try:
        unfold(engine, seq)
    except ValueError as error:
        return f"#{seq} is pinned, but a fold has taken it out of the view, and it cannot come back now: {error}"
    return f"#{seq} is in the view again, and stays there."
