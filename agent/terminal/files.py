"""The files that `@` can name: listed once in the background, matched in a few milliseconds."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

MOST = 200_000
"""Paths that are kept."""

FRESH = 10.0
"""Seconds after which the list is made anew when it is asked for."""

SHOWN = 30
"""Matches that are offered."""

_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".tox"}


class FileIndex:
    """Answers what matches a word by calling `offer(word, paths)`, now or as soon as the files are known."""

    def __init__(self, root: Path, offer: Callable[[str, Sequence[str]], None], changed: Callable[[], None]) -> None:
        self._root = root
        self._offer = offer
        self._changed = changed
        self._text = ""
        self._lower = ""
        self._listed = 0.0
        self._word = ""
        self._listing: asyncio.Task[None] | None = None

    def ask(self, word: str) -> None:
        """Somebody typed `@word`."""
        self._word = word
        if time.monotonic() - self._listed > FRESH and (self._listing is None or self._listing.done()):
            self._listing = asyncio.get_running_loop().create_task(self._list())
        if self._listed:
            self._offer(word, matches(self._text, self._lower, word))

    async def _list(self) -> None:
        text = "\n".join(await asyncio.to_thread(list_files, self._root))
        self._text, self._lower = text, text.lower()
        self._listed = time.monotonic()
        self._offer(self._word, matches(self._text, self._lower, self._word))
        self._changed()


def list_files(root: Path) -> list[str]:
    """Paths below a folder, relative to it, ignore rules obeyed; folders end with a slash. By ripgrep, git, or hand."""
    rg = shutil.which("rg")
    rg = rg if rg and os.path.isabs(rg) else None  # with "." on the PATH it may be the folder's own
    commands = [[rg, "--files", "--hidden", "--glob", "!.git", "--no-messages"]] if rg else []
    # The config of a repository may name a program that git would start.
    commands.append(["git", "-c", "core.fsmonitor=false", "ls-files", "--cached", "--others", "--exclude-standard"])
    for command in commands:
        try:
            ran = subprocess.run(command, cwd=root, capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if ran.stdout or ran.returncode in (0, 1):
            files = sorted(ran.stdout.decode("utf-8", "replace").split("\n"))[:MOST]
            return _with_folders([f.replace(os.sep, "/") for f in files if f])
    return _with_folders(_walk(root))


def _walk(root: Path) -> list[str]:
    out: list[str] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in _SKIPPED)
        base = os.path.relpath(folder, root)
        out += sorted(f if base == "." else f"{base}/{f}" for f in files)
        if len(out) > MOST:
            break
    return out


def _with_folders(files: list[str]) -> list[str]:
    folders: set[str] = set()
    for file in files:
        at = file.rfind("/")
        while at > 0 and (folder := file[: at + 1]) not in folders:
            folders.add(folder)
            at = file.rfind("/", 0, at)
    return [*sorted(folders), *files]


def matches(text: str, lower: str, word: str) -> list[str]:
    """The best matches: the letters of the word in order, the nearer to a name's start and to each other the better.

    One regular expression over all paths at once: 50,000 of them take some ten milliseconds.
    """
    if not word:
        return [p for p in text.split("\n", 400)[:400] if "/" not in p.rstrip("/")][:SHOWN]
    small = word.lower()
    pattern = re.compile("[^\n]*?".join(re.escape(c) for c in small))
    found: dict[str, int] = {}
    exact = small in lower
    for m in re.finditer(re.escape(small), lower) if exact else pattern.finditer(lower):
        start = lower.rfind("\n", 0, m.start()) + 1
        end = lower.find("\n", m.end())
        path = text[start : end if end >= 0 else len(text)]
        score = _score(path, m.start() - start, m.end() - m.start(), len(small))
        found[path] = min(score, found.get(path, score))
        if len(found) > 5_000:
            break
    return sorted(found, key=lambda p: (found[p], len(p), p))[:SHOWN]


def _score(path: str, at: int, length: int, letters: int) -> int:
    """Lower is better: spread of the letters, then whether the match is in the file's name, at its start."""
    name = path.rstrip("/").rfind("/") + 1
    begins = at == name or path[at - 1 : at] in ("/", "_", "-", ".", " ")
    return (
        (length - letters) * 4 + (0 if at == name else 2 if at > name else 6) + (0 if begins else 3) + path.count("/")
    )
