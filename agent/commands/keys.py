"""Shows the keys, and the names under which config.toml gives others.

A table `[keys]` in config.toml gives an action another key, or several: `mode = "f2"`, `editor = ["ctrl-g", "ctrl-x
ctrl-e"]`, `picture = []` for none. It counts from the next start on.
"""

from __future__ import annotations

from agent.commands.base import Face

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    if not any(name for _, name, _ in face.keys):
        face.table([(key, words) for key, _, words in face.keys], title="Keys")
        return
    face.table(face.keys, ("key", "action", "what it does"))
    face.say(f'Others: a table [keys] in {face.settings.home / "config.toml"}, such as  mode = "f2"')
