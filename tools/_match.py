"""Where an edit's old text is in a file, and what exactly has to change there.

Everything here sees \\n line endings; tools/_edits.py brings the file's own endings back. The four ways to match, in
order, and never another: exact; trailing blanks (and a missing final newline); one uniform shift of the indentation;
typographic quotes, dashes and blanks. All but the first must have exactly one place in the file. docs/edit-policy.md
is the table of what follows from that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools._diff import opcodes

TYPOGRAPHIC = str.maketrans(
    {c: "'" for c in "\u2018\u2019\u201a\u201b\u2032"}
    | {c: '"' for c in "\u201c\u201d\u201e\u201f\u2033"}
    | {c: "-" for c in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"}
    | {c: " " for c in "\u00a0\u2007\u2009\u202f"}
)
"""One character for one, so that a place in the changed text is the same place in the file."""


@dataclass(frozen=True)
class Splice:
    """text[start:end] becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Plan:
    """The changes of one edit, in order and apart from each other; `how` says which fallback was needed, "" for none.

    `region` is the first matched region as (start, end)."""

    splices: tuple[Splice, ...]
    how: str
    region: tuple[int, int]
    places: int = 1


class NoMatch(Exception):
    """The old text is not there."""


class Ambiguous(Exception):
    """The old text is there more than once: `places` are offsets; `how` the fallback that found them, "" for none."""

    def __init__(self, places: Sequence[int], how: str = "") -> None:
        super().__init__(f"{len(places)} places")
        self.places = list(places)
        self.how = how


def plan(text: str, old: str, new: str, every: bool = False) -> Plan:
    """How to bring `new` in the place of `old` (not empty). Raises NoMatch or Ambiguous."""
    places = occurrences(text, old, apart=every)
    if len(places) > 1 and not every:
        raise Ambiguous(places)
    if places:
        splices = tuple(s for at in places for s in _exact(text, at, old, new))
        return Plan(splices, "", (places[0], places[0] + len(old)), len(places))
    for way in (_final_newline, _trailing_blanks, _shifted, _typographic):
        found = way(text, old, new)
        if found:
            return found
    raise NoMatch


def occurrences(text: str, old: str, apart: bool = False) -> list[int]:
    """Offsets of `old`, overlapping ones counted unless `apart`."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + (len(old) if apart else 1))
    return places


def _changes(
    begins: list[int], ends: list[int], old: list[str], new: list[str], same: Callable[[str], str]
) -> list[Splice]:
    """The lines that differ between `old` and `new`, as changes of the file's own lines that `old` matched: lines that
    stay keep the file's bytes. Line n of `old` is text[begins[n]:ends[n]]; `same` maps lines that count as equal."""
    out: list[Splice] = []
    for tag, a, b, c, d in opcodes([same(line) for line in old], [same(line) for line in new]):
        words = "\n".join(new[c:d])
        if tag == "replace":
            out.append(Splice(begins[a], ends[b - 1], words))
        elif tag == "delete":
            out.append(Splice(begins[a], begins[b], "") if b < len(old) else Splice(ends[a - 1], ends[b - 1], ""))
        elif tag == "insert" and a < len(old):
            out.append(Splice(begins[a], begins[a], words + "\n"))
        elif tag == "insert":
            out.append(Splice(ends[a - 1], ends[a - 1], "\n" + words))
    return out


def _exact(text: str, start: int, old: str, new: str) -> list[Splice]:
    lines = old.split("\n")
    begins, ends = _segments(text, start, len(lines), len(lines[-1]))
    return _changes(begins, ends, lines, new.split("\n"), str)


def _segments(text: str, start: int, count: int, last: int) -> tuple[list[int], list[int]]:
    """Where `count` lines from `start` on begin and end; the last has `last` characters."""
    begins, ends = [start], []
    for _ in range(count - 1):
        end = text.index("\n", begins[-1])
        ends.append(end)
        begins.append(end + 1)
    return begins, [*ends, begins[-1] + last]


def _final_newline(text: str, old: str, new: str) -> Plan | None:
    """`old` ends with a newline that the end of the file does not have: the file stays without it."""
    bare = old.removesuffix("\n")
    if bare == old or not bare or not text.endswith(bare):
        return None
    start = len(text) - len(bare)
    splices = _exact(text, start, bare, new.removesuffix("\n"))
    return Plan(tuple(splices), "the file has no final newline", (start, len(text)))


def _bare(line: str) -> str:
    return line.rstrip(" \t")


def _trailing_blanks(text: str, old: str, new: str) -> Plan | None:
    """Blanks at line ends differ, in the file or in `old`. Lines that are to change become what `new` says."""
    lines = old.split("\n")
    bare = [_bare(line) for line in lines]
    if not any(bare):
        return None
    pattern = r"[ \t]*\n".join(re.escape(line) for line in bare)
    if bare[-1] != lines[-1]:
        pattern += r"[ \t]*(?=\n|\Z)"
    found = [m.span() for m in re.finditer(pattern, text)]
    how = "blanks at line ends differ"
    if len(found) > 1:
        raise Ambiguous([start for start, _ in found], how)
    if not found:
        return None
    start, end = found[0]
    last = end - (text.rfind("\n", start, end) + 1 if len(lines) > 1 else start)
    begins, ends = _segments(text, start, len(lines), last)
    return Plan(tuple(_changes(begins, ends, lines, new.split("\n"), _bare)), how, (start, end))


def _shifted(text: str, old: str, new: str) -> Plan | None:
    """Whole lines that differ from `old` only by one and the same shift of the indentation; `new` is shifted alike."""
    lines, here = old.split("\n"), text.split("\n")
    at = _only_place(here, lines)
    if at is None:
        return None
    pairs = [(indent_of(mine), indent_of(theirs)) for mine, theirs in zip(lines, here[at:]) if mine.strip(" \t")]
    shift = shift_rule(pairs)
    wanted = _reindent(new.split("\n"), pairs[0], shift) if shift else None
    if shift is None or wanted is None:
        return None
    start = sum(len(line) + 1 for line in here[:at])
    last = 0 if lines[-1] == "" else len(here[at + len(lines) - 1])
    begins, ends = _segments(text, start, len(lines), last)
    mine = [(shift(indent_of(line)) or "") + line.lstrip(" \t") if line.strip(" \t") else line for line in lines]
    return Plan(tuple(_changes(begins, ends, mine, wanted, _bare)), "the indentation differs", (start, ends[-1]))


def _only_place(here: list[str], lines: list[str]) -> int | None:
    """The line where all of `lines` are but for blanks at their ends. Raises Ambiguous where their core, empty lines
    around it left out, is there more than once."""
    wanted = [line.strip(" \t") for line in lines]
    full = [n for n, line in enumerate(wanted) if line]
    if not full:
        return None
    first, core = full[0], wanted[full[0] : full[-1] + 1]
    bare = [line.strip(" \t") for line in here]
    found = [n for n, line in enumerate(bare) if line == core[0] and bare[n : n + len(core)] == core]
    if len(found) > 1:
        raise Ambiguous([sum(len(line) + 1 for line in here[:n]) for n in found], "the indentation differs")
    at = found[0] - first if found else -1
    body = wanted[:-1] if lines[-1] == "" else wanted
    return at if at >= 0 and at + len(lines) <= len(here) and bare[at : at + len(body)] == body else None


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


Shift = Callable[[str], "str | None"]


def shift_rule(pairs: Sequence[tuple[str, str]]) -> Shift | None:
    """The one rule that makes every first indentation its second: a prefix more, a prefix less, tabs for spaces or
    spaces for tabs; None where no single rule does."""
    mine, theirs = pairs[0]
    if theirs.endswith(mine):
        more = theirs[: len(theirs) - len(mine)]
        if all(b == more + a for a, b in pairs):
            return lambda indent: more + indent
    if mine.endswith(theirs):
        less = mine[: len(mine) - len(theirs)]
        if all(a == less + b for a, b in pairs):
            return lambda indent: indent[len(less) :] if indent.startswith(less) else None
    width = _width(pairs)
    if width:
        return lambda indent: _to_tabs(indent, width)
    width = _width([(b, a) for a, b in pairs])
    return (lambda indent: indent.replace("\t", " " * width)) if width else None


def _width(pairs: Sequence[tuple[str, str]]) -> int:
    """Spaces for one tab where the first of each pair is in spaces and the second in tabs, else 0."""
    if not all(set(a) <= {" "} and set(b) <= {"\t"} for a, b in pairs):
        return 0
    widths = {len(a) / len(b) if b else 0.5 for a, b in pairs if a or b}
    width = widths.pop() if len(widths) == 1 else 0
    return int(width) if width in (2, 3, 4, 8) else 0


def _to_tabs(indent: str, width: int) -> str:
    spaces = len(indent) - len(indent.lstrip(" "))
    return "\t" * (spaces // width) + " " * (spaces % width) + indent[spaces:]


def _reindent(new: list[str], first: tuple[str, str], shift: Shift) -> list[str] | None:
    """`new` moved as the file is. Where it already begins as deep as the file does it is taken as it is."""
    start = next((indent_of(line) for line in new if line.strip(" \t")), None)
    if start is None or (start == first[1] and start != first[0]):
        return new
    out: list[str] = []
    for line in new:
        moved = shift(indent_of(line)) if line.strip(" \t") else ""
        if moved is None:
            return None
        out.append(moved + line.lstrip(" \t") if line.strip(" \t") else line)
    return out


def _typographic(text: str, old: str, new: str) -> Plan | None:
    """Quotes, dashes and blanks that look alike. What `new` leaves as it was keeps the file's characters."""
    here, wanted = text.translate(TYPOGRAPHIC), old.translate(TYPOGRAPHIC)
    if here == text and wanted == old:
        return None
    how = "typographic quotes, dashes or blanks differ"
    places = occurrences(here, wanted)
    if len(places) > 1:
        raise Ambiguous(places, how)
    if not places:
        return None
    start = places[0]
    splices = [_trim(s, old[s.start - start : s.end - start]) for s in _exact(here, start, wanted, new)]
    return Plan(tuple(splices), how, (start, start + len(old)))


def _trim(splice: Splice, old: str) -> Splice:
    """Leaves the ends alone that the old text and the new have in common."""
    head = len(os.path.commonprefix([old, splice.new]))
    tail = len(os.path.commonprefix([old[head:][::-1], splice.new[head:][::-1]]))
    return Splice(splice.start + head, splice.end - tail, splice.new[head : len(splice.new) - tail])
