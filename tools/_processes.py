"""Processes that a command left behind, found by their group or by a mark in their environment.

Also a program of its own, which a keeper becomes when its session is gone (tools/_keeper.py):
python _processes.py MARK [GROUP ...] [kNUMBER ...]. Nothing of ours is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

GRACE = 1.5
"""Seconds between TERM and KILL."""

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


def reap(mark: str, groups: Sequence[int], kept: Iterable[str]) -> None:
    """Ends these groups and all that carries the mark with a number, but for the whole marks in `kept`: TERM, then KILL
    for what is left after GRACE seconds."""
    kept = set(kept)

    def left() -> list[int]:
        spared = {pid for whole in kept for pid in marked(whole)}
        return [pid for pid in marked(f"{mark}-", exactly=False) if pid not in spared]

    deadline = time.monotonic() + GRACE
    _signal_all(signal.SIGTERM, left(), groups)
    while (left() or any(map(group_alive, groups))) and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal_all(signal.SIGKILL, left(), groups)


def _signal_all(number: int, pids: Iterable[int], groups: Iterable[int]) -> None:
    for send, targets in ((os.killpg, groups), (os.kill, pids)):
        for target in targets:
            with contextlib.suppress(OSError):
                send(target, number)


def main(words: Sequence[str]) -> None:
    """What a keeper was told last, as words."""
    mark, *rest = words
    kept = [f"{mark}-{word[1:]}" for word in rest if word.startswith("k")]
    reap(mark, [int(word) for word in rest if word.isdigit()], kept)


if __name__ == "__main__":
    main(sys.argv[1:])
