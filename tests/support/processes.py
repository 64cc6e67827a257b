"""Looking for processes on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """One that runs: no zombie."""

    pid: int
    parent: int
    line: str
    """Its words, spaces between them."""


def processes() -> Iterable[Process]:
    """All that run now."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            state, parent = Path("/proc", entry, "stat").read_text("latin-1").rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            yield Process(int(entry), int(parent), line)


def running(words: str) -> list[Process]:
    """Those whose command line contains `words`."""
    return [process for process in processes() if words in process.line]


def gone(words: str, seconds: float = 3.0) -> bool:
    """Whether no such command line is left, waiting a little."""
    return within(seconds, lambda: not running(words))


def ended(pid: int, seconds: float = 3.0) -> bool:
    """Whether this process has ended, waiting a little."""
    return within(seconds, lambda: all(process.pid != pid for process in processes()))


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold in this time. What was seen last counts: it is not asked once more."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held
