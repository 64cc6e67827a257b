"""What a folder's own files would make a program run that is to read only: git's configuration, a toolchain."""

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


_HOOK = "hooks/post-index-change"
"""The one hook that commands run which only read: they may refresh the index."""


_FILES: dict[str, dict[str, str]] = {
    # A toolchain or compiler of the folder's own would be run, or fetched.
    "cargo": {"rust-toolchain": "", "rust-toolchain.toml": "", ".cargo/config": "", ".cargo/config.toml": ""},
    "go": {"go.mod": r"^toolchain\s", "go.work": r"^toolchain\s"},
    # Its registry would be sent what stands in the environment.
    "npm": {".npmrc": r"\$\{|shell|node-options"},
    # A file of somebody else's would be fetched.
    "docker": dict.fromkeys(
        ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"), r"^\s*include\s*:"
    ),
}
_FILES["rustc"] = _FILES["rustup"] = _FILES["cargo"]
_FILES["podman"] = _FILES["docker"]


def tool_hazard(program: str, folder: str) -> str:
    """The first file of a folder, or of one above it, that would make a tool do more than read; "" where none is."""
    wanted = _FILES.get(program, {})
    while wanted:
        for name, pattern in wanted.items():
            if _has(os.path.join(folder, name), pattern):
                return name
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return ""


def _has(path: str, pattern: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return re.search(pattern, file.read(1_000_000), re.MULTILINE) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def config_hazard(folder: str) -> str:
    """The first thing of the repository around a folder that git would run while it only reads; "" where there is none.

    A repository that was cloned has no such thing; one that came in an archive, or that lies bare inside another one,
    may. Submodules are looked at as well: status and diff go into them.
    """
    for git in _git_folders(folder):
        found = _hazard_of(git)
        if found:
            return found
    return ""


def _hazard_of(git: str) -> str:
    if os.access(os.path.join(git, _HOOK), os.X_OK):
        return _HOOK
    places = [git, *_submodules(git)]
    for path in [os.path.join(p, name) for p in places for name in ("config", "config.worktree")]:
        try:
            stat = os.stat(path)
        except OSError:
            continue
        found = _hazard_in(path, stat.st_mtime_ns, stat.st_size)
        if found:
            return found
    return ""


def _submodules(git: str) -> list[str]:
    """The git folders of submodules: those kept in this one, and those that lie in the working tree."""
    found: list[str] = []
    for folder, names, files in os.walk(os.path.join(git, "modules")):
        if "HEAD" in files:
            found.append(folder)
            names[:] = [n for n in names if n == "modules"]
    work = os.path.dirname(git)
    linked = (os.path.join(work, path, ".git") for path in _gitlinks(os.path.join(git, "index")))
    return found + [path for path in linked if os.path.isdir(path)]


_GITLINK = (0o160000).to_bytes(4, "big")


def _gitlinks(index: str) -> list[str]:
    """The paths of submodules in an index of version 2 or 3. An index of another version that seems to have any gives
    the whole working tree (".")."""
    try:
        with open(index, "rb") as file:
            data = file.read()
    except OSError:
        return []
    if _GITLINK not in data:
        return []
    if int.from_bytes(data[4:8], "big") not in (2, 3):
        return ["."]
    found: list[str] = []
    at = 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        extended = data[at + 60] & 0x40
        start = at + 62 + (2 if extended else 0)
        end = data.index(b"\0", start)
        if data[at + 24 : at + 28] == _GITLINK:
            found.append(os.fsdecode(data[start:end]))
        at += (end - at) // 8 * 8 + 8
    return found


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
