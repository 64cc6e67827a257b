"""What can be typed: commands and keys.

With the name of a command, its own help.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Face, find, load_commands

ALIASES = ("?",)
TAKES = "[command]"
WHILE_BUSY = True

KEYS = (
    ("Enter", "send; while it works: tell it at its next step"),
    ("Ctrl+J, \\ Enter", "a new line (also Shift+Enter or Alt+Enter)"),
    ("Tab", "while it works: send after this turn"),
    ("Up", "earlier input; while it works: take a waiting line back"),
    ("Esc", "stop, everything is kept; twice: clear the input"),
    ("Ctrl-C", "clear the input, then stop, then quit"),
    ("Ctrl-D", "quit, on an empty line"),
    ("Shift+Tab", "what runs unasked: plan, ask, edits, auto, yolo"),
    ("Ctrl-O", "the last output in full"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-G", "write in your editor ($VISUAL, $EDITOR)"),
    ("Ctrl-V", "paste a picture"),
    ("@path", "name a file"),
    ("! command", "run a command of yours; !! keeps it from the model"),
)


async def run(face: Face, words: str) -> None:
    commands = load_commands()
    if words:
        command = find(commands, words.lstrip("/"))
        if command is None:
            face.say(f"There is no command /{words.lstrip('/')}.", "warn")
            return
        also = f"\n\nAlso: {', '.join('/' + a for a in command.aliases)}" if command.aliases else ""
        face.markdown(f"**/{command.name}** {command.takes}\n\n{command.help}{also}".replace("[", "\\["))
        return
    face.table(KEYS, title="Keys")
    face.table([(f"/{c.name} {c.takes}".strip(), c.summary) for c in commands.values()], title="Commands")


def complete(face: Face, words: str) -> Sequence[str]:
    return [name for name in load_commands() if name.startswith(words)]
