"""The hooks of this folder and your own: when each runs, what it runs, from which file, and whether it is trusted.

One that is not trusted does nothing; /trust shows its file. What a hook said stands in the session's log.
"""

from __future__ import annotations

from agent.commands.base import Face
from agent.extend.hooks import HookError, listing
from agent.extend.skills import shown_path

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    session = face.session
    try:
        found = listing(session.settings.home, session.safety.trust)
    except HookError as error:
        face.say(str(error), "error")
        return
    if not found:
        face.say("There are no hooks here. docs/extending.md tells how to make one.")
        return
    rows = [(event, matcher, command, shown_path(file), state) for event, matcher, command, file, state in found]
    face.table(rows, ("when", "for", "command", "file", "trust"))
    if session.hooks is None:
        face.say("None of them runs in this session.")
