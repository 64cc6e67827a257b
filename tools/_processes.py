"""Processes that a command left behind, found by their group or by a mark in their environment."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

MARK = "REFOLD_JOB"
"""Environment variable by which a process is known that left its group (setsid, daemons)."""


def group_alive(group: int) -> bool:
    """Whether a process group has a member that is not a zombie."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    members = [fields for fields in _processes() if fields[2] == str(group)]
    return any(fields[0] not in "ZX" for fields in members) if members else not Path("/proc/self/stat").exists()


def _processes() -> Iterable[list[str]]:
    """Fields of /proc/PID/stat from the state on (state, parent, group ...); nothing where there is no /proc."""
    for entry in _pids():
        with contextlib.suppress(OSError):
            yield Path("/proc", entry, "stat").read_text("latin-1").rpartition(") ")[2].split()


def _pids() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def marked(mark: str, exactly: bool = True) -> list[int]:
    """Running processes whose environment carries the mark (or one that begins so): those too that left the group.
    Linux only."""
    wanted = f"{MARK}={mark}".encode() + (b"\0" if exactly else b"")
    found: list[int] = []
    for entry in _pids():
        with contextlib.suppress(OSError):
            if wanted in Path("/proc", entry, "environ").read_bytes() + b"\0":
                found.append(int(entry))
    return found


def runs(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
