"""A run that was started by a batch does not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


def die_with_parent() -> None:
    """Asks the kernel for SIGTERM when the parent ends; does nothing unless the parent asked for that, or off Linux."""
    if not os.environ.pop("REFOLD_DIE_WITH_PARENT", "") or sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
