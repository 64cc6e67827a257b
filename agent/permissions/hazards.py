"""What a repository's own configuration would make git run."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_RUNS = re.compile(
    r"^\s*(fsmonitor|pager|sshcommand|askpass|editor|hookspath|gitproxy|external|textconv|command|cmd|driver|clean|smudge|"
    r"process|program|helper|path|uploadpack|receivepack|worktree|[\w-]+\s*=\s*!.*)\s*=?",
    re.IGNORECASE | re.MULTILINE,
)
_FSMONITOR_OFF = re.compile(r"^\s*fsmonitor\s*=\s*(?:true|false|0|1)\s*$", re.IGNORECASE | re.MULTILINE)


def config_hazard(folder: str) -> str:
    """The first setting of the repository around a folder that names a program to run; "" where there is none.

    A repository that was cloned has no such setting; one that came in an archive, or that lies bare inside another
    one, may.
    """
    for git in _git_folders(folder):
        for name in ("config", "config.worktree"):
            path = os.path.join(git, name)
            try:
                stat = os.stat(path)
            except OSError:
                continue
            found = _hazard_in(path, stat.st_mtime_ns, stat.st_size)
            if found:
                return found
    return ""


def _git_folders(folder: str) -> list[str]:
    while True:
        dot = os.path.join(folder, ".git")
        if os.path.isdir(dot):
            return [dot]
        if os.path.isfile(dot):
            return _linked(dot)
        if all(os.path.exists(os.path.join(folder, n)) for n in ("HEAD", "objects", "refs")):
            return [folder]
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        folder = parent


def _linked(dot: str) -> list[str]:
    try:
        with open(dot, encoding="utf-8", errors="replace") as file:
            target = file.read(4096).partition("gitdir:")[2].strip()
    except OSError:
        return []
    git = os.path.normpath(os.path.join(os.path.dirname(dot), target))
    # A worktree keeps its configuration in the repository it belongs to.
    common = os.path.dirname(os.path.dirname(git)) if "/worktrees/" in git else git
    return [git, common]


@lru_cache(maxsize=64)
def _hazard_in(path: str, changed: int, size: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(1_000_000)
    except OSError:
        return "unreadable settings"
    section = ""
    for line in text.splitlines():
        if line.strip().startswith("["):
            section = line.strip().strip("[]").split()[0].lower() if line.strip("[] ") else ""
            if section in ("include", "includeif"):
                return "include"
        found = _RUNS.match(line)
        if found and not _FSMONITOR_OFF.match(line) and not _ordinary(section, found[1].lower()):
            return f"{section}.{found[1].split('=')[0].strip().lower()}"
    return ""


def _ordinary(section: str, key: str) -> bool:
    """Settings of a usual clone that share a name with a dangerous one: the path of a submodule."""
    return (section, key) in (("submodule", "path"), ("core", "worktree"))
