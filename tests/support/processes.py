"""Looking for processes on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path


def running(words: str) -> list[str]:
    """Command lines on this machine that contain `words`."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            state = Path("/proc", entry, "stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            continue
        if words in line and state not in "ZX":
            found.append(line)
    return found


def gone(words: str, seconds: float = 3.0) -> bool:
    """Whether no such command line is left, waiting a little."""
    deadline = time.monotonic() + seconds
    while running(words) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not running(words)
