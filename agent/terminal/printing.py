"""What a command can print, in the chat's colours: the part of a Face that only shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from agent.clean import plain
from agent.terminal import diff
from agent.terminal.activity import bar
from agent.terminal.blocks import note
from agent.terminal.markdown import Page
from agent.terminal.screen import Screen

_SHADES = ("accent", "code", "ok", "warn", "link", "chip", "dim")


class Printing:
    """Prints on a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def say(self, text: str, role: str = "info") -> None:
        self._screen.print(note(text, role, self._screen.theme))

    def markdown(self, text: str) -> None:
        self._screen.print(Page(text, self._screen.theme), prose=True)

    def table(self, rows: Sequence[Sequence[str]], head: Sequence[str] = (), title: str = "") -> None:
        grid = Table(
            box=box.SIMPLE_HEAD if head else None, show_header=bool(head), pad_edge=False, show_edge=False,
            padding=(0, 2, 0, 0),
        )  # fmt: skip
        half = self._screen.width // 2
        names = [cell_len(plain(row[0])) for row in rows if row]
        whole = self._screen.width >= 60 and max(names, default=0) <= half
        for n in range(max((len(r) for r in rows), default=0)):
            grid.add_column(
                head[n] if head else "",
                style="accent" if n == 0 else "",
                no_wrap=n == 0 and whole,
                max_width=half if n == 0 else None,
                overflow="fold",
            )
        for row in rows:
            grid.add_row(*(Text(plain(cell)) for cell in row))
        self._screen.print(Group(Text(title, style="bold"), grid) if title else grid)

    def gauge(self, parts: Sequence[tuple[str, int]], whole: int) -> None:
        unicode = self._screen.theme.unicode
        wide = max(8, min(30, self._screen.width - 44))
        rows: list[Text] = []
        for n, (label, size) in enumerate(parts):
            share = size / whole if whole else 0
            shade = "dim" if label == "free" else _SHADES[n % len(_SHADES)]
            rows.append(Text.assemble(f"{label:<14} {size:>9,} {share:>6.1%}  ", (bar(share, wide, unicode), shade)))
        self._screen.print(Group(*rows))

    def diff(self, text: str) -> None:
        self._screen.print(Group(*diff.render(text, named=True)))
