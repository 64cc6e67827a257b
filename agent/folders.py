"""Which folder is worked in: the git repository around the one a command was started in; and how a file is read that
anybody may have put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def git_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a .git in it."""
    return next((p for p in (start, *start.parents) if (p / ".git").exists()), None)


def workspace_root(cwd: Path) -> Path:
    """The folder the agent works in: the git repository around `cwd`, else `cwd` itself."""
    return git_root(cwd) or cwd


def text_of(path: str | Path, most: int) -> str:
    """The first `most` bytes of a regular file as text; "" for anything else. A pipe is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except (OSError, ValueError):
        return ""
    return found.decode("utf-8", "surrogateescape")
