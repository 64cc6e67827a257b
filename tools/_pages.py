"""A page of a text: numbered lines from here to there, in memory that does not depend on the size of the file."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
    with open(path, "rb") as f:
        shape = _shape(f.read(8192))
        sha, total = _survey(f, shape)
        first = _first(offset, total)
        lines = tuple(itertools.islice(_lines_from(f, shape, first), max(1, limit)))
    return _fit(Page(lines, first, total), share, False), sha


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


class _Shape(NamedTuple):
    """How lines end in a file's bytes."""

    encoding: str
    newline: bytes
    skip: int


def _shape(start: bytes) -> _Shape:
    for bom, encoding in BOMS:
        if start.startswith(bom):
            return _Shape(encoding, "\n".encode(encoding), len(bom))
    return _Shape("utf-8", b"\n", 0)


def _survey(f: BinaryIO, shape: _Shape) -> tuple[str, int]:
    """The SHA-256 and the number of lines."""
    sha, ends, last = hashlib.sha256(), 0, b""
    f.seek(0)
    while chunk := f.read(_CHUNK):
        sha.update(chunk)
        ends += chunk.count(shape.newline)
        last = chunk[-len(shape.newline) :]
    return sha.hexdigest(), ends + (last != shape.newline)


def _lines_from(f: BinaryIO, shape: _Shape, first: int) -> Iterator[str]:
    """The lines from number `first` on, each cut to MAX_COLUMNS as soon as it is read."""
    f.seek(shape.skip)
    number, rest, dropped = 1, b"", 0
    keep = MAX_COLUMNS * 4
    while chunk := f.read(_CHUNK):
        ends = chunk.count(shape.newline)
        if number + ends < first:
            number, rest, dropped = number + ends, b"", 0
            continue
        pieces = (rest + chunk).split(shape.newline)
        rest = pieces.pop()
        for piece in pieces:
            if number >= first:
                yield _decoded(piece, shape.encoding, dropped)
            number, dropped = number + 1, 0
        if len(rest) > 2 * keep:
            dropped += len(rest) - keep
            rest = rest[:keep]
    if rest and number >= first:
        yield _decoded(rest, shape.encoding, dropped)


def _decoded(line: bytes, encoding: str, dropped: int) -> str:
    text = line.decode(encoding, "replace").removesuffix("\r")
    return _short(text, len(text) + dropped)
