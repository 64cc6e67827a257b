"""A unified diff as a person reads it: line numbers, colours, and which words of a line changed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from agent.terminal.clean import plain

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
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
    """The rows of a unified diff; what is no diff comes back as plain rows."""
    rows: list[Row] = []
    old = new = 0
    for line in plain(diff).split("\n"):
        if line.startswith(("--- ", "diff --git", "index ", "\\ No newline")) and (
            not old and not new or line[0] != "-"
        ):
            continue
        if line.startswith("--- ") or (line.startswith("+++ ") and not rows[-1:]):
            continue
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            rows += [Row("@", 0, "")] if rows else []
        elif line[:1] == "+":
            rows.append(Row("+", new, line[1:]))
            new += 1
        elif line[:1] == "-":
            rows.append(Row("-", old, line[1:]))
            old += 1
        elif line[:1] == " ":
            rows.append(Row(" ", new, line[1:]))
            old, new = old + 1, new + 1
    return list(_with_words(rows))


def counts(diff: str) -> tuple[int, int]:
    """(lines added, lines removed)."""
    rows = parse(diff)
    return sum(r.sign == "+" for r in rows), sum(r.sign == "-" for r in rows)


def render(diff: str, limit: int = 0) -> list[Text]:
    """The diff as styled lines, at most `limit` of them (0: all) and then one that says how many are left."""
    rows = parse(diff)
    wide = len(str(max((r.number for r in rows), default=0)))
    shown = rows if not limit or len(rows) <= limit + 1 else rows[:limit]
    out = [_styled(row, wide) for row in shown]
    if len(shown) < len(rows):
        out.append(Text(f"{'':{wide}}   … {len(rows) - len(shown)} more lines (Ctrl-O)", style="dim"))
    return out


def _styled(row: Row, wide: int) -> Text:
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
    return Row("-", old.number, old.text, tuple(left)), Row("+", new.number, new.text, tuple(right))


def _span(words: list[str], first: int, last: int) -> list[tuple[int, int]]:
    start = sum(map(len, words[:first]))
    length = sum(map(len, words[first:last]))
    return [(start, start + length)] if length else []
