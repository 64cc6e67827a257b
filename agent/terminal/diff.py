"""A unified diff as a person reads it: line numbers, colours, and which words of a line changed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from agent.clean import plain

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

ALIKE = 0.4
"""Share of two lines that must be equal before single words are marked; below it everything differs."""


@dataclass(frozen=True)
class Row:
    """One line of a diff: sign is " ", "+", "-", "@" (a jump) or "#" (a file's name). `spans` are the changed words
    as character ranges."""

    sign: str
    number: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()


def parse(diff: str) -> list[Row]:
    """The rows of a unified diff of one or more files; what is no diff has none."""
    reader = _Reader()
    for line in plain(diff).split("\n"):
        reader.line(line)
    return list(_with_words(reader.rows))


class _Reader:
    """Reads a diff line by line. The lengths in a hunk's head say where it ends, so that a removed line that begins
    with dashes is not taken for the head of a file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._old = self._new = 0
        self._old_left = self._new_left = 0
        self._before = ""

    def line(self, line: str) -> None:
        if self._old_left > 0 or self._new_left > 0:
            self._body(line)
        elif hunk := _HUNK.match(line):
            self._hunk(hunk)
        elif line.startswith("+++ "):
            self._file(line[4:])
        elif line.startswith("--- ") and line != "--- /dev/null":
            self._before = line[4:].partition("\t")[0]

    def _hunk(self, hunk: re.Match[str]) -> None:
        self._old, self._new = int(hunk[1]), int(hunk[3])
        self._old_left, self._new_left = int(hunk[2] or 1), int(hunk[4] or 1)
        if self.rows and self.rows[-1].sign != "#":
            self.rows.append(Row("@", 0, ""))

    def _file(self, name: str) -> None:
        name = name.partition("\t")[0]
        name = self._before if name == "/dev/null" else name
        self.rows.append(Row("#", 0, re.sub(r"^[ab]/", "", name)))

    def _body(self, line: str) -> None:
        sign = line[:1] or " "
        if sign == "+":
            self.rows.append(Row("+", self._new, line[1:]))
        elif sign == "-":
            self.rows.append(Row("-", self._old, line[1:]))
        elif sign == " ":
            self.rows.append(Row(" ", self._new, line[1:]))
        took_old, took_new = sign in " -", sign in " +"
        self._old, self._old_left = self._old + took_old, self._old_left - took_old
        self._new, self._new_left = self._new + took_new, self._new_left - took_new


def counts(diff: str) -> tuple[int, int]:
    """(lines added, lines removed)."""
    rows = parse(diff)
    return sum(r.sign == "+" for r in rows), sum(r.sign == "-" for r in rows)


def render(diff: str, limit: int = 0, more: str = "Ctrl-O", *, named: bool = False) -> list[Text]:
    """The diff as styled lines, at most `limit` of them (0: all) and then one that says how many are left, and the key
    `more` that shows them. The name of a file is shown where there are several, or where `named` asks for it."""
    rows = parse(diff)
    if not named and sum(r.sign == "#" for r in rows) < 2:
        rows = [r for r in rows if r.sign != "#"]
    wide = len(str(max((r.number for r in rows), default=0)))
    shown = rows if not limit or len(rows) <= limit + 1 else rows[:limit]
    out = [_styled(row, wide) for row in shown]
    if len(shown) < len(rows):
        out.append(Text(f"{'':{wide}}   … {len(rows) - len(shown)} more lines ({more})", style="dim"))
    return out


def _styled(row: Row, wide: int) -> Text:
    if row.sign == "#":
        return Text(row.text, style="bold")
    if row.sign == "@":
        return Text(f"{'':{wide}} ⋯", style="dim")
    style = {"+": "add", "-": "remove"}.get(row.sign, "")
    line = Text(f"{row.number:>{wide}} ", style="dim")
    body = Text(f"{row.sign} {row.text}".rstrip(), style=style)
    for start, end in row.spans:
        body.stylize(f"{style}_word", start + 2, end + 2)
    body.expand_tabs(4)
    return line.append_text(body)


def _with_words(rows: list[Row]) -> Iterator[Row]:
    """Marks words where as many lines went as came, pair by pair."""
    n = 0
    while n < len(rows):
        minus = _run(rows, n, "-")
        plus = _run(rows, n + minus, "+")
        if minus and minus == plus and minus <= 20:
            pairs = [_changed(a, b) for a, b in zip(rows[n : n + minus], rows[n + minus : n + 2 * minus], strict=True)]
            yield from (p[0] for p in pairs)
            yield from (p[1] for p in pairs)
        else:
            yield from rows[n : n + minus + plus]
        n += minus + plus
        if n < len(rows) and not (minus + plus):
            yield rows[n]
            n += 1


def _run(rows: list[Row], start: int, sign: str) -> int:
    n = start
    while n < len(rows) and rows[n].sign == sign:
        n += 1
    return n - start


def _changed(old: Row, new: Row) -> tuple[Row, Row]:
    a, b = _WORD.findall(old.text), _WORD.findall(new.text)
    if len(a) + len(b) > 400:
        return old, new
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < ALIKE:
        return old, new
    left, right = [], []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            left += _span(a, i1, i2)
            right += _span(b, j1, j2)
    return _marked(old, left), _marked(new, right)


def _marked(row: Row, spans: list[tuple[int, int]]) -> Row:
    """The row with its changed words; spaces are marked only where nothing else changed."""
    seen = [s for s in spans if row.text[slice(*s)].strip()] or spans
    return Row(row.sign, row.number, row.text, tuple(seen))


def _span(words: list[str], first: int, last: int) -> list[tuple[int, int]]:
    start = sum(map(len, words[:first]))
    length = sum(map(len, words[first:last]))
    return [(start, start + length)] if length else []
