"""A line of the person's own above the status: the first line that `status_command` of ~/.refold/config.toml prints.

The command gets the state of the session as one JSON object on stdin. It is run after each step and when the branch,
the mode or the model changes, never twice at once and at most once a second; it may take SECONDS. Nothing waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.clean import one_line, plain
from agent.session import Session
from agent.terminal.status import Status
from agent.version import VERSION

SECONDS = 2.0
"""Seconds a run may take; after that it is ended, with all it started."""

EVERY = 1.0
"""Seconds between the beginnings of two runs, at least."""

MOST = 20_000
"""Bytes of output that are looked at."""


class StatusLine:
    """Runs one command again and again. `show` gets its line, `complain` what went wrong, once."""

    def __init__(self, command: str, show: Callable[[str], None], complain: Callable[[str], None]) -> None:
        self._command = command
        self._show = show
        self._complain = complain
        self._last: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._told = False

    def update(self, facts: dict[str, Any], cwd: Path, env: Mapping[str, str]) -> None:
        """Something may have changed; where it has, the command is run soon."""
        if not self._command or facts == self._last:
            return
        self._last = facts
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(cwd, env))

    async def _run(self, cwd: Path, env: Mapping[str, str]) -> None:
        facts: dict[str, Any] = {}
        while facts != self._last:
            await asyncio.sleep(max(0.0, self._began + EVERY - time.monotonic()))
            facts, self._began = self._last, time.monotonic()
            try:
                self._show(await first_line(self._command, facts, cwd, env))
            except (OSError, ValueError) as error:
                self._show("")
                if not self._told:
                    self._complain(f"status_command: {error}")
                self._told = True


async def first_line(command: str, facts: Mapping[str, Any], cwd: Path, env: Mapping[str, str]) -> str:
    """The first line the command prints, harmless. Raises ValueError where it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", command, cwd=cwd, env=dict(env), start_new_session=True, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, problem = await asyncio.wait_for(process.communicate(json.dumps(facts).encode()), SECONDS)
    except TimeoutError:
        raise ValueError(f"it took longer than {SECONDS:g} s and was ended") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        said = one_line(plain(problem[:MOST].decode("utf-8", "replace")).strip(), 120)
        raise ValueError(f"exit {process.returncode}{f': {said}' if said else ''}")
    return plain(out[:MOST].decode("utf-8", "replace")).partition("\n")[0].rstrip()


def facts_of(session: Session, status: Status) -> dict[str, Any]:
    """What the command is told."""
    usage = session.usage
    return {
        "version": VERSION,
        "session": {"id": session.id, "name": session.name, "log": str(session.path or "")},
        "model": session.model.name,
        "mode": session.permissions.mode,
        "cwd": str(session.toolbox.ctx.cwd),
        "root": str(session.root),
        "branch": status.branch,
        "sandbox": status.sandbox,
        "window": {"used": status.used, "size": status.window},
        "tokens": {"input": usage.input, "output": usage.output},
        "cost_usd": usage.cost,
    }
