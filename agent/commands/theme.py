"""Changes the colours: dark, light or ansi (those of the terminal)."""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Choice, Face

TAKES = "[dark|light|ansi]"
WHILE_BUSY = True

NAMES = (
    ("ansi", "the terminal's own sixteen colours"),
    ("dark", "for a dark background"),
    ("light", "for a light one"),
)


async def run(face: Face, words: str) -> None:
    name = words or await face.choose("Colours", [Choice(n, n, note) for n, note in NAMES])
    if not name:
        return
    try:
        face.set_theme(name)
    except ValueError as error:
        face.say(str(error), "error")
        return
    face.say(f'Colours: {name}. `theme = "{name}"` in {face.settings.home / "config.toml"} keeps them.', "ok")


def complete(face: Face, words: str) -> Sequence[str]:
    return [n for n, _ in NAMES if n.startswith(words)]
