"""Watches a one-shot run and stops it: at a limit, at a signal, when nobody reads any more."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.edges import CLOSED, INTERRUPTED
from agent.exits import Exit
from agent.headless.pipes import reader_left
from runtime.crew import total
from runtime.events import AnswerRecorded, Event, RequestSent, TaskEvent, TextDelta, ToolFinished
from transcripts.records import Usage

GRACE = 10.0
"""Seconds a turn gets to end by itself after it was asked to; then its task is cancelled."""

LOOK = 0.2
"""Seconds between two looks whether anybody still reads standard output."""

SIGNALS = {
    signal.SIGINT: (Exit.INTERRUPTED, INTERRUPTED),
    signal.SIGTERM: (Exit.TERMINATED, "terminated (SIGTERM)"),
    signal.SIGHUP: (Exit.HANGUP, "the terminal went away (SIGHUP)"),
}


@dataclass(frozen=True)
class Limits:
    """Where the whole command stops, over all its turns; None: no limit. `usd` counts known prices only."""

    turns: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Cause:
    """Why it was stopped."""

    code: Exit
    cause: str
    why: str


@dataclass
class Guard:
    """What a run has cost so far, and the one cause for which it was stopped, if it was."""

    limits: Limits
    interrupt: Callable[[], None]
    requests: int = 0
    usages: list[Usage] = field(default_factory=list)
    denied: list[ToolFinished] = field(default_factory=list)
    answer: str = ""
    """The text of the newest answer; while one is being said, what came of it."""
    stopped: Cause | None = None
    task: asyncio.Task[object] | None = None
    cut: bool = False
    """Whoever said the message that is worked on wants no more of it; the run itself goes on."""
    idle: bool = False
    """No turn runs (a conversation waits for its next line): there is nothing to end gently."""
    on_stop: list[Callable[[], None]] = field(default_factory=list)
    beside: list[Callable[[], None]] = field(default_factory=list)
    """What ends that which runs beside the turns: a check."""
    started: float = field(default_factory=time.monotonic)
    _signals: int = 0
    _next_look: asyncio.TimerHandle | None = None
    _said: str = ""

    @property
    def usage(self) -> Usage:
        """The sum over all requests."""
        out = Usage()
        for usage in self.usages:
            out = total(out, usage)
        return out

    def see(self, event: Event) -> None:
        """Counts an event."""
        match event:
            case TextDelta():
                self._said += event.text
                self.answer = self._said
            case RequestSent():
                self._said = ""
            case AnswerRecorded():
                self.requests += 1
                self.usages.append(event.usage)
                self.answer = event.message.text or self.answer
            case ToolFinished() if event.result.status == "denied":
                self.denied.append(event)
            case TaskEvent():
                self._see_task(event.reads, event.event)

    def _see_task(self, reads: bool, event: Event) -> None:
        """What a sub-agent costs counts. So does what it was denied, but for one that may only read: it is meant to be
        denied the rest."""
        match event:
            case AnswerRecorded():
                self.requests += 1
                self.usages.append(event.usage)
            case ToolFinished() if event.result.status == "denied" and not reads:
                self.denied.append(event)

    def over(self) -> tuple[Exit, str, str] | None:
        """The limit that is reached, if one is."""
        limits, used = self.limits, self.usage
        tokens = (used.input or 0) + (used.output or 0)
        if limits.turns is not None and self.requests >= limits.turns:
            return Exit.LIMIT, "max_turns", f"the limit of {limits.turns} requests (--max-turns) was reached"
        if limits.tokens is not None and tokens >= limits.tokens:
            words = f"the limit of {limits.tokens:,} tokens (--max-tokens) was reached: {tokens:,} used"
            return Exit.LIMIT, "max_tokens", words
        if limits.usd is not None and (used.cost or 0.0) >= limits.usd:
            words = f"the limit of ${limits.usd:g} (--max-budget-usd) was reached: ${used.cost or 0.0:.4f} spent"
            return Exit.LIMIT, "max_budget_usd", words
        return None

    def stop(self, code: Exit, cause: str, why: str) -> None:
        """Stops the run; the first cause counts."""
        if self.stopped is not None:
            return
        self.stopped = Cause(code, cause, why)
        self.interrupt()
        for call in self.on_stop:
            call()
        self.end_beside()
        if self.task is not None:
            asyncio.get_running_loop().call_later(0 if self.idle else GRACE, self.task.cancel)

    def end_beside(self) -> None:
        """Ends what runs beside the turns."""
        for call in tuple(self.beside):
            call()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Obeys signals and the time limit while it lasts. A second signal does not wait for a gentle end."""
        loop = asyncio.get_running_loop()
        self.task = asyncio.current_task()
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        seconds = self.limits.seconds
        timer = loop.call_later(max(0.0, seconds), self._late) if seconds is not None else None
        self._look()
        try:
            yield
        finally:
            if self._next_look is not None:
                self._next_look.cancel()
            if timer is not None:
                timer.cancel()
            for number in SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def _signalled(self, number: signal.Signals) -> None:
        code, why = SIGNALS[number]
        self._signals += 1
        if self._signals == 2 and self.task is not None:
            self.task.cancel()
        elif self._signals > 2:
            os._exit(code)
        self.stop(code, number.name.lower(), why)

    def _look(self) -> None:
        """A reader that leaves while nothing is written would be found out only when there is something to say."""
        if reader_left(1):
            self.stop(Exit.FAILED, "output_closed", CLOSED)
        else:
            self._next_look = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _late(self) -> None:
        self.stop(Exit.LIMIT, "timeout", f"the limit of {self.limits.seconds:g} s (--timeout) was reached")
