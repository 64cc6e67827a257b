"""Sub-agents that are files: Markdown with a head (name, description, tools) and what they are told as the body.

`~/.refold/agents` is the person's; `.refold/agents` and `.claude/agents` of a workspace count once they are trusted.
None may do more than the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.extend.files import Source, is_markdown, markdown_below, tidy, trusted, yours
from agent.extend.front import FrontError, page_of
from agent.trust import Trust
from tools.base import EXPLORE, WORK

FOLDERS = (".refold/agents", ".claude/agents")
"""Where a workspace has its sub-agents."""
LINE_CAP, MOST = 160, 20
"""Most characters that the model is told of one, and most that are offered: each costs tokens in every request."""

_OURS = {
    "multiedit": "edit", "notebookedit": "edit", "notebookread": "read", "webfetch": "fetch", "todowrite": "todo",
    "ls": "glob", "bashoutput": "jobs", "killshell": "jobs", "askuserquestion": "ask_user",
}  # fmt: skip
"""What other programs call our tools."""


@dataclass(frozen=True)
class AgentKind:
    """A kind of sub-agent. `tools` are the names of those it has, () for all that the session has; `body` is what it is
    told beside its task."""

    name: str
    description: str
    tools: tuple[str, ...] = ()
    body: str = ""
    path: str = ""


def load_agents(home: Path, trust: Trust, notices: list[str]) -> dict[str, AgentKind]:
    """All kinds by name; the person's own stand before the folder's. What cannot be used is a notice each."""
    found: dict[str, AgentKind] = {}
    for source in _sources(home, trust):
        try:
            kind = _kind(source)
        except FrontError as error:
            notices.append(f"{source.path} is no sub-agent: {error}.")
            continue
        if kind.name in found:
            other = found[kind.name].path
            notices.append(f"The sub-agent {kind.name} is {other}; {source.path} has the same name and is left out.")
        elif len(found) == MOST:
            notices.append(f"{source.path} is left out: there are {MOST} sub-agents already.")
        else:
            found[kind.name] = kind
    return found


def _sources(home: Path, trust: Trust) -> Iterator[Source]:
    yield from yours(home / "agents", markdown_below(home / "agents"))
    for folder in FOLDERS:
        yield from trusted(trust, folder, [name for name in trust.below(folder) if is_markdown(name)])


def _kind(source: Source) -> AgentKind:
    page = page_of(source.data)
    name = tidy(page.head.get("name") or Path(source.name).stem, 64).lower()
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name in (EXPLORE, WORK):
        raise FrontError(f"{name!r} is no name for one")
    description = tidy(page.head.get("description", ""), LINE_CAP)
    if not description:
        raise FrontError("its front matter has no description")
    return AgentKind(name, description, _tools(page.head.get("tools", "")), page.body, source.path)


def _tools(words: str) -> tuple[str, ...]:
    """The names of a list in whatever spelling ("Read, Grep", "[read, grep]", "- read"); () where all are meant."""
    if words.strip() in ("", "*", "[]"):
        return ()
    names = (n.strip("\"'-").lower() for n in re.split(r"[\s,\[\]]+", re.sub(r"\(.*?\)", "", words)))
    return tuple(dict.fromkeys(_OURS.get(n, n) for n in names if n))


def kind_words(kinds: Iterable[AgentKind]) -> str:
    """What the model is told of them, behind the words about the two that are always there."""
    return "".join(f". {kind.name}: {kind.description}" for kind in kinds)
