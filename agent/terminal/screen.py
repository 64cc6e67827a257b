"""The terminal itself: finished text goes into the scrollback once, a few live lines below it are redrawn.

Everything that is printed waits for the next frame: the live lines are erased, the text is written, the live lines are
drawn again, in one write. No alternate screen, no mouse, and one question to the terminal: see background.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import Layout
from prompt_toolkit.styles import Style

from agent.clean import one_line
from agent.terminal.background import ASK, Answers, is_light
from agent.terminal.front import cooked, in_front
from agent.terminal.inline import INSIDE, Inline
from agent.terminal.input import TerminalInput
from agent.terminal.keyboard import protocol
from agent.terminal.output import InlineOutput, color_depth, reflows
from agent.terminal.theme import Theme, color_level

if TYPE_CHECKING:
    from agent.terminal.paper import Line, Paper

T = TypeVar("T")

ESCAPE_WAIT = 0.1
"""Seconds after which an ESC byte alone is the Esc key, not the start of a sequence that comes over a slow line."""

CHORD_WAIT = 0.2
"""Seconds in which a key after Esc makes a chord of the two (Esc Enter)."""

ANSWER_WAIT = 0.15
"""Seconds since the question about the background in which the first conversation that is drawn waits for the answer.
Behind the first frame there is more than that to load."""

LATE_ANSWER = 0.3
"""Seconds that the end of the chat, or a program that gets the terminal, waits for an answer that is still to come: the
shell would take it for keys."""

YOUNG = 2.0
"""Seconds after which no answer is waited for any more."""

WIDEST = 120
"""Columns that prose may take: longer lines are hard to read."""


def without_edges(lines: list[Line]) -> list[Line]:
    """Lines without empty ones at both ends."""
    full = [n for n, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []


class Screen:
    """Prints above, redraws below. `layout` is what is live; `keys` are the bindings that always hold."""

    def __init__(self, theme: Theme, env: Mapping[str, str], *, vi: bool = False) -> None:
        self.theme = theme
        self._env = env
        self.level = color_level(env)
        self.output = InlineOutput(sys.stdout, env.get("TERM", ""), color_depth(self.level, theme.color))
        self._vi = vi
        self.rings = True
        self._protocol = protocol(env)
        self._title = ""
        self._queue: list[str] = []
        self._blank = True
        self._short = False
        self._paper: Paper | None = None
        self._papers: Callable[[int, Theme, str], Paper] | None = None
        self._app: Inline | None = None
        self._answers = Answers(self._heard)
        self._told: Callable[[bool], None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._away = 0

    def build(self, layout: Layout, keys: KeyBindingsBase) -> None:
        """Makes the application; to be called once, before `run`."""
        app = Inline(
            layout=layout,
            key_bindings=keys,
            input=TerminalInput(sys.stdin, self._answers),
            output=self.output,
            style=Style.from_dict(self.theme.toolkit()),
            include_default_pygments_style=False,
            editing_mode=EditingMode.VI if self._vi else EditingMode.EMACS,
            erase_when_done=True,
            min_redraw_interval=0,
            before_render=self._before_frame,
            after_render=self._after_frame,
        )
        app.ttimeoutlen, app.timeoutlen = ESCAPE_WAIT, CHORD_WAIT
        app.reflowing, app.pulling = reflows(self._env), bool(self._env.get("TMUX"))
        app.size = self.output.get_size()
        self._app = app

    @property
    def app(self) -> Application[int]:
        assert self._app is not None
        return self._app

    @property
    def width(self) -> int:
        return self.output.get_size().columns

    @property
    def rows(self) -> int:
        return self.output.get_size().rows

    @property
    def paper(self) -> Paper:
        """The paper of the present width."""
        if self._paper is None or self._paper.width != self.width:
            assert self._papers is not None
            self._paper = self._papers(self.width, self.theme, self.level)
        return self._paper

    def use_paper(self, papers: Callable[[int, Theme, str], Paper]) -> None:
        """Tells what renders: it is imported after the first frame, for that takes a while."""
        self._papers = papers

    def ask_background(self, told: Callable[[bool], None]) -> None:
        """Asks the terminal, once it is ours, for its background; `told` is called with whether it is light, if and
        when an answer comes, unless a theme was set before."""
        self._told = told

    def _ask(self) -> None:
        # Not before the terminal is ours: it would show the answer as if it had been typed.
        if self._told is not None:
            self._answers.ask()
            self.output.write_raw(ASK)
            self.output.flush()

    def _heard(self, colour: str) -> None:
        light = is_light(colour)
        if self._told is not None and light is not None:
            told, self._told = self._told, None
            told(light)

    async def answered(self, seconds: float = ANSWER_WAIT) -> None:
        """Waits until the terminal has answered, at most until so many seconds after it was asked."""
        while self._answers.waits(seconds):
            await asyncio.sleep(0.01)

    async def _quiet(self) -> None:
        """Waits a moment for an answer that would reach whoever has the terminal next."""
        until = time.monotonic() + LATE_ANSWER
        while self._answers.waits(YOUNG) and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def run(self, ready: Callable[[], None]) -> int:
        """Runs until `leave`; returns its code. `ready` is called when the first frame is on the terminal."""

        def begin() -> None:
            self._ask()
            ready()

        def soon() -> None:
            asyncio.get_running_loop().call_soon(begin)

        self._modes(True)
        self._catch_stops()
        try:
            return await self.app.run_async(pre_run=soon, set_exception_handler=False)
        except EOFError:  # the terminal's input is at its end, for the terminal is gone
            return 128 + signal.SIGHUP
        finally:
            self._modes(False)
            self.output.release()
            self._write_queue()

    @property
    def is_away(self) -> bool:
        """Whether something else has the terminal."""
        return self._away > 0

    def keys_wait(self) -> bool:
        """Whether keys were pressed that nobody has taken yet."""
        try:
            return bool(select.select([sys.stdin], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def leave(self, code: int) -> None:
        """Ends `run`, which returns the code."""
        self._leaving = self._leaving or asyncio.get_running_loop().create_task(self._leave(code))

    async def _leave(self, code: int) -> None:
        await self._quiet()
        if self.app.is_running and not self.app.is_done:
            self.app.exit(result=code)

    # -- the scrollback ---------------------------------------------------------------------------------------------

    def print(self, renderable: Any, *, gap: bool = True, prose: bool = False, short: bool = False) -> None:
        """Prints once, above the live lines. `gap` puts an empty line before it, `prose` keeps it to a good width;
        two `short` ones after each other stand together."""
        width = min(self.width, WIDEST) if prose else 0
        lines = without_edges(self.paper.lines(renderable, width))
        together = short and self._short and len(lines) == 1
        self.print_lines(lines, gap=gap and not together)
        self._short = short and len(lines) == 1

    def print_lines(self, lines: list[Line], *, gap: bool = True) -> None:
        if lines:
            self.print_raw(self.paper.ansi(lines), gap=gap)

    def print_raw(self, text: str, *, gap: bool = True) -> None:
        """Prints text that may hold escape codes of ours; each of its lines ends with a newline."""
        if gap and not self._blank:
            self._queue.append("\n")
        self._queue.append(text)
        self._blank = text.endswith("\n\n") or text == "\n"
        self._short = False
        self.refresh()

    def refresh(self) -> None:
        """Draws the live lines again, soon."""
        if self._app is not None:
            self._app.invalidate()

    def _before_frame(self, app: Application[Any]) -> None:
        self.output.hold()
        self.output.write_raw(INSIDE)
        if self._queue:
            self._pushed_out()
            self.output.write_raw("\x1b[?2026h")
            app.renderer.erase(leave_alternate_screen=False)
            self._write_queue()
            self.output.write_raw("\x1b[?2026l")
        elif self._shrinks(app):
            app.renderer.erase(leave_alternate_screen=False)

    def _pushed_out(self) -> None:
        """Text stands below the rows that were pushed out now: they are part of the scrollback."""
        if self._app is not None:
            self._app.pushed = 0

    def _after_frame(self, app: Application[Any]) -> None:
        self.output.release()

    def _write_queue(self) -> None:
        if self._queue:
            self.output.write_raw("".join(self._queue).replace("\n", "\r\n"))
            self._queue.clear()
            self.output.flush()

    def _shrinks(self, app: Application[Any]) -> bool:
        last = app.renderer.last_rendered_screen
        if last is None:
            return False
        wanted = app.layout.container.preferred_height(self.width, self.rows).preferred
        return min(wanted, self.rows) < last.height

    def clear(self) -> None:
        """A clear screen: what was on it moves up into the scrollback."""
        self._queue.append("\n" * self.rows + "\x1b[H")
        self._blank = True
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Other colours, for what is drawn from now on. No answer of the terminal changes them any more."""
        self._told = None
        self.theme = replace(theme, more=self.theme.more)
        self._paper = None
        self.app.style = Style.from_dict(theme.toolkit())
        self.refresh()

    # -- beyond text ------------------------------------------------------------------------------------------------

    async def away(self, work: Callable[[], Awaitable[T]]) -> T:
        """Gives the terminal to something else (an editor, a pager) and takes it back."""
        await self._quiet()
        async with in_terminal():
            self._away += 1
            self._write_queue()
            self._modes(False)
            try:
                return await work()
            finally:
                self._modes(True)
                self._away -= 1

    def _modes(self, on: bool) -> None:
        """Switches what the terminal does differently for us: keys told apart, a title of our own."""
        keys = self._protocol[0 if on else 1]
        title = "" if self._env.get("TERM") == "linux" else "\x1b[22;2t" if on else "\x1b[23;2t"
        self.output.write_raw(f"{title}{keys}" if on else f"{keys}{title}")
        if on and self._title:
            self.title(self._title)
        self.output.flush()

    def title(self, words: str) -> None:
        """The terminal's title; the one it had comes back at the end."""
        self._title = words
        if self.theme.unicode and self._env.get("TERM") not in ("linux", "dumb"):
            self.output.write_raw(f"\x1b]2;{one_line(words, 80)}\x07")
            self.output.flush()

    def notify(self, words: str) -> None:
        """A bell, and a notification where the terminal is known to show them; neither where `rings` is False."""
        if not self.rings:
            return
        program = self._env.get("TERM_PROGRAM", "")
        if program in ("iTerm.app", "WezTerm", "ghostty") or self._env.get("KITTY_WINDOW_ID"):
            self.output.write_raw(f"\x1b]9;{one_line(words, 120)}\x07")
        self.output.bell()
        self.output.flush()

    async def suspend(self) -> None:
        """Ctrl-Z, or SIGTSTP from elsewhere: the shell has the terminal until `fg`. Continued in the background it
        stops again: the terminal is somebody else's."""

        async def stop() -> None:
            loop = asyncio.get_running_loop()
            loop.remove_signal_handler(signal.SIGTSTP)
            try:
                os.kill(0, signal.SIGTSTP)
                while not in_front():
                    os.kill(os.getpid(), signal.SIGSTOP)
            finally:
                self._catch_stops()

        if self._away:  # a program of the person's stops with all that is in the foreground
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            await self.away(stop)

    def _catch_stops(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # in a thread of its own there are no signals
            loop.add_signal_handler(signal.SIGTSTP, lambda: self.app.create_background_task(self.suspend()))
            loop.add_signal_handler(signal.SIGCONT, self._continued)

    def _continued(self) -> None:
        """Somebody stopped the program in a way it could not see (SIGSTOP), and the shell had the terminal since."""
        if self._away or not self.app.is_running or not in_front() or not cooked():
            return
        self.app.input.raw_mode().__enter__()  # the first of these knows what to restore at the end
        self.app.renderer.reset()
        self.output.write_raw("\r")
        self._modes(True)
        self.refresh()
