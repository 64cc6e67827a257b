"""Repositories in and around the workspace: which of their folders git has to write in, and what in them decides what
runs outside of the sandbox later."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from agent.folders import text_of

MAX_MODULES = 500
"""Folders below .git/modules that are looked through; a submodule's name may have slashes."""
_LINK = 4096
"""Bytes of a .git that is a file; git writes one line."""
_CONFIG = 65_536
"""Bytes of a submodule's config that are looked through for its folder."""
_STEERING = ("hooks", "config", "config.worktree")
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.MULTILINE)


def git_folders(root: str) -> list[str]:
    """The repository's own folders where they lie outside of the workspace (worktrees, submodules). Only those that
    name this workspace in return: whoever made a folder may have written anything into its .git."""
    dot = os.path.join(root, ".git")
    target = text_of(dot, _LINK).partition("gitdir:")[2].strip()
    git = os.path.realpath(os.path.join(root, target)) if target else ""
    if not git or not os.path.exists(os.path.join(git, "HEAD")):
        return []
    if os.path.basename(os.path.dirname(git)) == "worktrees":
        back = text_of(os.path.join(git, "gitdir"), _LINK).strip()
        known = back and os.path.realpath(os.path.join(git, back)) == os.path.realpath(dot)
        return [git, os.path.dirname(os.path.dirname(git))] if known else []
    back = _WORKTREE.findall(text_of(os.path.join(git, "config"), _CONFIG))
    known = any(os.path.realpath(os.path.join(git, b)) == os.path.realpath(root) for b in back)
    return [git] if known else []


def steering(root: str, dots: Iterable[str]) -> tuple[list[str], list[str]]:
    """(what stays as it is, folders around it that stay where they are): hooks and config of the repositories with
    these .git, and of their submodules. Who could move such a folder could put another one in its place."""
    dots = list(dots)
    repositories = [path for path in dots if os.path.isdir(path)] + git_folders(root)
    unmoved = list(repositories)
    for repository in list(repositories):
        for folder, is_repository in _modules(os.path.join(repository, "modules")):
            unmoved.append(folder)
            repositories += [folder] if is_repository else []
    links = [path for path in dots if os.path.isfile(path)]
    return links + [os.path.join(r, name) for r in repositories for name in _STEERING if _has(r, name)], unmoved


def led_elsewhere(dots: Iterable[str]) -> list[str]:
    """The files by which the repositories with these .git take hooks and config from elsewhere. Git makes none where
    .git is a folder, and what is not there cannot be held: so what a command leaves is taken away again."""
    places = [path for dot in dots for path, _ in ((dot, True), *_modules(os.path.join(dot, "modules")))]
    return [path for path in (os.path.join(place, "commondir") for place in places) if os.path.lexists(path)]


def _has(repository: str, name: str) -> bool:
    """Whether a repository has such a file or folder of its own. A missing folder of hooks is made, as git makes it:
    what is not there cannot be held."""
    path = os.path.join(repository, name)
    if name == "hooks" and not os.path.lexists(path) and os.path.isfile(os.path.join(repository, "HEAD")):
        with suppress(OSError):
            os.mkdir(path)
    return os.path.exists(path) and not os.path.islink(path)


def _modules(folder: str) -> Iterator[tuple[str, bool]]:
    """The folders from `folder` down to the repositories of submodules, each with whether it is one."""
    waiting, looked = [folder], 0
    while waiting and looked < MAX_MODULES:
        place = waiting.pop(0)
        looked += 1
        try:
            inside = {e.name: e.path for e in os.scandir(place) if e.is_dir(follow_symlinks=False)}
        except OSError:
            continue
        is_repository = os.path.isfile(os.path.join(place, "HEAD"))
        yield place, is_repository
        waiting += [path for name, path in sorted(inside.items()) if not is_repository or name == "modules"]
