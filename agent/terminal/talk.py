"""Lines on their way to the session: sent, steered in, queued, taken back; and what runs because of them."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from agent.clean import one_line
from agent.session import Session
from agent.terminal import blocks, outside, shell
from agent.terminal.deck import Deck
from agent.terminal.fragments import Fragments, row
from agent.terminal.view import View
from runtime.events import (
    Event,
    ReasoningDelta,
    Steered,
    TextDelta,
    ToolCallDelta,
    ToolProgress,
    TurnEnded,
    Waiting,
)
from transcripts.records import Image, ToolCall, User

_PASSING = (TextDelta, ReasoningDelta, ToolCallDelta, ToolProgress, Waiting)
"""Events that come by the hundred and change nothing outside the view; they are drawn with the next tick."""

LONG = 15.0
"""Seconds a turn must have taken for its end, or a question in it, to ring."""


class Talk:
    """The conversation with one session at a time. `changed` is called when something outside the view changed."""

    def __init__(self, deck: Deck, session: Session, changed: Callable[[], None]) -> None:
        self.deck = deck
        self.session = session
        self.view = View(deck.screen, deck.live, deck.activity, self._call_title)
        self._stopped = False
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._in_turn = False
        self._steered: list[str] = []
        self._queued: list[str] = []
        self._beside: set[asyncio.Task[None]] = set()
        deck.live.waiting = self._waiting_rows

    def _call_title(self, call: ToolCall) -> str:
        return self.session.toolbox.title(call.name, call.args)

    # -- tasks ------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something runs that can be stopped."""
        return self._task is not None and not self._task.done()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What keeps the chat busy."""
        return self._task

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something that keeps the chat busy; nothing else may. Lines that were entered meanwhile go next."""
        self._stopped = False
        self._task = asyncio.get_running_loop().create_task(self._and_then(work))

    async def _and_then(self, work: Coroutine[Any, Any, None]) -> None:
        await self._guarded(work)
        if self._queued and not self._stopped:
            await self._guarded(self.turns(self._queued.pop(0)))
        self._give_back()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something small beside whatever runs."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """A bug in one turn or command is shown and does not end the chat: everything said is on disk."""
        try:
            await work
        except asyncio.CancelledError:
            self.view.note("Stopped.", "warn")
        except Exception:  # noqa: BLE001  # shown whole, to the person
            self.view.note(f"A bug in refold. The session is kept.\n{traceback.format_exc()}", "error")
        finally:
            self._changed()

    def stop(self) -> None:
        """Stops what runs and keeps everything."""
        self._stopped = True
        if self._in_turn:
            self.session.interrupt()
        elif self._task is not None:
            self._task.cancel()
        self.deck.activity.phase("stopping")

    async def wind_up(self) -> None:
        """Stops what runs and waits until it has, a moment at most."""
        if self._task is not None and self.busy:
            self.stop()
            await asyncio.wait([self._task], timeout=3)
            self._task.cancel()

    # -- lines ------------------------------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """A line for the model: begins a turn, or goes to it at its next step while it works."""
        if not self.busy:
            self.start(self.turns(line))
        elif self._in_turn:
            self._steered.append(line)
            self.session.steer(self.deck.editor.expanded(line))
        else:
            self._queued.append(line)
        self._changed()

    def queue(self, line: str) -> None:
        """A line for after this turn."""
        self._queued.append(line)
        self._changed()

    def take_back(self) -> str | None:
        """The newest line that waits, taken out again."""
        if self._queued:
            return self._queued.pop()
        if self._steered and self.session.take_back() is not None:
            return self._steered.pop()
        return None

    def _waiting_rows(self, width: int) -> list[Fragments]:
        rows: list[Fragments] = []
        for lines, words in ((self._steered, "next step"), (self._queued, "after this")):
            rows += [row("class:dim", f"  {one_line(f'{words}: {line}', width - 3)}") for line in lines[-3:]]
        if rows:
            up = self.deck.screen.theme.sign("↑", "Up")
            rows.append([("class:dim", f"  {up} takes it back")])
        for line in self.deck.editor.aside:
            rows.append(row("class:dim", f"  {one_line(f'put aside: {line}', width - 3)}"))
        if self.deck.editor.aside:
            rows.append([("class:dim", f"  {self.deck.keymap.name('stash')} brings it back")])
        return rows

    async def turns(self, line: str, shown: str = "") -> None:
        """One turn, then those that were queued meanwhile. `shown` stands for the first line on the screen."""
        next_line: str | None = line
        while next_line is not None:
            ended = await self._turn(next_line, shown)
            shown = ""
            done = ended is not None and ended.reason == "done"
            next_line = self._queued.pop(0) if done and self._queued else None
        self._give_back()

    def _give_back(self) -> None:
        """Lines that nobody took go back into the input."""
        lines: list[str] = []
        while (line := self.take_back()) is not None:
            lines.insert(0, line)
        self._steered.clear()
        if lines:
            self.deck.editor.put("\n".join(lines))

    async def _turn(self, line: str, shown: str = "") -> TurnEnded | None:
        editor, screen = self.deck.editor, self.deck.screen
        screen.print(blocks.user(shown or line, screen.theme))
        images = self._images(line)
        began = time.monotonic()
        self._in_turn = True
        try:
            ended = await self.follow(self.session.send(editor.expanded(line), images))
        finally:
            self._in_turn = False
        if time.monotonic() - began > LONG:
            screen.notify(f"refold: {one_line(self.view.answer, 80) or 'the turn is over'}")
        return ended

    def _images(self, line: str) -> list[Image]:
        found, problems = outside.read_pictures(self.session.log.blobs, self.deck.editor.pictures(line))
        for problem in problems:
            self.view.note(problem, "warn")
        return found

    async def follow(self, events: AsyncIterator[Event]) -> TurnEnded | None:
        """Shows events while they come."""
        ended = None
        with self._live():
            async for event in events:
                if isinstance(event, Steered) and self._steered:
                    self._steered.pop(0)
                self.view.show(event)
                if not isinstance(event, _PASSING):
                    self._changed()
                ended = event if isinstance(event, TurnEnded) else ended
        return ended

    def _live(self) -> _Live:
        return _Live(self)

    async def shell(self, line: str) -> None:
        """Runs `! command`; `!!` keeps it from the model."""
        screen, ctx = self.deck.screen, self.session.toolbox.ctx
        screen.print(blocks.user(line, screen.theme))
        command = line.lstrip("!").strip()
        if shell.wants_terminal(command):
            ran = await screen.away(lambda: asyncio.to_thread(shell.run_in_front, command, ctx.cwd, ctx.env))
        else:
            with self._live():
                ran = await shell.run(command, ctx.cwd, ctx.env, self.view.follow_command(command))
        self.view.show_command(ran)
        if not line.startswith("!!"):
            self.session.engine.append(User(ran.message(), "shell"))


class _Live:
    """Inside, the live lines move."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def __enter__(self) -> None:
        self._talk.view.begin()
        self._talk.deck.start_ticking(self._talk.view.tick)

    def __exit__(self, *error: object) -> None:
        self._talk.deck.stop_ticking()
        self._talk.view.end()


def rang(since: float) -> bool:
    """Whether so much time has passed that the person may have looked away."""
    return time.monotonic() - since > LONG
