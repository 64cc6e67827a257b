"""A keeper: a small shell beside a session that ends its commands when the session's process is gone, however it went.

A process that is killed (kill -9, out of memory) cannot end what it started, and a signal at the parent's death would
reach the shell alone and not what that started. So a shell of a few hundred kilobytes waits at a pipe for the session's
end; only then does it become a Python that looks for what is left.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_WAITS = 'while read -r line; do last=$line; done; [ -z "$last" ] || exec "$0" -I -S "$1" $last'
"""Keeps the last line and, at the end of the pipe, hands its words on; an empty one says that nothing is to be done."""
_REAPER = Path(__file__).with_name("_processes.py")


class Keeper:
    """Watches over the processes that carry `mark` and a number (`mark-1` ...) in their environment.

    On Linux it ends all of them, on other systems those that stayed in the process groups it was told.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._last = ""

    @classmethod
    def of_group(cls, process_group: int) -> Keeper:
        """One that watches over a single group."""
        keeper = cls("-")
        keeper.tell([process_group])
        return keeper

    def tell(self, groups: Iterable[int] = (), kept: Iterable[int] = ()) -> None:
        """What is to be ended from now on: these process groups, and all that is marked but for the numbers `kept`."""
        line = " ".join([self._mark, *map(str, groups), *(f"k{n}" for n in kept)])
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._begin()
        if line != self._last:
            self._write(line)

    def _begin(self) -> None:
        read_end, self._pipe = os.pipe()
        try:
            # Its environment is empty: it carries no mark, so that it does not end with what it has to end.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WAITS, sys.executable, str(_REAPER)], cwd="/", env={}, start_new_session=True,
                stdin=read_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            os.close(self._pipe)
            self._pipe = -1
        finally:
            os.close(read_end)

    def _write(self, line: str) -> None:
        self._last = line
        if self._pipe >= 0:
            with contextlib.suppress(OSError):
                os.write(self._pipe, f"{line}\n".encode())

    def close(self) -> None:
        """There is nothing to watch over any more. May be used again."""
        self._write("")
        process, self._process = self._process, None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
