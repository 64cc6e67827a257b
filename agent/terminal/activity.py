"""What is going on, in one or two live lines: a spinner with words, time and tokens, and what commands say."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.clean import one_line, plain
from agent.terminal.fragments import Fragments, row
from agent.terminal.numbers import count, seconds

if TYPE_CHECKING:  # the prompt is there before the log's vocabulary is imported
    from transcripts.records import ToolCall

_WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WHEEL_ASCII = "|/-\\"
_SHOWN = 3
"""Lines of a running command's output that are seen, and calls that are listed at once."""


@dataclass
class Running:
    """Something that has begun: a call of the model's, or (`call` None) a command of the person's. `doing`: what a
    sub-agent does now."""

    title: str
    since: float
    output: str = ""
    call: ToolCall | None = None
    doing: str = ""


@dataclass
class Activity:
    """The state of a turn as far as it is not printed yet. Times are of time.monotonic()."""

    unicode: bool = True
    words: str = ""
    since: float = 0.0
    phase_since: float = 0.0
    tokens: float = 0.0
    thinking: str = ""
    progress: tuple[int, int] = (0, 0)
    stop_key: str = "Esc"
    running: dict[str, Running] = field(default_factory=dict)

    def begin(self, words: str) -> None:
        """A turn begins."""
        self.words, self.thinking, self.tokens, self.progress = words, "", 0.0, (0, 0)
        self.since = self.phase_since = time.monotonic()
        self.running.clear()

    def phase(self, words: str, done: int = 0, total: int = 0) -> None:
        """Says what is going on now; the time of a phase starts when its words change."""
        if words != self.words:
            self.words, self.phase_since = words, time.monotonic()
        self.progress = (done, total)

    def end(self) -> None:
        self.words = ""
        self.running.clear()
        self.thinking = ""

    def rows(self, width: int) -> list[Fragments]:
        """The live lines; none while nothing goes on."""
        if not self.words:
            return []
        now = time.monotonic()
        rows: list[Fragments] = [[("", "")], self._head(width, now)]
        for call in list(self.running.values())[:_SHOWN] if len(self.running) > 1 else ():
            parts = (call.title, seconds(now - call.since), call.doing)
            rows.append([("class:dim", f"  {one_line(' · '.join(p for p in parts if p), width - 3)}")])
        if len(self.running) == 1:
            call = next(iter(self.running.values()))
            said = plain(call.doing or call.output[-2000:]).rstrip("\n").split("\n")[-_SHOWN:]
            rows += [row("class:dim", f"  {one_line(line, width - 3)}") for line in said if line.strip()]
        elif self.thinking and not self.running:
            rows.append([("class:quote", f"  {one_line(self.thinking[-400:].rpartition(chr(10))[2], width - 3)}")])
        return rows

    def _head(self, width: int, now: float) -> Fragments:
        wheel = _WHEEL if self.unicode else _WHEEL_ASCII
        sign = wheel[int(now * 8) % len(wheel)]
        words, since = self.words, self.since
        if len(self.running) == 1:
            call = next(iter(self.running.values()))
            words, since = call.title, call.since
        elif self.running:
            words = f"{len(self.running)} calls"
        parts = [f"{now - since:.0f} s"]
        if self.progress[1]:
            parts.insert(
                0,
                bar(self.progress[0] / self.progress[1], 10, self.unicode)
                + f" {count(self.progress[0])} of {count(self.progress[1])}",
            )
        if self.tokens >= 1 and not self.running:
            parts.append(f"{count(self.tokens)} tokens")
        parts.append(f"{self.stop_key} stops")
        rest = " · ".join(parts)
        room = width - len(rest) - 6
        if room < 8:
            return [
                ("class:accent", f"{sign} "),
                ("", one_line(words, max(4, width - 12))),
                ("class:dim", f" {parts[-2]}"),
            ]
        return [("class:accent", f"{sign} "), ("", one_line(words, room)), ("class:dim", f" · {rest}")]


def bar(share: float, width: int, unicode: bool) -> str:
    """A share of 0 to 1 as a bar of so many columns."""
    full = max(0, min(width, round(share * width)))
    return ("▰" * full + "▱" * (width - full)) if unicode else ("#" * full + "." * (width - full))
