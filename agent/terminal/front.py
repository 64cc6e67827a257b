"""Whose the terminal is: a job in the background must leave it alone, and the shell may have changed it meanwhile."""

from __future__ import annotations

import os
import sys
import termios


def in_front() -> bool:
    """Whether this program is the one that the terminal's keys go to."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


def cooked() -> bool:
    """Whether the terminal gives whole lines, as it does for a shell."""
    try:
        return bool(termios.tcgetattr(sys.stdin.fileno())[3] & termios.ICANON)
    except (termios.error, OSError, ValueError):
        return False
