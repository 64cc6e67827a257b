"""The commands that are no part of refold: the person's files and skills, those of a trusted folder."""

from __future__ import annotations

from agent.commands.base import Command, Face, find, load_commands
from agent.extend.prompts import Prompt
from agent.extend.skills import Skill, shown_path
from agent.session import Session


def commands_for(session: Session) -> dict[str, Command]:
    """All commands by name: refold's own, then files, then skills. A name that is taken stays what it is, and the
    session's notices say so."""
    found = load_commands()
    extensions = session.extensions
    for thing in (*extensions.prompts.values(), *extensions.skills.values()):
        taken = find(found, thing.name)
        if taken is None:
            found[thing.name] = _command(thing)
        elif isinstance(thing, Prompt) or not taken.own:
            who = "refold's own" if not taken.own else taken.own
            words = f"/{thing.name} is {who}; {shown_path(thing.path)} is left out."
            if words not in session.notices:
                session.notices.append(words)
    return found


def expanded(session: Session, text: str) -> str:
    """What a message that begins with the name of such a command means; any other text as it is."""
    name, _, words = text[1:].partition(" ") if text.startswith("/") else ("", "", "")
    name, _, below = name.partition("\n")
    if not name or "/" in name or not (session.extensions.prompts or session.extensions.skills):
        return text
    command = commands_for(session).get(name)
    if command is None or not command.own:
        return text
    thing = session.extensions.prompts.get(name) or session.extensions.skills[name]
    return thing.expand("\n".join(p for p in (below, words) if p).strip())


def _command(thing: Prompt | Skill) -> Command:
    async def run(face: Face, words: str) -> None:
        await face.send(thing.expand(words), shown=f"/{thing.name} {words}".strip())

    takes = thing.takes if isinstance(thing, Prompt) else "[what to do]"
    kind = "Skill: " if isinstance(thing, Skill) else ""
    help_words = f"{kind}{thing.description}\n\nFrom {shown_path(thing.path)}"
    return Command(thing.name, help_words, run, takes=takes, own=shown_path(thing.path))
