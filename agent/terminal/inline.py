"""The toolkit's application, on a terminal that moves the live lines itself when its size changes."""

from __future__ import annotations

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Screen as Cells

INSIDE = "\x1b7\x1b8"
"""Saves and restores the cursor, which changes nothing, unless the terminal has just got lower and left the cursor
outside: then it is inside again before anything is drawn relative to it."""


class Inline(Application[int]):
    """The application, with two things more: a terminal that wraps lines anew on a resize moves the live lines, and one
    that gets lower pushes the first of them out at its top (`pushed` rows; nobody can erase them there). `pulling`: it
    brings them back when it gets higher again."""

    reflowing = pulling = False
    pushed = 0
    size: Size | None = None

    def _on_resize(self) -> None:
        self.output.write_raw(INSIDE)
        cells = self.renderer.last_rendered_screen
        size = self.output.get_size()
        if cells is not None:
            y = self._cursor_row(cells)
            gained = _rows_gained(cells, size.columns, y) if self.reflowing else 0
            self.output.cursor_up(gained + self._pulled(size, y))
        self.size = size
        super()._on_resize()

    def _pulled(self, size: Size, y: int) -> int:
        """Rows that were pushed out and are back above the live lines, whose cursor is in row `y` of them."""
        if not self.pulling or self.size is None or size.columns != self.size.columns:
            self.pushed = 0  # wrapped anew, nobody knows how many they are
            return 0
        self.pushed += max(0, y + 1 - size.rows) if size.rows < self.size.rows else 0
        back = min(self.pushed, max(0, size.rows - self.size.rows))
        self.pushed -= back
        return back

    def _cursor_row(self, cells: Cells) -> int:
        return cells.get_cursor_position(self.layout.current_window).y


def _rows_gained(cells: Cells, width: int, upto: int) -> int:
    """Rows that the live lines above the cursor take more, once they are wrapped to this width."""
    gained = 0
    for y in range(upto):
        row = cells.data_buffer[y]
        used = max((x for x, char in row.items() if char.char != " "), default=-1) + 1
        gained += max(0, -(-used // max(width, 1)) - 1)
    return gained
