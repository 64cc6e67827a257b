"""The files that extensions are made of: the person's own, and those of a folder as far as they are trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.trust import Trust, content

MAX_BYTES = 256 * 1024
"""Bytes of one command or SKILL.md; a larger one is passed over."""
MAX_FILES = 500
"""Files of one folder of commands, and skills of one folder, that are looked at."""
MAX_DEPTH = 4


@dataclass(frozen=True)
class Source:
    """One file that counts: its absolute path, its path below the folder it was found in, its bytes, and whether it is
    the person's own (else it is a trusted one of the workspace)."""

    path: str
    name: str
    data: bytes
    yours: bool


def yours(folder: Path, names: Sequence[str]) -> Iterator[Source]:
    """Files of the person's own below a folder; what cannot be read is passed over."""
    for name in names:
        data = content(str(folder / name))
        if data is not None and len(data) <= MAX_BYTES:
            yield Source(str(folder / name), name, data, True)


def trusted(trust: Trust, folder: str, names: Sequence[str]) -> Iterator[Source]:
    """Files of the workspace below one of its folders, as far as they are trusted as they are now."""
    for path, data in trust.read_all(f"{folder}/{name}" for name in names).items():
        if len(data) <= MAX_BYTES:
            yield Source(os.path.join(trust.root, path), path[len(folder) + 1 :], data, False)


def markdown_below(folder: Path) -> list[str]:
    """The Markdown files below a folder of the person's, as paths relative to it, in order; a bounded number."""
    found: list[str] = []
    for place, folders, names in os.walk(folder, followlinks=True):
        below = os.path.relpath(place, folder)
        depth = 0 if below == "." else below.count("/") + 1
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < MAX_DEPTH else []
        found += [os.path.normpath(os.path.join(below, n)) for n in names if is_markdown(n)]
        if len(found) >= MAX_FILES:
            break
    return sorted(found)[:MAX_FILES]


def is_markdown(path: str) -> bool:
    """Whether a path is that of a Markdown file, and none of its parts is hidden."""
    return path.endswith(".md") and not any(part.startswith(".") for part in path.split("/"))


def skills_in(folder: Path) -> list[str]:
    """The SKILL.md files one level below a folder of the person's, as paths relative to it; a bounded number."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return []
    found = (f"{name}/SKILL.md" for name in names if name[0] != ".")
    return [path for path in found if os.path.isfile(os.path.join(folder, path))][:MAX_FILES]


def tidy(text: str, most: int = 300) -> str:
    """One line of plain characters, `most` at most."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
