"""A command the person runs with `!`: its output is shown and, unless it was `!!`, told to the model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TOLD = 16_000
"""Characters of output that the model is told: head and tail of a longer one."""


@dataclass(frozen=True)
class Ran:
    """A command that has ended, or (`stopped`) was ended by the person."""

    command: str
    output: str
    code: int
    seconds: float
    stopped: bool = False

    def message(self) -> str:
        """What the model is told."""
        text = self.output
        if len(text) > TOLD:
            half = TOLD // 2
            text = f"{text[:half]}\n[... {len(text) - TOLD:,} characters left out ...]\n{text[-half:]}"
        end = f"I stopped it after {self.seconds:.1f} s" if self.stopped else f"exit code {self.code}"
        return f"I ran this command myself:\n$ {self.command}\n{text.rstrip()}\n[{end}]"

    @classmethod
    def of_message(cls, message: str) -> Ran | None:
        """The command that a message tells of; None where it tells of none."""
        found = _MESSAGE.fullmatch(message)
        if found is None:
            return None
        stopped = found[3] is None
        return cls(found[1], found[2], -1 if stopped else int(found[3]), float(found[4]) if stopped else 0.0, stopped)


_MESSAGE = re.compile(
    r"I ran this command myself:\n\$ (.*?)\n(.*)\[(?:exit code (-?\d+)|I stopped it after ([\d.]+) s)\]", re.DOTALL
)


NOT_KEPT = "[It had the terminal: what it said was not kept.]"

_ENVIRONMENT = re.compile(r"(?:\w+=\S*\s+)*(\S+)")
_FULL_SCREEN = frozenset(
    (
        "vi", "vim", "nvim", "view", "vimdiff", "emacs", "nano", "pico", "micro", "helix", "hx", "joe", "mc",
        "ranger", "nnn", "top", "htop", "btop", "atop", "watch", "tig", "lazygit", "gitui", "fzf", "ssh", "mosh",
        "telnet", "sftp", "ftp", "tmux", "screen", "sudo", "su", "passwd",
    )
)  # fmt: skip
"""Programs that talk with the person, and so need the terminal itself."""


def wants_terminal(command: str) -> bool:
    """Whether what a line ends with is a program that needs the terminal."""
    last = re.split(r"&&|\|\||[;|&\n]", command.rstrip("; \n"))[-1].strip()
    first = _ENVIRONMENT.match(last)
    return bool(first) and os.path.basename(first[1]) in _FULL_SCREEN


def run_in_front(command: str, cwd: Path, env: Mapping[str, str]) -> Ran:
    """Runs a command that has the terminal, and waits for it; what it says is not kept."""
    began = time.monotonic()
    code = subprocess.call([os.environ.get("SHELL") or "/bin/sh", "-c", command], cwd=cwd, env=dict(env))
    return Ran(command, NOT_KEPT, code, time.monotonic() - began)


async def run(command: str, cwd: Path, env: Mapping[str, str], progress: Callable[[str], None]) -> Ran:
    """Runs a command in the person's shell, in a process group of its own, with no input. Cancelling ends
    the group; what it had said by then is returned all the same, and the task goes on."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        os.environ.get("SHELL") or "/bin/sh", "-c", command,
        cwd=cwd, env=dict(env), start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    pieces: list[str] = []
    stopped = False
    try:
        while data := await process.stdout.read(65536):
            pieces.append(data.decode("utf-8", "replace"))
            progress(pieces[-1])
        code = await process.wait()
    except asyncio.CancelledError:
        _end(process.pid)
        code, stopped = await process.wait(), True
        if task := asyncio.current_task():
            task.uncancel()
    return Ran(command, "".join(pieces), code, time.monotonic() - began, stopped)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
