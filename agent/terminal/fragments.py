"""Pieces of the live region: (style, text) as prompt_toolkit takes them, by rows."""

from __future__ import annotations

from prompt_toolkit.formatted_text import StyleAndTextTuples as Fragments

from agent.terminal.clean import one_line

__all__ = ["Fragments", "Rows", "cut", "joined", "row"]

Rows = list[Fragments]


def row(style: str, text: str) -> Fragments:
    """A row of one style."""
    return [(style, text)]


def joined(rows: Rows) -> Fragments:
    """Rows with newlines between them."""
    out: Fragments = []
    for n, row in enumerate(rows):
        out += [*([("", "\n")] if n else []), *row]
    return out


def cut(fragments: Fragments, width: int) -> Fragments:
    """The row, cut at so many characters."""
    out: Fragments = []
    for style, text, *_ in fragments:
        if width <= 0:
            break
        out.append((style, text if len(text) <= width else one_line(text, width)))
        width -= len(text)
    return out
