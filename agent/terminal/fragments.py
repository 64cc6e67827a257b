"""Pieces of the live region: (style, text) as prompt_toolkit takes them, by rows."""

from __future__ import annotations

from agent.terminal.clean import one_line

Fragments = list[tuple[str, str]]
Rows = list[Fragments]


def joined(rows: Rows) -> Fragments:
    """Rows with newlines between them."""
    out: Fragments = []
    for n, row in enumerate(rows):
        out += [*([("", "\n")] if n else []), *row]
    return out


def cut(row: Fragments, width: int) -> Fragments:
    """The row, cut at so many characters."""
    out: Fragments = []
    for style, text in row:
        if width <= 0:
            break
        out.append((style, text if len(text) <= width else one_line(text, width)))
        width -= len(text)
    return out
