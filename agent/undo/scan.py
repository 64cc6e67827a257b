"""Looking at a folder: what is in it now, as far as it can be brought back later."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools._held import path_of
from transcripts.files import opened

EXCLUDED = frozenset(
    {
        ".git", "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache",
        ".ruff_cache", ".tox", ".nox", ".gradle", ".terraform", ".cache", ".hypothesis", ".eggs", "Pods", ".bundle",
        ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".direnv", ".hg", ".svn", ".jj",
    }
)  # fmt: skip
"""Folders that are left out by name: made again by a command, or a version control's own."""
MAX_FILE_BYTES = 10_000_000
MAX_ENTRIES = 50_000
"""Files and folders of one workspace beyond which the rest is left out."""

Key = tuple[int, int, int, int, int]
"""mtime (ns), ctime (ns), size (bytes), inode, mode: as long as none of them changes, a file is the same."""

Found = tuple[str, int, Key]
"""One thing on disk: f (file), l (symlink) or d (folder), its permission bits and its key."""

_FILE, _FOLDER, _LINK, _KIND = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, 0o170000
_NO_KEY: Key = (0, 0, 0, 0, 0)


@dataclass
class Scan:
    """What a folder holds, by path relative to it, and what is left out, with the reason. `left_out` names folders
    as a whole."""

    found: dict[str, Found] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def scan(root: str, more: Sequence[str] = (), excluded: Sequence[str] = ()) -> Scan:
    """Looks through a folder, the shallow parts first, and then through `more` folders, whose files are named by
    their absolute paths. `excluded` are absolute paths that are passed over."""
    result = Scan()
    passed = {*excluded, *(os.path.relpath(p, root) for p in excluded)}
    waiting = ["", *(folder.rstrip("/") + "/" for folder in more)]
    for prefix in waiting:
        try:
            descriptor = os.open(os.path.join(root, prefix), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            result.left_out[prefix.rstrip("/") or "."] = f"cannot be read: {error.strerror}"
            continue
        try:
            waiting += _look(result, prefix, descriptor, passed)
        finally:
            os.close(descriptor)
    return result


def content_of(where: str, *, here: bool) -> bytes | None:
    """The bytes of a regular file of a size that is kept; None for one that grows and grows. `here`: no folder on the
    way is a link, and none may have become one. Raises OSError, also for what is no such file any more."""
    with opened(where, os.O_NOFOLLOW) as file:
        if here and path_of(file.fileno()) not in (None, where):
            return None
        data = file.read(MAX_FILE_BYTES + 1)
    return data if len(data) <= MAX_FILE_BYTES else None


def _look(result: Scan, prefix: str, descriptor: int, passed: set[str]) -> list[str]:
    """Adds what one folder holds and gives the folders in it, each with a slash at its end."""
    found, left_out, folders = result.found, result.left_out, []
    names = os.listdir(descriptor)
    if prefix not in ("", "/") and "CACHEDIR.TAG" in names:
        left_out[prefix.rstrip("/")] = "a cache folder"
        return []
    if len(found) + len(names) > MAX_ENTRIES:
        left_out[prefix.rstrip("/") or "."] = f"more than {MAX_ENTRIES:,} files"
        return []
    look = os.stat  # by descriptor and name this is twice as fast as os.scandir with full paths
    for name in names:
        path = prefix + name
        try:
            info = look(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:
            continue
        mode = info.st_mode
        kind = mode & _KIND
        if kind == _FILE:
            if info.st_size > MAX_FILE_BYTES:
                left_out[path] = f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
            elif name != ".git":
                found[path] = (
                    "f",
                    mode & 0o7777,
                    (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, mode),
                )
        elif kind == _FOLDER:
            if name in EXCLUDED or path in passed:
                left_out[path] = "left out by its name"
            else:
                found[path] = ("d", mode & 0o7777, _NO_KEY)
                folders.append(path + "/")
        elif kind == _LINK:
            found[path] = ("l", 0, (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, mode))
        else:
            left_out[path] = "neither a file nor a folder"
    return folders
