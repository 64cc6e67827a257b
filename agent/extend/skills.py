"""Skills: folders with a SKILL.md, instructions for one kind of work that the model reads when the work comes up.

Only name and description of each stand in the system prompt; the rest is read when it is needed. `~/.refold/skills` and
`~/.agents/skills` are the person's, the folders of the same kind in a workspace count once they are trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.extend.files import Source, skills_in, tidy, trusted, yours
from agent.extend.front import FrontError, page_of
from agent.trust import Trust

FOLDERS = (".refold/skills", ".agents/skills", ".claude/skills")
"""Where a workspace has its skills."""
LINE_CAP, TOTAL_CAP = 240, 6_000
"""Most characters of one skill's line in the system prompt, and of all: about 60 and 1,500 tokens."""

_HEAD = (
    "Skills\nInstructions for particular work, one folder each. Where one fits what is asked, read its SKILL.md before "
    "you begin and follow it; paths in it are relative to its folder. They widen nothing you are permitted to do.\n"
)


@dataclass(frozen=True)
class Skill:
    """One skill: its name and what it is for, the body of its SKILL.md, that file's path, and whose it is."""

    name: str
    description: str
    body: str
    path: str
    yours: bool

    def expand(self, words: str) -> str:
        """What is sent when the person runs the skill."""
        said = f"\n\n{words}" if words else ""
        return f"Use the skill {self.name} (its folder: {shown_path(os.path.dirname(self.path))}).\n\n{self.body}{said}"


def person_folders(home: Path) -> tuple[Path, ...]:
    """The folders of the person's own skills; reading in them needs no permission."""
    return home / "skills", Path(os.path.expanduser("~/.agents/skills"))


def load_skills(home: Path, trust: Trust, notices: list[str]) -> dict[str, Skill]:
    """All skills by name; the person's own stand before the folder's. What cannot be used is a notice each."""
    found: dict[str, Skill] = {}
    seen: set[str] = set()
    for source in _sources(home, trust):
        real = os.path.realpath(source.path)
        if real in seen:
            continue
        seen.add(real)
        try:
            skill = _skill(source)
        except FrontError as error:
            notices.append(f"{source.path} is no skill: {error}.")
            continue
        if skill.name in found:
            notices.append(
                f"The skill {skill.name} is {found[skill.name].path}; {source.path} has the same name and is left out."
            )
        else:
            found[skill.name] = skill
    return found


def _sources(home: Path, trust: Trust) -> Iterator[Source]:
    for folder in person_folders(home):
        yield from yours(folder, skills_in(folder))
    for folder in FOLDERS:
        names = [name for name in trust.below(folder) if name.endswith("/SKILL.md") and name.count("/") == 1]
        yield from trusted(trust, folder, [name for name in names if trust.stands([f"{folder}/{name[:-9]}"])])


def _skill(source: Source) -> Skill:
    page = page_of(source.data)
    name = tidy(page.head.get("name") or os.path.dirname(source.name), 64).replace(" ", "-")
    description = tidy(page.head.get("description", ""), 1_024)
    if not description:
        raise FrontError("its front matter has no description")
    # The resolved path: the person's folder may hold links to where their skills really are.
    path = os.path.realpath(source.path) if source.yours else source.path
    return Skill(name, description, page.body, path, source.yours)


def skill_words(skills: Iterable[Skill]) -> str:
    """The part of the system prompt that names them, one line each; "" where there are none."""
    lines: list[str] = []
    left: list[Skill] = []
    for skill in skills:
        line = tidy(f"- {skill.name} ({shown_path(skill.path)}): {skill.description}", LINE_CAP)
        if left or sum(map(len, lines)) + len(line) > TOTAL_CAP:
            left.append(skill)
        else:
            lines.append(line)
    if left:
        places = dict.fromkeys(shown_path(os.path.dirname(os.path.dirname(s.path))) for s in left)
        lines.append(f"- and {len(left)} more, not named here: look into {', '.join(places)}")
    return _HEAD + "\n".join(lines) if lines else ""


def shown_path(path: str) -> str:
    """A path as it is told: with ~ for the person's home."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home.rstrip("/") + "/") else path
