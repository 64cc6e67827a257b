"""All extensions of one session. Nothing is read before it is asked for, nothing of a folder before it is trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agent.extend.agents import AgentKind, load_agents
from agent.extend.prompts import Prompt, load_prompts
from agent.extend.skills import Skill, load_skills, person_folders, skill_words
from agent.trust import Brought, Trust, brings

HOW = "/trust, or `refold trust`"
UNTRUSTED = "This folder brings along"
"""How the line about files that are not trusted begins; a face that asks about them leaves the line out."""


@dataclass(frozen=True)
class Untrusted:
    """Files of a folder that do nothing yet; `changed` are those of them that were trusted as they once were."""

    files: tuple[Brought, ...] = ()
    changed: tuple[Brought, ...] = ()


class Extensions:
    """What the person and a trusted folder add. `bare` knows none. What cannot be used becomes a line in `notices`."""

    def __init__(self, home: Path, trust: Trust, notices: list[str], *, bare: bool = False) -> None:
        self._home, self._trust, self._bare = home, trust, bare
        self.notices = notices

    @cached_property
    def prompts(self) -> dict[str, Prompt]:
        """The slash commands that are files, by name."""
        return {} if self._bare else load_prompts(self._home, self._trust, self.notices)

    @cached_property
    def skills(self) -> dict[str, Skill]:
        """The skills, by name."""
        return {} if self._bare else load_skills(self._home, self._trust, self.notices)

    @cached_property
    def agents(self) -> dict[str, AgentKind]:
        """The kinds of sub-agents that are files, by name."""
        return {} if self._bare else load_agents(self._home, self._trust, self.notices)

    def skill_words(self) -> str:
        """The part of the system prompt that names the skills."""
        return skill_words(self.skills.values())

    def untrusted(self) -> Untrusted:
        """What the folder brings along and is not trusted as it is now; what is the person's own is left out."""
        if self._bare or not brings(self._trust.root):
            return Untrusted()
        state = self._trust.state()
        new, changed = ([b for b in part if not self._is_own(b)] for part in (state.new, state.changed))
        return Untrusted((*new, *changed), tuple(changed))

    def untrusted_words(self) -> str:
        """One line about what is not trusted, which begins with UNTRUSTED; "" where there is nothing of the kind."""
        found = self.untrusted()
        if not found.files:
            return ""
        kinds = ", ".join(dict.fromkeys(b.what for b in found.files))
        count, changed = len(found.files), len(found.changed)
        if count == 1:
            since = " again, for it has changed" if changed else ""
            return f"{UNTRUSTED} 1 file ({kinds}) that does nothing until you trust it{since}: {HOW}."
        since = f", {changed} of them again, for they have changed" if changed else ""
        return f"{UNTRUSTED} {count} files ({kinds}) that do nothing until you trust them{since}: {HOW}."

    def _is_own(self, file: Brought) -> bool:
        """Whether a file of the workspace is one of the person's: where they work in their home, some are both."""
        path = os.path.realpath(os.path.join(self._trust.root, file.path))
        own = (self._home, *person_folders(self._home))
        return any(path.startswith(os.path.realpath(folder) + "/") for folder in own)
