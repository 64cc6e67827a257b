"""What was really run, and whether it still holds: one line at the end of a turn, computed from events, not claimed.

"pytest -q: exit 0, 12 s ago, before the last edit of x.py" is the answer to "are you sure?".
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath

from runtime.context.sightings import exit_of
from runtime.events import Event, TaskEvent, ToolFinished, ToolStarted
from transcripts.records import ToolResult

_CHECK = re.compile(
    r"\b(pytest|unittest|tox|nox|test|tests|check|lint|ruff|flake8|mypy|pyright|tsc|eslint|jest|vitest|mocha|rspec"
    r"|phpunit|ctest|make|ninja|gradle|mvn|cargo|go (build|vet)|dotnet|build|compileall|py_compile)\b"
)
"""Words of commands that check something; the last of these is better evidence than the last `ls`."""

CLOSING = 48
"""Characters of a command that are shown."""


@dataclass
class Evidence:
    """Watches the events of a session. `clock` gives seconds."""

    clock: Callable[[], float] = time.time
    command: str = ""
    code: int | None = None
    at: float = 0.0
    edited: list[str] = field(default_factory=list)
    """Files edited since the command ended, in order, each once."""
    fresh: bool = False
    """Whether anything was run or edited since `line` was last asked for."""
    _writes: set[str] = field(default_factory=set)
    _checks: bool = False

    def see(self, event: Event) -> None:
        """Takes one event."""
        match event:
            case ToolStarted(call, "write", _):
                self._writes.add(call.id)
            case ToolFinished(call, result):
                self._finished(result, call.id in self._writes)
                self._writes.discard(call.id)
            case TaskEvent() if not event.reads:
                self.see(event.event)
            case _:
                pass

    def _finished(self, result: ToolResult, writes: bool) -> None:
        command, code = result.meta.get("command"), exit_of(result.meta)
        if isinstance(command, str) and code is not None:
            self._ran(command, code)
        elif writes and result.status == "ok":
            for name in dict.fromkeys(PurePath(path).name for path in result.files):
                self.edited = [*(e for e in self.edited if e != name), name]
                self.fresh = True

    def _ran(self, command: str, code: int) -> None:
        """A command ended. One that checks nothing does not take the place of one that does."""
        checks = bool(_CHECK.search(command))
        if checks or not self._checks:
            self.command, self.code, self.at, self._checks = " ".join(command.split()), code, self.clock(), checks
            self.edited = []
            self.fresh = True

    def holds(self) -> bool:
        """Whether the last command succeeded and nothing was edited since."""
        return self.code == 0 and not self.edited

    def line(self) -> str:
        """The evidence in one line; "" where nothing was run or edited since the last time."""
        fresh, self.fresh = self.fresh, False
        if not fresh:
            return ""
        if not self.command:
            return f"{_files(self.edited)} edited, nothing was run"
        if self.edited and not self._checks:  # looking around before an edit says nothing about it
            return f"{_files(self.edited)} edited, nothing was run since"
        shown = self.command if len(self.command) <= CLOSING else f"{self.command[: CLOSING - 1]}…"
        when = _ago(self.clock() - self.at)
        since = f"before the last edit of {self.edited[-1]}" if self.edited else "nothing edited since"
        return f"{shown}: exit {self.code}, {when}, {since}"


def _files(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} files"


def _ago(seconds: float) -> str:
    if seconds < 2:
        return "just now"
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 7200 else f"{seconds / 3600:.0f} h ago"
