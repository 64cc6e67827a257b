"""A terminal to test with: a program on a real pseudo-terminal, and the screen it draws, read by an emulator."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

PATIENCE = 30.0
"""Seconds to wait for something to appear before the test fails."""


class Terminal:
    """Runs `argv` on a terminal of `columns` x `rows`. `raw` is every byte that reached the terminal."""

    def __init__(
        self, argv: Sequence[str], *, columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None,
        cwd: Path | None = None, screen: type[pyte.HistoryScreen] = pyte.HistoryScreen,
    ) -> None:  # fmt: skip
        self.raw = bytearray()
        self.screen = screen(columns, rows, history=20_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.process = pexpect.spawn(
            argv[0], list(argv[1:]), dimensions=(rows, columns), env=dict(env) if env else None,
            cwd=str(cwd) if cwd else None, timeout=PATIENCE, echo=False,
        )  # fmt: skip
        self.process.delaybeforesend = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- what is there ----------------------------------------------------------------------------------------------

    def read(self, seconds: float = 0.02) -> bool:
        """Takes what comes within a moment; False when the program has ended."""
        try:
            data = self.process.read_nonblocking(1 << 16, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True

    def text(self) -> str:
        """The visible screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def scrollback(self) -> str:
        """What has moved up out of sight, and the visible screen."""
        above = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return "\n".join([*above, self.text()])

    def style(self, words: str) -> pyte.screens.Char:
        """The first letter of `words` on the screen, with its colours."""
        for y, line in enumerate(self.screen.display):
            if (x := line.find(words)) >= 0:
                return self.screen.buffer[y][x]
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text()}")

    def wait(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Waits until the visible screen matches. Raises AssertionError with the screen."""
        return self._until(lambda: re.search(pattern, self.text(), re.M), f"no {pattern!r}", seconds)

    def wait_above(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Waits until screen and scrollback together match."""
        return self._until(lambda: re.search(pattern, self.scrollback(), re.M), f"no {pattern!r}", seconds)

    def wait_gone(self, pattern: str, seconds: float = PATIENCE) -> None:
        """Waits until nothing on the screen matches any more."""
        self._until(lambda: not re.search(pattern, self.text(), re.M) or None, f"still {pattern!r}", seconds)

    def _until(self, look, problem: str, seconds: float):
        end = time.monotonic() + seconds
        while True:
            alive = self.read()
            found = look()
            if found:
                return found
            if not alive or time.monotonic() > end:
                raise AssertionError(
                    f"{problem} on the screen:\n{self.text()}\n--- above:\n{self.scrollback()[-3000:]}"
                )

    def settle(self, quiet: float = 0.15, most: float = 2.0) -> None:
        """Reads until nothing has come for a moment (what moves all the time is read for `most` seconds)."""
        end = time.monotonic() + quiet
        latest = time.monotonic() + most
        while time.monotonic() < min(end, latest):
            before = len(self.raw)
            if not self.read(0.02):
                return
            if len(self.raw) > before:
                end = time.monotonic() + quiet

    # -- what is done -----------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        """Sends keys."""
        self.process.send(keys)

    def paste(self, text: str) -> None:
        """Sends a bracketed paste."""
        self.process.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        self.read()
        self.process.setwinsize(rows, columns)
        self.screen.resize(rows, columns)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Waits for the end; the exit code (minus the signal, where one ended it)."""
        end = time.monotonic() + seconds
        while self.read() and time.monotonic() < end:
            pass
        self.process.wait()
        return self.process.exitstatus if self.process.exitstatus is not None else -(self.process.signalstatus or 0)

    def close(self) -> None:
        """Ends the program and everything it started."""
        if self.process.pid and self.process.isalive():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.close(force=True)
