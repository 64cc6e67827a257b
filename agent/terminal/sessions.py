"""The list of sessions to choose from, before there is one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent.commands.resume import choices
from agent.terminal.deck import Deck
from agent.terminal.dialogs import Option, Picker


async def choose(deck: Deck, home: Path, cwd: Path) -> str:
    """The id of a session; "" where the person leaves, or where there is none."""
    found = await asyncio.to_thread(choices, home, cwd)
    if not found:
        deck.screen.print_raw("There is no session yet.\n")
        return ""
    options = [Option(c.value, c.label, note=c.note) for c in found]
    return await deck.pick(lambda: Picker("Go on with", options, search=True), called=True) or ""
