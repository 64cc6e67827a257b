"""What works here and what does not, why, and what would mend it."""

from __future__ import annotations

import asyncio

from agent.commands.base import Face
from agent.doctor import examine

WHILE_BUSY = True

_ROLES = {"ok": "ok", "note": "info", "bad": "error"}


async def run(face: Face, words: str) -> None:
    found = await asyncio.to_thread(lambda: list(examine(face.settings, face.session.root)))
    for finding in found:
        mend = f"\nto mend it: {finding.fix}" if finding.fix else ""
        face.say(f"{finding.about}: {finding.text}{mend}", _ROLES[finding.state])
    bad = sum(f.state == "bad" for f in found)
    face.say(f"{bad} thing{'s' if bad != 1 else ''} to mend." if bad else "Everything that has to work works.")
