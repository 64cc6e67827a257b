"""A page of a text: numbered lines from here to there, in memory that does not depend on the size of the file."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools._text import BOMS, plain

HUGE = 16 * 1024 * 1024
"""Bytes beyond which a file is read in pieces and never held whole."""

MAX_COLUMNS = 2000
"""Characters of one line; the rest is told, not shown."""

_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Page:
    """Lines first..last of `total`; `lines` hold at most MAX_COLUMNS characters each."""

    lines: tuple[str, ...]
    first: int
    total: int

    @property
    def last(self) -> int:
        """The number of the last line shown."""
        return self.first + len(self.lines) - 1

    def text(self) -> str:
        """The lines as the model sees them, and how to go on where there are more."""
        body = "\n".join(f"{n:>6}\t{plain(line)}" for n, line in enumerate(self.lines, self.first))
        if self.last >= self.total:
            return body
        return f"{body}\n(lines {self.first}-{self.last} of {self.total}; continue with offset={self.last + 1})"


def page_of_text(text: str, offset: int, limit: int, share: int) -> Page:
    """A page of a text in memory. `offset` from 1, negative from the end; at most `share` characters."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    first = _first(offset, len(lines))
    wanted = [_short(line, len(line)) for line in lines[first - 1 : first - 1 + max(1, limit)]]
    return _fit(Page(tuple(wanted), first, len(lines)), share, offset < 0)


def page_of_file(path: Path, offset: int, limit: int, share: int) -> tuple[Page, str]:
    """The same of a file of any size, and the SHA-256 of its bytes; holds one page and one chunk at a time."""
    sha = hashlib.sha256()
    tail: deque[str] = deque(maxlen=min(limit, -offset) if offset < 0 else 0)
    wanted: list[str] = []
    total = 0
    for total, line in _lines_of(path, sha):
        if offset < 0:
            if len(tail) < -offset or tail.maxlen:
                tail.append(line)
        elif max(1, offset) <= total < max(1, offset) + limit:
            wanted.append(line)
    first = _first(offset, total)
    return _fit(Page(tuple(tail or wanted), first, total), share, False), sha.hexdigest()


def _first(offset: int, total: int) -> int:
    return max(1, total + offset + 1) if offset < 0 else max(1, offset)


def _short(line: str, length: int) -> str:
    if length <= MAX_COLUMNS:
        return line
    return f"{line[:MAX_COLUMNS]} … (line of {length:,} characters)"


def _fit(page: Page, share: int, from_end: bool) -> Page:
    """As many of the lines as fit into `share` characters, one at least; from the end if the end was asked for."""
    order = reversed(page.lines) if from_end else iter(page.lines)
    room, kept = share - 100, 0
    for line in order:
        room -= len(line) + 8
        if room < 0 and kept:
            break
        kept += 1
    if from_end:
        lines = page.lines[len(page.lines) - kept :]
        return replace(page, lines=lines, first=page.first + len(page.lines) - kept)
    return replace(page, lines=page.lines[:kept])


def _lines_of(path: Path, sha: hashlib._Hash) -> Iterator[tuple[int, str]]:
    """Numbered lines, each cut to MAX_COLUMNS as soon as it is read."""
    with open(path, "rb") as f:
        encoding, newline, skip = _encoding(f.read(8192))
        f.seek(0)
        number, rest, dropped = 1, b"", 0
        keep = MAX_COLUMNS * 4
        while chunk := f.read(_CHUNK):
            sha.update(chunk)
            pieces = (rest + chunk[skip:]).split(newline)
            skip, rest = 0, pieces.pop()
            for piece in pieces:
                yield number, _decoded(piece, encoding, dropped)
                number, dropped = number + 1, 0
            if len(rest) > 2 * keep:
                dropped += len(rest) - keep
                rest = rest[:keep]
        if rest:
            yield number, _decoded(rest, encoding, dropped)


def _encoding(start: bytes) -> tuple[str, bytes, int]:
    for bom, encoding in BOMS:
        if start.startswith(bom):
            return encoding, "\n".encode(encoding), len(bom)
    return "utf-8", b"\n", 0


def _decoded(line: bytes, encoding: str, dropped: int) -> str:
    text = line.decode(encoding, "replace").removesuffix("\r")
    return _short(text, len(text) + dropped)
