"""Thinking that comes as text: <think> ... </think> at the start of an answer, split off while it streams."""

from __future__ import annotations

from collections.abc import Iterator

_OPEN = ("<think>", "<thinking>")


class ThinkingSplitter:
    """Tells thinking from answer. Only an answer that begins with the tag has any: later on the tag is just text."""

    def __init__(self, already_open: bool = False) -> None:
        self._held = ""
        self._close = "</think>" if already_open else ""
        self._begun = already_open

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """(is thinking, piece) for each piece that is certain now."""
        self._held += text
        if not self._begun:
            yield from self._begin()
        if self._begun and self._close:
            yield from self._inside()
        if self._begun and not self._close and self._held:
            piece, self._held = self._held, ""
            yield False, piece

    def close(self) -> Iterator[tuple[bool, str]]:
        """What was held back when the stream ended."""
        if self._held:
            yield bool(self._close), self._held
        self._held = ""

    def _begin(self) -> Iterator[tuple[bool, str]]:
        start = self._held.lstrip()
        opened = next((tag for tag in _OPEN if start.startswith(tag)), "")
        if opened:
            self._begun, self._close = True, opened.replace("<", "</")
            self._held = start[len(opened) :]
        elif not any(tag.startswith(start) for tag in _OPEN):
            self._begun = True
        yield from ()

    def _inside(self) -> Iterator[tuple[bool, str]]:
        thought, tag, rest = self._held.partition(self._close)
        if tag:
            self._close, self._held = "", rest.lstrip("\n")
            if thought:
                yield True, thought
            return
        keep = next((n for n in range(len(self._close), 0, -1) if self._held.endswith(self._close[:n])), 0)
        piece, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if piece:
            yield True, piece
