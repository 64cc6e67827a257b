"""Questions in the place of the input: a list to choose from, or a line to fill in. Arrows, digits and letters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.utils import get_cwidth

from agent.clean import one_line, plain
from agent.terminal.fragments import Fragments

TYPING = 0.8
"""Seconds after a letter that means nothing here in which further letters, and Enter, mean nothing either: somebody
types a line and has not seen the question. As long Enter means nothing after a question came up over a line."""

GLANCE = 0.5
"""Seconds in which nobody has read a question yet, however quick they are: a key may have been on its way."""

HOLD = 0.3
"""Seconds a key of the first GLANCE waits before it answers. Where another letter follows by then, somebody types."""

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


class Draft(Protocol):
    """The line that is being written while a question is open."""

    @property
    def text(self) -> str: ...
    def insert(self, text: str) -> None: ...
    def paste(self, data: str) -> None: ...
    def delete_left(self) -> None: ...


class Picker:
    """A list. With `search` what is typed filters it, without it letters and digits choose at once.

    `head(width)` is what stands above the options. The answer is the option's value, None after Esc. `lettered` is when
    a letter or digit gave it, `before` when one answered the question before this (monotonic seconds; NEVER too
    once a key has gone to an option of this one: Enter is meant for that). What is typed or pasted and is no answer
    goes to `draft`, so that it is not lost.
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
        self._stray = NEVER
        self._since: float | None = None
        self._held: tuple[str, asyncio.TimerHandle] | None = None
        self._strays = 0
        self._burst = False
        self.draft: Draft | None = None
        self.over_draft = False
        self.lettered = self.before = NEVER
        self.keys = self._bindings()

    @property
    def shown(self) -> list[Option]:
        """The options that match what was typed."""
        words = self.words.lower().split()
        return [o for o in self.options if all(w in f"{o.label} {o.note}".lower() for w in words)]

    def done(self, value: Any) -> None:
        self._let_go()
        if not self.answer.done():
            self.answer.set_result(value)

    def rows(self, width: int, height: int) -> Fragments:
        """The question as fragments, at most `height` rows of `width` columns."""
        self._since = self._since or time.monotonic()
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
        if self._held:
            return f"{self._held[0] or 'Enter'} counts in a moment, unless you are writing a line"
        if self._strays and self.draft:
            return f"This went to your line: {self.draft.text[-40:].lstrip()} · wait a moment, then answer"
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
        keys.add("escape")(self._escaped)
        keys.add("c-c")(lambda e: self.done(None))
        keys.add("c-e")(lambda e: self._full() if self._full else None)
        keys.add("backspace")(lambda e: self._backspace())
        keys.add("c-u")(lambda e: self._type(""))
        keys.add(Keys.BracketedPaste)(lambda e: self._pasted(e.data))
        keys.add(Keys.Any)(self._letter)
        return keys

    def _age(self) -> float:
        """Seconds since the question was first drawn; below 0 before that."""
        return time.monotonic() - self._since if self._since else -1.0

    def _enter(self, event: KeyPressEvent) -> None:
        now = time.monotonic()
        astray = now - self._stray < TYPING or (self.over_draft and self._age() < TYPING)
        astray, self._burst = astray or self._burst or now - self.before < LATE, False
        if self._search:
            self._take()
        elif now - self._stray < TYPING and event.app.key_processor.input_queue:
            self._astray("\n")  # lines that come in one piece, from a terminal that marks no paste
        elif not astray and not self._held:
            self._answer("", self._take)

    def _escaped(self, event: KeyPressEvent) -> None:
        """Esc; with a letter right behind it, it is Alt and the letter, a key of the line editor."""
        if event.app.key_processor.input_queue and not self._search:
            self._stray = time.monotonic()
        else:
            self.done(None)

    def _move(self, by: int) -> None:
        self._let_go()
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
        writing = time.monotonic() - self._stray < TYPING or (self.over_draft and self._age() < GLANCE)
        if behind or writing or self._held or self._age() < 0:
            self._astray(letter)
            return
        chosen = next((o for o in self.options if o.key and letter.lower() in (o.key, o.also)), None)
        if chosen is None and letter.isdigit() and 0 < int(letter) <= len(self.options):
            chosen = self.options[int(letter) - 1]
        if chosen is None:
            self._astray(letter)
        elif chosen.careful:
            self.index, self.before = self.options.index(chosen), NEVER
            self._burst = bool(event.app.key_processor.input_queue)  # its Enter came with it, from no hand
        else:
            self._answer(letter, lambda: self._choose(chosen))

    def _choose(self, option: Option) -> None:
        self.lettered = time.monotonic()
        self.done(option.value)

    def _answer(self, key: str, act: Callable[[], None]) -> None:
        """Acts on a key; on one that may have been on its way before the question was read only after a moment."""
        if self._age() >= GLANCE or self.draft is None:
            act()
        else:
            self._held = key, asyncio.get_running_loop().call_later(HOLD, act)

    def _let_go(self) -> str:
        """The key that was held, which does not count any more; "" where there is none."""
        if self._held is None:
            return ""
        (key, timer), self._held = self._held, None
        timer.cancel()
        return key

    def _astray(self, text: str) -> None:
        """Something that was typed, but not at this question."""
        self._stray = time.monotonic()
        text = self._let_go() + text
        if self.draft is not None and (text.strip() or self._strays):
            self.draft.insert(text)
            self._strays += len(text)

    def _backspace(self) -> None:
        if self._search:
            self._type(self.words[:-1])
        elif self._strays and self.draft is not None:
            self.draft.delete_left()
            self._strays -= 1

    def _pasted(self, data: str) -> None:
        """A paste is no answer: it goes to what is searched for, or to the line."""
        if self._search:
            self._type(self.words + one_line(data))
        elif self.draft is not None:
            self._astray("")
            self.draft.paste(data)
            self._strays += 1


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
