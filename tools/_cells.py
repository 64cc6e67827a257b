"""Edits of a notebook's cells: the text of a cell is what is quoted, the rest of the JSON stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools._edits import Change, Outcome, elision, spliced
from tools._match import Ambiguous, NoMatch, Plan, plan
from tools._text import NotText, decode, to_lf
from tools.base import ToolFailure


@dataclass(frozen=True)
class Source:
    """The text of one cell, and where its JSON value is in the file."""

    cell: int
    text: str
    start: int
    end: int


def edit_cells(data: bytes, changes: Sequence[Change], name: str) -> Outcome | None:
    """All changes made to cells; None where the file is no notebook or a text is in no cell. Raises ToolFailure where
    a text is in several."""
    try:
        first = decode(data)
    except NotText:
        return None
    text, notes = first.text, []
    for change in changes:
        sources = list(_sources(text))
        found = _find(sources, change, name)
        if not found:
            return None
        for source, how in reversed(found):
            text = text[: source.start] + _value(text, source, spliced(source.text, how.splices)) + text[source.end :]
        notes += [f"cell {', '.join(str(source.cell) for source, _ in found)}"]
        notes += [f"matched although {how.how}" for _, how in found if how.how]
    return Outcome(first.encode(text), first.text, text, tuple(notes))


def _find(sources: Sequence[Source], change: Change, name: str) -> list[tuple[Source, Plan]]:
    """The cells the change is made in: one, or all of them where every place is meant."""
    old, new = to_lf(change.old), to_lf(change.new)
    if elision(new, old):
        raise ToolFailure(f"The new text leaves code out ({elision(new, old)!r}). Write it in full.")
    found: list[tuple[Source, Plan]] = []
    for source in sources:
        try:
            found.append((source, plan(source.text, old, new, change.every)))
        except NoMatch:
            continue
        except Ambiguous as error:
            raise ToolFailure(
                f"old is in cell {source.cell} of {name} {len(error.places)} times. Add lines around it until it is "
                "the only one, or set replace_all."
            ) from None
    exact = [item for item in found if not item[1].how]
    found = exact or found
    if len(found) > 1 and (not change.every or not exact):
        cells = ", ".join(str(source.cell) for source, _ in found)
        raise ToolFailure(f"old is in several cells of {name}: {cells}. Add lines around it, or set replace_all.")
    return found


def _value(text: str, source: Source, new: str) -> str:
    """A cell's text as JSON, written as the value it replaces was: one string, or a list of lines."""
    before = text[source.start : source.end]
    ascii_only = text.isascii()
    if not before.startswith("["):
        return json.dumps(new, ensure_ascii=ascii_only)
    lines = [json.dumps(line, ensure_ascii=ascii_only) for line in re.split(r"(?<=\n)", new) if line]
    layout = re.match(r"\[(\s*)", before)
    space = layout[1] if layout else ""
    closing = re.search(r"(\s*)\]$", before)
    between = "," + space if "\n" in space else ", "
    return f"[{space}{between.join(lines)}{closing[1] if closing else ''}]" if lines else "[]"


def _sources(text: str) -> Iterator[Source]:
    """The cells' texts, in order; nothing where the JSON is no notebook."""
    try:
        spans = dict(_spans(text, 0, ()))
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for number, cell in enumerate(cells):
        source = cell.get("source") if isinstance(cell, dict) else None
        span = spans.get(("cells", number, "source"))
        if span and isinstance(source, (str, list)):
            yield Source(number + 1, source if isinstance(source, str) else "".join(map(str, source)), *span)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
Path = tuple[str | int, ...]


def _spans(text: str, at: int, path: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Where each value down to a cell's own is; the last one given is the value at `path` itself."""
    at = _skip(text, at)
    start = at
    if text[at] in "[{":
        closing, key = ("]", 0) if text[at] == "[" else ("}", "")
        at = _skip(text, at + 1)
        while text[at] != closing:
            if closing == "}":
                key, at = _DECODER.raw_decode(text, at)
                at = _skip(text, at) + 1
            for inner, span in _spans(text, at, (*path, key)):
                if len(inner) <= 3:
                    yield inner, span
                at = span[1] if inner == (*path, key) else at
            key = key + 1 if isinstance(key, int) else key
            at = _skip(text, at)
            at = _skip(text, at + 1) if text[at] == "," else at
        at += 1
    else:
        at = _DECODER.raw_decode(text, at)[1]
    yield path, (start, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
