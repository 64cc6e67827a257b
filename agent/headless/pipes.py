"""Writing to standard output and standard error without ever standing still in a write.

A reader that is slow, or has gone to sleep, must not keep a signal or a time limit from being obeyed. So a pipe is
written only where it takes bytes, and waiting for it is waiting in the event loop.
"""

from __future__ import annotations

import asyncio
import os
import select
import time

from agent.edges import CLOSED

PIECE = 4096
"""Bytes a pipe that is ready takes without blocking (PIPE_BUF of Linux)."""


HURRY = 2.0
"""Seconds a reader that does not read can hold up a run that has been stopped."""


def reader_left(number: int) -> bool:
    """Whether nobody can read any more what is written to this stream: the other end of a pipe or socket is gone."""
    poll = select.poll()
    poll.register(number, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0))


class OutputClosed(Exception):
    """Nobody can receive what is written; the message says why."""


class Pipe:
    """A standard stream by its number. Text goes out as UTF-8 at once; lone surrogates become question marks."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._until = float("inf")

    def hurry(self) -> None:
        """From now on a reader gets HURRY seconds in all to take what is written."""
        self._until = min(self._until, time.monotonic() + HURRY)

    async def write(self, text: str) -> None:
        """Writes all of it. Raises OutputClosed where the reader is gone or the disk is full."""
        data = text.encode("utf-8", errors="replace")
        while data:
            while not self._ready():
                if time.monotonic() > self._until:
                    raise OutputClosed("standard output is not being read")
                await asyncio.sleep(0.02)
            data = data[self._put(data[:PIECE]) :]

    def offer(self, text: str, patience: float = 1.0) -> None:
        """Writes what is taken within `patience` seconds; never raises. For words that nothing depends on."""
        data = text.encode("utf-8", errors="replace")
        until = time.monotonic() + patience
        try:
            while data and time.monotonic() < until:
                if self._ready(0.05):
                    data = data[self._put(data[:PIECE]) :]
        except OutputClosed:
            pass

    def _ready(self, wait: float = 0.0) -> bool:
        try:
            return bool(select.select([], [self.number], [], wait)[1])
        except (OSError, ValueError):
            return True

    def _put(self, data: bytes) -> int:
        try:
            return os.write(self.number, data)
        except BrokenPipeError:
            raise OutputClosed(CLOSED) from None
        except OSError as error:
            raise OutputClosed(f"standard output cannot be written: {error.strerror}") from None
