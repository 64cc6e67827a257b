"""Slash commands of one's own: a Markdown file whose body is sent as the person's message, with arguments put in.

`~/.refold/commands` holds the person's, `.refold/commands` and `.claude/commands` a trusted folder's. A file in a
sub-folder is a:b. Nothing in such a file widens what is permitted, chooses a model or runs by being sent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.extend.files import Source, is_markdown, markdown_below, tidy, trusted, yours
from agent.extend.front import FrontError, page_of
from agent.trust import Trust

FOLDERS = (".refold/commands", ".claude/commands")
"""Where a workspace has its commands."""

_NAME = re.compile(r"[\w-]+(?::[\w-]+)*")
_PLACE = re.compile(r"\$(ARGUMENTS|[1-9](?!\d))")


@dataclass(frozen=True)
class Prompt:
    """One command: what it says of itself, what it takes, the text it sends, and the file it comes from."""

    name: str
    description: str
    takes: str
    body: str
    path: str
    yours: bool

    def expand(self, words: str) -> str:
        """The text with the arguments in it: `$ARGUMENTS` is all of them, `$1` to `$9` one each (quotes hold words
        together). Where the text has no place for them, they stand at its end."""
        if not _PLACE.search(self.body):
            return f"{self.body}\n\n{words}" if words else self.body
        try:
            parts = shlex.split(words)
        except ValueError:
            parts = words.split()

        def put(found: re.Match[str]) -> str:
            if found[1] == "ARGUMENTS":
                return words
            return parts[int(found[1]) - 1] if int(found[1]) <= len(parts) else ""

        return _PLACE.sub(put, self.body)


def load_prompts(home: Path, trust: Trust, notices: list[str]) -> dict[str, Prompt]:
    """All commands by name; the person's own stand before the folder's. What cannot be used is a notice each."""
    found: dict[str, Prompt] = {}
    for source in _sources(home, trust):
        name = source.name.removesuffix(".md").replace("/", ":")
        try:
            prompt = _prompt(name, source)
        except FrontError as error:
            notices.append(f"{source.path} is no command: {error}.")
            continue
        if name in found:
            notices.append(f"/{name} is {found[name].path}; {source.path} has the same name and is left out.")
        else:
            found[name] = prompt
    return found


def _sources(home: Path, trust: Trust) -> Iterator[Source]:
    own = home / "commands"
    yield from yours(own, markdown_below(own))
    for folder in FOLDERS:
        yield from trusted(trust, folder, [name for name in trust.below(folder) if is_markdown(name)])


def _prompt(name: str, source: Source) -> Prompt:
    if not _NAME.fullmatch(name):
        raise FrontError("a name is letters, digits, - and _")
    page = page_of(source.data)
    if not page.body:
        raise FrontError("it has no text")
    words = page.head.get("description") or page.body.partition("\n")[0].lstrip("# ")
    return Prompt(name, tidy(words), tidy(page.head.get("argument-hint", ""), 60), page.body, source.path, source.yours)
