"""How the live region is written: in one write a frame, by absolute columns, without asking the terminal anything.

Relative moves add up every difference of opinion about the width of an emoji; an absolute column forgets it at once.
Questions to the terminal (cursor position reports) are slow over ssh and can end up in the input; none is sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth


class InlineOutput(Vt100_Output):
    """A terminal below whose scrollback a few lines are redrawn."""

    def __init__(self, stdout: TextIO, term: str, depth: ColorDepth) -> None:
        super().__init__(stdout, self._size, term=term, default_color_depth=depth, enable_cpr=False)
        self._column = 0
        self._unsure = False
        self._held = 0

    def _size(self) -> Size:
        try:
            found = os.get_terminal_size(self.stdout.fileno())
        except OSError:
            return Size(rows=24, columns=80)
        return Size(rows=found.lines or 24, columns=found.columns or 80)

    def hold(self) -> None:
        """Keeps what is written until `release`, for a frame that begins and ends in different places."""
        self._held += 1

    def release(self) -> None:
        """Ends `hold`."""
        self._held = max(0, self._held - 1)
        self.flush()

    def flush(self) -> None:
        if self._held:
            return
        try:
            super().flush()
        except OSError:  # the terminal is gone; what runs has to come to its end all the same
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())

    def write(self, data: str) -> None:
        if self._unsure and data[:1] not in "\r\n":
            self._goto()
        self._unsure = len(data) > 1 and not data.isascii()
        super().write(data)
        self._column = 0 if data[:1] in ("\r", "\n") else self._column + get_cwidth(data)

    def cursor_forward(self, amount: int) -> None:
        if amount:
            self._column += amount
            self._goto()

    def cursor_backward(self, amount: int) -> None:
        if amount:
            self._column = max(0, self._column - amount)
            self._goto()

    def erase_down(self) -> None:
        """Erases to the end of the screen, the first line by itself: where the cursor is in the very first cell, tmux
        takes one order for all of it for a clear screen and moves what was there up into the scrollback."""
        self.write_raw("\x1b7\x1b[K\x1b[B\x1b[J\x1b8")

    def _goto(self) -> None:
        self._unsure = False
        self.write_raw(f"\x1b[{self._column + 1}G")


_REFLOWING = (
    "TMUX",
    "KITTY_WINDOW_ID",
    "VTE_VERSION",
    "WT_SESSION",
    "WEZTERM_PANE",
    "ALACRITTY_WINDOW_ID",
    "GHOSTTY_RESOURCES_DIR",
)
"""Set by terminals that wrap old lines anew when they get narrower (as of 2026)."""


def reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal wraps lines anew when its width changes; nothing it says about itself tells directly."""
    program = env.get("TERM_PROGRAM", "")
    return any(env.get(name) for name in _REFLOWING) or program in ("iTerm.app", "Apple_Terminal", "vscode", "ghostty")


def color_depth(level: str, color: bool) -> ColorDepth:
    """The toolkit's name of a colour level (see theme.color_level)."""
    if not color:
        return ColorDepth.DEPTH_1_BIT
    depths = {"truecolor": ColorDepth.DEPTH_24_BIT, "256": ColorDepth.DEPTH_8_BIT}
    return depths.get(level, ColorDepth.DEPTH_4_BIT)
