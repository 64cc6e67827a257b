"""Questions in the place of the input: a list to choose from, or a line to fill in. Arrows, digits and letters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.utils import get_cwidth

from agent.terminal.clean import one_line, plain
from agent.terminal.fragments import Fragments

TYPING = 0.8
"""Seconds after a letter that means nothing here in which further letters, and Enter, mean nothing either: somebody
types a line and has not seen the question. As long Enter means nothing after a question came up over a line."""

LATE = 1.2
"""Seconds after a letter has answered a question in which Enter may still belong to it: many press it after the letter,
and by then the next question may be there."""

PAGE = 9
"""Options that are seen at once: as many as there are digits."""


NEVER = float("-inf")

TITLE = 5
"""Lines that a question may take."""


@dataclass(frozen=True)
class Option:
    """One answer. `key` is the letter that chooses it (`also` a second one), `note` explains it in a few words. The
    letter of a `careful` one only goes there: such an answer must not come from a stray key."""

    value: Any
    label: str
    key: str = ""
    note: str = ""
    also: str = ""
    careful: bool = False


class Picker:
    """A list. With `search` what is typed filters it, without it letters and digits choose at once.

    `head(width)` is what stands above the options. The answer is the option's value, None after Esc. `lettered` is when
    a letter or digit gave it, `before` when one answered the question before this (monotonic seconds; NEVER too
    once a key has gone to an option of this one: Enter is meant for that).
    """

    def __init__(
        self,
        title: str,
        options: Sequence[Option],
        *,
        head: Callable[[int, int], Fragments] | None = None,
        search: bool = False,
        full: Callable[[], None] | None = None,
        start: int = 0,
        escape: str = "leave",
    ) -> None:
        self.title = title
        self.options = list(options)
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.index = start
        self.words = ""
        self._head = head
        self._search = search
        self._full = full
        self._wide = max((len(o.label) for o in self.options if o.note), default=0)
        self._escape = escape
        self._stray = 0.0
        self._since = time.monotonic()
        self._burst = False
        self.over_draft = False
        self.lettered = self.before = NEVER
        self.keys = self._bindings()

    @property
    def shown(self) -> list[Option]:
        """The options that match what was typed."""
        words = self.words.lower().split()
        return [o for o in self.options if all(w in f"{o.label} {o.note}".lower() for w in words)]

    def done(self, value: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def rows(self, width: int, height: int) -> Fragments:
        """The question as fragments, at most `height` rows of `width` columns."""
        shown = self.shown
        title = wrapped(self.title, width, max(1, min(TITLE, height // 4)))
        height -= len(title) - 1
        page = max(1, min(PAGE, height - 4))
        self.index = max(0, min(self.index, len(shown) - 1))
        first = max(0, min(self.index - page // 2, len(shown) - page))
        out: Fragments = [(style, text) for line in title for style, text in (("class:heading", line), ("", "\n"))]
        if self._head:
            out += self._head(width, max(0, height - 3 - min(len(shown), page)))
        for n, option in enumerate(shown[first : first + page], first):
            out += self._row(n, option, width)
        if not shown:
            out += [("class:dim", "  nothing matches\n")]
        return [*out, ("class:dim", one_line(self._foot(len(shown), page), width))]

    def _row(self, n: int, option: Option, width: int) -> Fragments:
        here = n == self.index
        mark = option.key or ("" if self._search or n > 8 else str(n + 1))
        label = one_line(option.label, max(4, width - 6))
        if option.note and width > 60:
            label = f"{label:<{min(self._wide, width // 2)}}"
        note = one_line(option.note, max(0, width - 9 - len(label))) if width - 9 - len(label) > 8 else ""
        style = "class:select" if here else ""
        out: Fragments = [
            (style, f"{'›' if here else ' '} "),
            ("class:accent", f"{mark:<2}" if mark else ""),
            (style, label),
        ]
        return [*out, ("class:dim", f"  {note}" if note else ""), ("", "\n")]

    def _foot(self, count: int, page: int) -> str:
        if self._search:
            more = f" · {count} of {len(self.options)}" if count > page or self.words else ""
            return (
                f"search: {self.words}▏{more} · Enter takes · Esc leaves"
                if self.words
                else f"type to search{more} · ↑↓ Enter · Esc leaves"
            )
        mark = "letter" if any(o.key for o in self.options) else "number"
        return f"↑↓ Enter, or the {mark}" + (" · Ctrl-E shows all" if self._full else "") + f" · Esc: {self._escape}"

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("up")(lambda e: self._move(-1))
        keys.add("down")(lambda e: self._move(1))
        keys.add("c-p")(lambda e: self._move(-1))
        keys.add("c-n")(lambda e: self._move(1))
        keys.add("pageup")(lambda e: self._move(-PAGE))
        keys.add("pagedown")(lambda e: self._move(PAGE))
        keys.add("enter")(self._enter)
        keys.add("escape")(lambda e: self.done(None))
        keys.add("c-c")(lambda e: self.done(None))
        keys.add("c-e")(lambda e: self._full() if self._full else None)
        keys.add("backspace")(lambda e: self._type(self.words[:-1]))
        keys.add("c-u")(lambda e: self._type(""))
        keys.add(Keys.BracketedPaste)(lambda e: self._type(self.words + one_line(e.data)) if self._search else None)
        keys.add(Keys.Any)(self._letter)
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        now = time.monotonic()
        astray = now - self._stray < TYPING or (self.over_draft and now - self._since < TYPING)
        astray, self._burst = astray or self._burst or now - self.before < LATE, False
        if self._search or not astray:
            self._take()

    def _move(self, by: int) -> None:
        self.over_draft, self.before = False, NEVER
        count = len(self.shown)
        step = self.index + by
        self.index = step % count if count and abs(by) == 1 else max(0, min(step, count - 1))

    def _take(self) -> None:
        shown = self.shown
        if shown:
            self.done(shown[self.index].value)

    def _type(self, words: str) -> None:
        self.words, self.index = words, 0

    def _letter(self, event: KeyPressEvent) -> None:
        letter = event.data
        if not letter.isprintable():
            return
        if self._search:
            self._type(self.words + letter)
            return
        # A letter with more keys right behind it came with a line that was on its way, not from one who reads.
        behind = any(len(key.data) == 1 and key.data.isprintable() for key in event.app.key_processor.input_queue)
        if behind or time.monotonic() - self._stray < TYPING:
            self._stray = time.monotonic()
            return
        chosen = next((o for o in self.options if o.key and letter.lower() in (o.key, o.also)), None)
        if chosen is None and letter.isdigit() and 0 < int(letter) <= len(self.options):
            chosen = self.options[int(letter) - 1]
        if chosen is None:
            self._stray = time.monotonic()
        elif chosen.careful:
            self.index, self.before = self.options.index(chosen), NEVER
            self._burst = bool(event.app.key_processor.input_queue)  # its Enter came with it, from no hand
        else:
            self.lettered = time.monotonic()
            self.done(chosen.value)


def wrapped(text: str, width: int, most: int) -> list[str]:
    """The text in at most `most` lines of `width` columns; what does not fit is left out, with a mark."""
    lines = [""]
    for word in plain(text).split():
        if lines[-1] and get_cwidth(lines[-1]) + 1 + get_cwidth(word) > width:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    kept = lines[:most]
    if len(lines) > most:
        kept[-1] = f"{kept[-1]} …"
    return [one_line(line, width) for line in kept]
