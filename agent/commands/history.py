"""Searches everything that was said in this session, in view or folded.

The newest hits come first, each with its number; `/unfold #id` brings one back into the view.
"""

from __future__ import annotations

from agent.commands.base import Face
from runtime.context.ledger import label
from runtime.context.report import in_words

TAKES = "WORDS"
WHILE_BUSY = True
MOST_ROWS = 30


async def run(face: Face, words: str) -> None:
    wanted = [w.casefold() for w in words.split()]
    if not wanted:
        face.say("Which words? /history WORDS", "error")
        return
    fates = face.session.engine.fates()
    rows: list[tuple[str, str, str]] = []
    for entry in reversed(face.session.engine.history.messages):
        text = entry.record.text.casefold()
        if all(w in text for w in wanted):
            hit = _hit(entry.record.text, wanted) or label(entry)
            rows.append((f"#{entry.seq}", hit, in_words(fates.get(entry.seq, ""))))
        if len(rows) == MOST_ROWS:
            break
    face.table(rows, ("id", "message", "in view?")) if rows else face.say("Nobody has said that here.")


def _hit(text: str, wanted: list[str]) -> str:
    line = next((x for x in text.splitlines() if wanted[0] in x.casefold()), "")
    return " ".join(line.split())[:100]
