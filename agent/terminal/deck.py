"""The parts of the chat's screen put together: input, suggestions, live lines, dialogs; knows nothing of sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from agent.clean import one_line
from agent.terminal.activity import Activity
from agent.terminal.dialogs import GLANCE, NEVER, Picker
from agent.terminal.editor import Editor
from agent.terminal.fragments import Fragments, Rows, row
from agent.terminal.history import InputHistory
from agent.terminal.keymap import DEFAULT, Keymap
from agent.terminal.pager import Paged, Pager
from agent.terminal.region import Live, Region
from agent.terminal.screen import Screen
from agent.terminal.suggest import Suggest
from agent.terminal.theme import Theme

Commands = Callable[[str], Sequence[tuple[str, str, bool]]]
Arguments = Callable[[str, str], Sequence[str]]


PAUSE = 0.6
"""Seconds since the last letter after which somebody is not in the middle of a word any more."""


class Hands(Protocol):
    """Who acts on the keys."""

    @property
    def busy(self) -> bool: ...
    def enter(self) -> None: ...
    def newline(self) -> None: ...
    def queue(self) -> None: ...
    def escape(self) -> None: ...
    def control_c(self) -> None: ...
    def control_d(self) -> None: ...
    def up(self) -> None: ...
    def next_mode(self) -> None: ...
    def expand(self) -> None: ...
    def search_history(self) -> None: ...
    def edit_outside(self) -> None: ...
    def paste_picture(self) -> None: ...
    def redraw(self) -> None: ...
    def stash(self) -> None: ...


class Deck:
    """Owns the screen and everything that is drawn on it."""

    def __init__(
        self, theme: Theme, env: Mapping[str, str], *, home: Path, cwd: Path, vi: bool = False, keymap: Keymap = DEFAULT
    ) -> None:
        self.screen = Screen(theme, env, vi=vi)
        self.keymap = keymap
        self.activity = Activity(theme.unicode, stop_key=keymap.name("stop"))
        self.live = Live(activity=self._activity_rows)
        self.editor = Editor(InputHistory(home / "history.jsonl", str(cwd)), self._changed)
        self.suggest = Suggest(lambda name: [], lambda name, words: [], lambda word: None)
        self.region = Region(self.live, self.editor, lambda: (self.screen.width, self.screen.rows))
        self.live.menu = self.suggest.rows
        self.hands: Hands = Entrance(self)
        self._turns = asyncio.Lock()
        self._typed, self._lettered = 0.0, NEVER
        self._field: asyncio.Future[str | None] | None = None
        self._ticker: asyncio.Task[None] | None = None

    def _activity_rows(self, width: int) -> list[Fragments]:
        """What goes on; not while the person is asked, for then it is their turn."""
        return [] if self.asking else self.activity.rows(width)

    async def pause(self) -> None:
        """Waits until nobody is in the middle of a word: a question must not come up under typing fingers. Keys that
        are on their way are taken first."""
        while self.screen.keys_wait() or time.monotonic() - self._typed < PAUSE:
            await asyncio.sleep(0.01 if self.screen.keys_wait() else PAUSE / 6)

    async def _announced(self) -> None:
        """Says that a question comes up, and waits until that can have been seen and nobody is in the middle of a word.
        A key that was on its way by then goes where it was meant to go."""
        seen = time.monotonic() + GLANCE
        self.live.coming = True
        self.screen.refresh()
        try:
            while time.monotonic() < seen:
                await asyncio.sleep(0.02)
            await self.pause()
        finally:
            self.live.coming = False

    def line_ended(self) -> None:
        """A line was entered while nothing ran: whoever typed it waits for what comes of it."""
        self._typed = 0.0

    def suggest_again(self) -> None:
        """Suggests for what is typed already: those who know have come later."""
        self._changed(self.editor.buffer)

    def _changed(self, buffer: Buffer) -> None:
        document = buffer.document
        self._typed = time.monotonic()
        self.suggest.update(document.text_before_cursor, document.text_after_cursor)

    # -- questions: one at a time, in the place of the input --------------------------------------------------------

    async def pick(self, make: Callable[[], Picker], *, called: bool = False, at_once: bool = False) -> Any | None:
        """Shows a picker and waits for its answer. It is announced first, and comes up once nobody types; one that is
        `called` for by the person's own line or answer is not announced, one that a key calls for comes `at_once`.

        While a line stands in the input, Enter may be meant for that line: it counts when the question has been there a
        moment. An Enter right after the letter that answered the question before is no answer to this one.
        """
        async with self._turns:
            if not at_once:
                await (self.pause() if called else self._announced())
            picker = make()
            picker.over_draft, picker.before = bool(self.editor.text), self._lettered
            picker.draft = None if at_once else self.editor
            self.live.dialog = picker
            self._refocus()
            try:
                return await picker.answer
            finally:
                self.live.dialog, self._lettered = None, picker.lettered
                self._refocus()

    async def fill(
        self, label: str, text: str = "", *, secret: bool = False, escape: str = "leave", called: bool = True
    ) -> str | None:
        """Asks for one line, once nobody types; None after Esc, which is told to mean `escape`. A `secret` one is shown
        as asterisks. One that nobody `called` for is announced first."""
        async with self._turns:
            await (self.pause() if called else self._announced())
            self._field = asyncio.get_running_loop().create_future()
            self.region.field.set_document(Document(text))
            self.live.field_label, self.live.field_secret = label, secret
            self.live.field_hint = f"Enter · Esc: {escape}"
            self._refocus()
            try:
                return await self._field
            finally:
                self._field = None
                self.live.field_label, self.live.field_secret = "", False
                self.region.field.reset()
                self._refocus()

    @property
    def asking(self) -> bool:
        return self.live.dialog is not None or self._field is not None

    @property
    def filling(self) -> bool:
        return self._field is not None and self.live.dialog is None

    def filled(self, text: str | None) -> None:
        """The line is done (None: left)."""
        if self._field is not None and not self._field.done():
            self._field.set_result(text)

    async def page(self, texts: Sequence[Paged], index: int = -1) -> None:
        """Shows texts in the pager."""
        if texts:
            await self.screen.away(Pager(self.screen, texts, index).run)

    def _refocus(self) -> None:
        self.region.focus()
        self.screen.refresh()

    # -- time -------------------------------------------------------------------------------------------------------

    def start_ticking(self, tick: Callable[[int], None]) -> None:
        """Calls `tick` twenty times a second (a frame every 50 ms is as quick as reading) until `stop_ticking`."""
        self.stop_ticking()
        self._ticker = asyncio.get_running_loop().create_task(_ticks(tick))

    def stop_ticking(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None


class Entrance:
    """The hands of a chat that is still being put together: lines that are entered wait until it can send them."""

    busy = False

    def __init__(self, deck: Deck) -> None:
        self._deck = deck
        self.lines: list[str] = []
        deck.live.waiting = self._waiting

    def enter(self) -> None:
        editor = self._deck.editor
        if editor.text.strip() and not editor.continues():
            self.lines.append(editor.text)
            editor.clear()

    def newline(self) -> None:
        """Before the terminal is ours, it sends Enter as Ctrl+J."""
        self.enter()

    def _waiting(self, width: int) -> Rows:
        return [row("class:dim", f"  {one_line(line, width - 3)}") for line in self.lines]

    def control_c(self) -> None:
        """Clears the input; on an empty one, leaves: there is nothing to lose yet."""
        if self._deck.editor.text:
            self._deck.editor.clear()
        else:
            self._deck.screen.leave(0)

    def control_d(self) -> None:
        if not self._deck.editor.text:
            self._deck.screen.leave(0)

    def up(self) -> None:
        self._deck.editor.buffer.auto_up()

    def nothing(self) -> None:
        """What has to wait until there is a session."""

    queue = escape = next_mode = expand = search_history = edit_outside = paste_picture = redraw = stash = nothing


async def _ticks(tick: Callable[[int], None]) -> None:
    n = 0
    while True:
        await asyncio.sleep(0.05)
        n += 1
        tick(n)
