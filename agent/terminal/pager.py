"""The full text of something, on a screen of its own: arrows, space, / searches, [ and ] change the text, q leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window

from agent.clean import one_line, plain
from agent.terminal.fragments import Fragments
from agent.terminal.screen import Screen

Paged = tuple[str, str | Callable[[], str]]
"""(title, text), or what gives the text when it is to be seen."""


class Pager:
    """Shows texts, beginning with the one at `index`."""

    def __init__(self, screen: Screen, texts: Sequence[Paged], index: int = -1) -> None:
        self._screen = screen
        self._texts = list(texts)
        self._index = index % len(self._texts)
        self._top = 0
        self._query: str | None = None
        self._found = ""
        self._lines: list[str] = []
        self._width = 0

    async def run(self) -> None:
        body = Window(FormattedTextControl(self._body, focusable=True, show_cursor=False), always_hide_cursor=True)
        foot = Window(FormattedTextControl(self._foot), height=1)
        app: Application[Any] = Application(
            layout=Layout(HSplit([body, foot]), focused_element=body),
            key_bindings=self._keys(),
            input=self._screen.app.input,
            output=self._screen.output,
            style=self._screen.app.style,
            full_screen=True,
            include_default_pygments_style=False,
        )
        app.ttimeoutlen = app.timeoutlen = 0.1
        await app.run_async()

    @property
    def _text(self) -> str:
        title, text = self._texts[self._index]
        if not isinstance(text, str):
            text = text()
            self._texts[self._index] = title, text
        return text

    @property
    def _page(self) -> int:
        return max(1, self._screen.rows - 1)

    def _wrap(self) -> list[str]:
        width = self._screen.width
        if not self._lines or width != self._width:
            self._width = width
            text = plain(self._text).expandtabs(4).rstrip("\n")
            self._lines = [part for line in text.split("\n") for part in _folded(line, width)]
        return self._lines

    def _body(self) -> Fragments:
        lines = self._wrap()
        self._top = max(0, min(self._top, len(lines) - self._page))
        out: Fragments = []
        for line in lines[self._top : self._top + self._page]:
            hit = bool(self._found) and self._found.lower() in line.lower()
            out += [("reverse" if hit else self._style(line), line), ("", "\n")]
        return out

    def _style(self, line: str) -> str:
        """The colour of a line: those of a diff have some."""
        if not self._text.startswith(("--- ", "diff --git ", "@@ ")):
            return ""
        if line.startswith(("--- ", "+++ ", "diff ", "@@ ")):
            return "class:dim"
        return {"+": "class:add", "-": "class:remove"}.get(line[:1], "")

    def _foot(self) -> Fragments:
        if self._query is not None:
            return [("class:accent", f"/{self._query}▏")]
        total = len(self._wrap())
        at = f"{min(total, self._top + self._page)}/{total}"
        which = f" · {self._index + 1} of {len(self._texts)}, [ ] changes" if len(self._texts) > 1 else ""
        title = one_line(self._texts[self._index][0], max(8, self._screen.width - 60))
        words = f"{title} · {at}{which} · / searches · q leaves"
        return [("class:dim", one_line(words, self._screen.width))]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "enter": 1}
        for key, by in moves.items():
            keys.add(key)(
                lambda e, by=by: self._typed(e) if e.data.isalpha() and self._query is not None else self._enter(by)
            )
        pages = {"pageup": -1, "b": -1, "pagedown": 1, " ": 1, "f": 1}
        for key, by in pages.items():
            keys.add(key)(
                lambda e, by=by: (
                    self._typed(e) if self._query is not None and len(e.data) == 1 else self._move(by * self._page)
                )
            )
        keys.add("home")(lambda e: self._move(-len(self._lines)))
        keys.add("end")(lambda e: self._move(len(self._lines)))
        keys.add("escape")(lambda e: self._leave(e))
        keys.add("c-c")(lambda e: self._leave(e))
        keys.add("c-o")(lambda e: e.app.exit())
        keys.add("backspace")(lambda e: self._erase())
        keys.add(Keys.Any)(self._typed)
        return keys

    def _typed(self, event: Any) -> None:
        if self._query is not None:
            self._query += event.data if event.data.isprintable() else ""
            return
        match event.data:
            case "q":
                event.app.exit()
            case "/":
                self._query = ""
            case "n":
                self._search(1)
            case "g":
                self._move(-len(self._lines))
            case "G":
                self._move(len(self._lines))
            case "[" | "]":
                self._change(-1 if event.data == "[" else 1)
            case _:
                pass

    def _enter(self, by: int) -> None:
        if self._query is None:
            self._move(by)
            return
        self._found, self._query = self._query, None
        self._search(0)

    def _erase(self) -> None:
        if self._query is not None:
            self._query = self._query[:-1]

    def _leave(self, event: Any) -> None:
        if self._query is None:
            event.app.exit()
        self._query = None

    def _search(self, skip: int) -> None:
        lines = self._wrap()
        words = self._found.lower()
        order = [*range(self._top + skip, len(lines)), *range(self._top + skip)]
        self._top = next((n for n in order if words and words in lines[n].lower()), self._top)

    def _move(self, by: int) -> None:
        self._top = max(0, self._top + by)

    def _change(self, by: int) -> None:
        self._index = (self._index + by) % len(self._texts)
        self._top, self._lines = 0, []


def _folded(line: str, width: int) -> list[str]:
    """The line in pieces of at most `width` characters; wide letters may end up cut at the edge, never hidden twice."""
    if len(line) <= width:
        return [line]
    return [line[n : n + width] for n in range(0, len(line), width)]
