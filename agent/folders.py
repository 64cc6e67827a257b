"""Which folder is worked in: the git repository around the one a command was started in; and how a file is read that
anybody may have put there."""

from __future__ import annotations

import os
from pathlib import Path

from transcripts.files import opened


def git_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a .git in it."""
    return next((p for p in (start, *start.parents) if os.path.exists(p / ".git")), None)


def workspace_root(cwd: Path) -> Path:
    """The folder the agent works in: the git repository around `cwd`, else `cwd` itself."""
    return git_root(cwd) or cwd


def text_of(path: str | Path, most: int) -> str:
    """The first `most` bytes of a regular file as text; "" for anything else."""
    try:
        with opened(path) as file:
            return file.read(most).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""
