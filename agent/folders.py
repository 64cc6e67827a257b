"""Which folder is worked in: the git repository around the one a command was started in; and how a file is read that
anybody may have put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def git_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a .git in it."""
    return next((p for p in (start, *start.parents) if os.path.exists(p / ".git")), None)


def workspace_root(cwd: Path) -> Path:
    """The folder the agent works in: the git repository around `cwd`, else `cwd` itself."""
    return git_root(cwd) or cwd


def open_regular(path: str | Path, flags: int = 0) -> BinaryIO:
    """Opens a regular file for reading, with these flags as well. Raises OSError for anything else: a pipe is not
    waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", str(path))


def text_of(path: str | Path, most: int) -> str:
    """The first `most` bytes of a regular file as text; "" for anything else."""
    try:
        with open_regular(path) as file:
            return file.read(most).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""
