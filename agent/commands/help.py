"""What can be typed: commands and keys.

With the name of a command, its own help.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands._own import commands_for
from agent.commands.base import Face, find

ALIASES = ("?",)
TAKES = "[command]"
WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    commands = commands_for(face.session)
    if words:
        command = find(commands, words.lstrip("/"))
        if command is None:
            face.say(f"There is no command /{words.lstrip('/')}.", "warn")
            return
        also = f"\n\nAlso: {', '.join('/' + a for a in command.aliases)}" if command.aliases else ""
        face.markdown(f"**/{command.name}** {command.takes}\n\n{command.help}{also}".replace("[", "\\["))
        return
    face.table([(key, words) for key, _, words in face.keys], title="Keys")
    for title, own in (("Commands", False), ("Commands of your own, and of this folder", True)):
        rows = [(f"/{c.name} {c.takes}".strip(), c.summary) for c in commands.values() if bool(c.own) is own]
        if rows:
            face.table(rows, title=title)


def complete(face: Face, words: str) -> Sequence[str]:
    return [name for name in commands_for(face.session) if name.startswith(words)]
