"""The live lines at the bottom: what is being written, what runs, what waits, the status, the input or a question.

The input is the last line of all. A terminal that gets lower keeps the line the cursor is in; what stands below it is
cut off by some and left lying by others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import DynamicKeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor, TabsProcessor

from agent.clean import one_line
from agent.terminal.dialogs import Picker
from agent.terminal.editor import ChipColours, Editor
from agent.terminal.fragments import Fragments, Rows, joined
from agent.terminal.graphemes import ClusterCells

TAIL = 12
"""Rows of what is being written that are live; more of them would flicker on slow lines."""

COMING = "  A question comes up; what you type now still goes to your line"

FIELD = 6
"""Rows that the answer to a question may take."""


@dataclass
class Live:
    """What the region shows; whoever changes it asks the screen for a refresh. Rows are cut at the width."""

    tail: Rows = field(default_factory=list)
    activity: Callable[[int], Rows] = lambda width: []
    waiting: Callable[[int], Rows] = lambda width: []
    menu: Callable[[int], Rows] = lambda width: []
    status: Callable[[int], Fragments] = lambda width: []
    own_line: Callable[[int], Rows] = lambda width: []
    sign: Callable[[], tuple[str, str]] = lambda: ("class:accent", "› ")
    placeholder: Callable[[], str] = lambda: ""
    coming: bool = False
    dialog: Picker | None = None
    field_label: str = ""
    field_hint: str = ""
    field_secret: bool = False


class Region:
    """The layout. `size()` is (columns, rows) of the terminal."""

    def __init__(self, live: Live, editor: Editor, size: Callable[[], tuple[int, int]]) -> None:
        self._live = live
        self._editor = editor
        self._size = size
        self.field = Buffer(multiline=False)
        asking = Condition(lambda: live.dialog is not None)
        filling = Condition(lambda: bool(live.field_label))
        self._dialog = Window(
            FormattedTextControl(
                self._dialog_rows,
                focusable=True,
                show_cursor=False,
                key_bindings=DynamicKeyBindings(lambda: live.dialog.keys if live.dialog else None),
            ),
            dont_extend_height=True,
            always_hide_cursor=True,
        )
        self._field = self._input_window(
            self.field, lambda n, wrap: [("class:accent", live.field_label if not n + wrap else "")], FIELD
        )
        self._input = self._input_window(editor.buffer, self._prefix, None)
        self.layout = Layout(
            HSplit(
                [
                    self._rows(self._tail),
                    self._rows(lambda: live.activity(self._columns)),
                    self._rows(lambda: live.waiting(self._columns)),
                    self._rows(lambda: [[("class:warn", one_line(COMING, self._columns - 1))]] if live.coming else []),
                    _gap(),
                    ConditionalContainer(self._rows(lambda: live.own_line(self._columns)), ~asking),
                    ConditionalContainer(self._rows(lambda: [live.status(self._columns)]), ~asking),
                    ConditionalContainer(self._dialog, asking),
                    ConditionalContainer(self._field, ~asking & filling),
                    ConditionalContainer(self._rows(lambda: self._hint(self._columns)), ~asking & filling),
                    ConditionalContainer(self._rows(lambda: live.menu(self._columns)), ~asking & ~filling),
                    ConditionalContainer(self._input, ~asking & ~filling),
                ],
                align=VerticalAlign.TOP,
            ),
            focused_element=self._input,
        )

    def focus(self) -> None:
        """Puts the cursor where the keys go."""
        live = self._live
        target = self._dialog if live.dialog else self._field if live.field_label else self._input
        if self.layout.current_window is not target:
            self.layout.focus(target)

    @property
    def _columns(self) -> int:
        return self._size()[0]

    def _tail(self) -> Rows:
        room = max(2, min(TAIL, self._size()[1] // 3))
        return self._live.tail[-room:]

    def _rows(self, rows: Callable[[], Rows]) -> ConditionalContainer:
        window = Window(FormattedTextControl(lambda: joined(rows())), dont_extend_height=True, height=_height(rows))
        return ConditionalContainer(window, Condition(lambda: bool(rows())))

    def _hint(self, columns: int) -> Rows:
        """What the keys do while a line is filled in."""
        return [[("class:dim", one_line(self._live.field_hint, max(4, columns - 1)))]]

    def _dialog_rows(self) -> Fragments:
        columns, rows = self._size()
        dialog = self._live.dialog
        return dialog.rows(columns - 1, max(5, rows - 2)) if dialog else []

    def _prefix(self, line: int, wrap: int) -> Fragments:
        style, sign = self._live.sign()
        return [(style, sign)] if line == 0 and wrap == 0 else [("", " " * len(sign))]

    def _input_window(self, buffer: Buffer, prefix: Callable[[int, int], Fragments], most: int | None) -> Window:
        secret = ConditionalProcessor(
            PasswordProcessor(), Condition(lambda: self._live.field_secret and buffer is self.field)
        )
        control = BufferControl(
            buffer, input_processors=[ChipColours(), ClusterCells(), TabsProcessor(char1=" ", char2=" "), secret]
        )
        return Window(
            control,
            wrap_lines=True,
            get_line_prefix=prefix,
            dont_extend_height=True,
            height=lambda: Dimension(min=1, max=min(most or 99, max(1, self._size()[1] // 3))),
        )


def _height(rows: Callable[[], Rows]) -> Callable[[], Dimension]:
    return lambda: Dimension(min=0, preferred=len(rows()), max=max(1, len(rows())))


def _gap() -> Window:
    return Window(height=Dimension(min=0, preferred=1, max=1), dont_extend_height=True, char=" ")
