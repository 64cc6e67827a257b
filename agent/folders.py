"""Which folder is worked in: the git repository around the one a command was started in."""

from __future__ import annotations

from pathlib import Path


def git_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a .git in it."""
    return next((p for p in (start, *start.parents) if (p / ".git").exists()), None)


def workspace_root(cwd: Path) -> Path:
    """The folder the agent works in: the git repository around `cwd`, else `cwd` itself."""
    return git_root(cwd) or cwd
