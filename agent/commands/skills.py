"""The skills that the model knows here, yours and this folder's; with the name of one, runs it.

A skill is a folder with a SKILL.md: a name, a description, and instructions that the model reads when the work comes
up. /skills NAME and /NAME do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Face
from agent.extend.skills import shown_path

TAKES = "[name [what to do]]"


async def run(face: Face, words: str) -> None:
    skills = face.session.extensions.skills
    name, _, rest = words.partition(" ")
    if name in skills:
        await face.send(skills[name].expand(rest.strip()), shown=f"Use the skill {words}")
    elif name:
        face.say(f"There is no skill {name}. /skills lists them.", "warn")
    elif not skills:
        face.say("There are no skills here. docs/extending.md tells how to make one.")
    else:
        rows = [(s.name, s.description, shown_path(s.path)) for s in skills.values()]
        face.table(rows, ("skill", "what it is for", "file"))


def complete(face: Face, words: str) -> Sequence[str]:
    return [name for name in face.session.extensions.skills if name.startswith(words)]
