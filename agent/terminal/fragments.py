"""Pieces of the live region: (style, text) as prompt_toolkit takes them, by rows."""

from __future__ import annotations

from prompt_toolkit.formatted_text import StyleAndTextTuples as Fragments

__all__ = ["Fragments", "Rows", "joined", "row"]

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
