"""The patch format of apply_patch: reading it, and placing its chunks in a text.

*** Begin Patch
*** Add File: PATH          then lines that begin with +
*** Delete File: PATH
*** Update File: PATH       optionally *** Move to: PATH; then chunks
@@ a line above             where to look from; may be empty, may come more than once, may be missing at first
 kept / -removed / +added
*** End of File             the chunk is at the end
*** End Patch
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools._match import TYPOGRAPHIC, Splice, indent_of, shift_rule
from tools.base import ToolFailure


@dataclass
class Chunk:
    """One place of a file: `lines` are (sign, text) with the signs space, - and +; `above` where to look from."""

    above: list[str] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for sign, text in self.lines if sign != "+"]


@dataclass
class Step:
    """What is done to one file: `kind` add, delete or update; `added` the lines of a new file."""

    kind: str
    path: str
    move: str = ""
    added: list[str] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)


_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)")


def parse(patch: str) -> list[Step]:
    """The steps of a patch. Raises ToolFailure that says which line is wrong."""
    lines = _body(patch)
    steps: list[Step] = []
    for number, line in enumerate(lines, 2):
        header = _HEADER.fullmatch(line.strip())
        if header:
            steps.append(Step(header[1].lower(), header[2].strip()))
        elif not steps:
            raise ToolFailure(
                f"Line {number} of the patch: {line!r} is no file header. Use '*** Add File: PATH', "
                "'*** Delete File: PATH' or '*** Update File: PATH'."
            )
        else:
            _line(steps[-1], line, number)
    if not steps:
        raise ToolFailure("The patch changes nothing.")
    for step in steps:
        _check(step)
    return steps


def named(patch: str) -> list[str]:
    """The paths a patch names, in order; never raises."""
    return [path.strip() for path in re.findall(r"(?m)^\s*\*\*\* (?:(?:Add|Delete|Update) File|Move to): (.+)$", patch)]


def _body(patch: str) -> list[str]:
    """The lines between the markers; a shell's here-document round them is taken off."""
    lines = patch.replace("\r\n", "\n").strip().split("\n")
    opening = re.fullmatch(r"(?:apply_patch\s+)?<<\s*['\"]?(\w+)['\"]?", lines[0].strip())
    if opening and len(lines) > 1:
        lines = lines[1:-1] if lines[-1].strip() == opening[1] else lines[1:]
    if lines[0].strip() != "*** Begin Patch":
        raise ToolFailure("The first line of the patch must be '*** Begin Patch'.")
    if lines[-1].strip() != "*** End Patch":
        raise ToolFailure("The last line of the patch must be '*** End Patch'.")
    return lines[1:-1]


def _line(step: Step, line: str, number: int) -> None:
    if step.kind == "add":
        if not line.startswith("+"):
            raise ToolFailure(f"Line {number} of the patch: every line of a new file must begin with +, not {line!r}.")
        step.added.append(line[1:])
    elif step.kind == "delete":
        if line.strip():
            raise ToolFailure(f"Line {number} of the patch: nothing may follow a deleted file's header, not {line!r}.")
    elif line.strip().startswith("*** Move to: "):
        step.move = line.strip().removeprefix("*** Move to: ").strip()
    else:
        _chunk_line(step, line, number)


def _chunk_line(step: Step, line: str, number: int) -> None:
    if line.startswith("@@"):
        _anchor(step, line[2:].strip())
    elif line.strip() == "*** End of File":
        if not step.chunks:
            step.chunks.append(Chunk())
        step.chunks[-1].at_end = True
    elif line == "" or line[0] in " +-":
        if not step.chunks or step.chunks[-1].at_end and line:
            step.chunks.append(Chunk())
        if not step.chunks[-1].at_end:
            step.chunks[-1].lines.append((line[:1] or " ", line[1:]))
    else:
        raise ToolFailure(
            f"Line {number} of the patch: Unexpected line found in update hunk: {line!r}. Every line must begin with "
            "a blank (kept), + (added) or - (removed)."
        )


def _anchor(step: Step, words: str) -> None:
    numbers = _NUMBERS.fullmatch(words)
    words = numbers[1] if numbers else words
    if not step.chunks or step.chunks[-1].lines or step.chunks[-1].at_end or not step.chunks[-1].above:
        step.chunks.append(Chunk())
    if words:
        step.chunks[-1].above.append(words)


def _check(step: Step) -> None:
    if step.kind != "update":
        return
    step.chunks = [c for n, c in enumerate(step.chunks) if c.lines or c.at_end or n == len(step.chunks) - 1]
    if any(not c.lines for c in step.chunks):
        raise ToolFailure(f"{step.path}: Update hunk does not contain any lines.")
    if not step.chunks and not step.move:
        raise ToolFailure(f"{step.path}: the update is empty.")


def place(text: str, chunks: Sequence[Chunk], name: str) -> list[Splice]:
    """The changes of a text (\\n endings) that the chunks make, in order. Raises ToolFailure where one has no place.

    A last line without a newline stays so unless the patch writes it: lines that are added are whole lines."""
    lines = text.split("\n")
    closed = lines[-1] == ""
    if closed:
        lines.pop()
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    out: list[Splice] = []
    cursor = 0
    for chunk in chunks:
        at, chunk_lines = _find(lines, chunk, cursor, name)
        out += _splices(starts, lines, at, chunk_lines, closed)
        if chunk.old():
            cursor = at + sum(sign != "+" for sign, _ in chunk_lines)
    out.sort(key=lambda s: (s.start, s.end))
    if any(b.start < a.end for a, b in zip(out, out[1:])):
        raise ToolFailure(f"{name}: two chunks of the patch change the same lines.")
    return out


def _find(lines: list[str], chunk: Chunk, cursor: int, name: str) -> tuple[int, list[tuple[str, str]]]:
    """The line a chunk begins at, and its lines with the file's indentation."""
    for anchor in chunk.above:
        cursor = _anchored(lines, anchor, cursor, name)
    old = chunk.old()
    if not old:
        return len(lines) if chunk.at_end or not chunk.above else cursor, chunk.lines
    found = _seek(lines, old, cursor, chunk.at_end)
    if found is None and old[-1] == "" and len(old) > 1:
        return _find(lines, Chunk([], _without_last_blank(chunk.lines), chunk.at_end), cursor, name)
    if found is None:
        shown = "\n".join(old[:20])
        raise ToolFailure(f"{name}: Failed to find expected lines:\n{shown}")
    return found, _moved(chunk.lines, [(o, lines[found + n]) for n, o in enumerate(old)], name)


def _without_last_blank(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A blank line that only ends the chunk is none of the file's."""
    last = max(n for n, (sign, _) in enumerate(lines) if sign != "+")
    return lines[:last] + lines[last + 1 :]


def _anchored(lines: list[str], anchor: str, cursor: int, name: str) -> int:
    for same in _LEVELS:
        wanted = same(anchor)
        for n in range(cursor, len(lines)):
            if same(lines[n]) == wanted:
                return n + 1
    raise ToolFailure(f"{name}: Failed to find the line {anchor!r} that a chunk is said to be under.")


_LEVELS = (str, str.rstrip, str.strip, lambda line: line.strip().translate(TYPOGRAPHIC))
"""How far two lines may differ, in order: not at all, at their end, at both ends, in typographic signs."""


def _seek(lines: list[str], old: list[str], cursor: int, at_end: bool) -> int | None:
    """The first place from `cursor` on; one that is not exact must be the only one."""
    last = len(lines) - len(old)
    for level, same in enumerate(_LEVELS):
        here, wanted = [same(line) for line in lines], [same(line) for line in old]
        if at_end and last >= cursor and here[last:] == wanted:
            return last
        found = [n for n in range(cursor, last + 1) if here[n] == wanted[0] and here[n : n + len(old)] == wanted]
        if found and (level == 0 or len(found) == 1):
            return found[0]
        if found:
            return None
    return None


def _moved(lines: list[tuple[str, str]], pairs: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """The added lines as deep as the file is, where the chunk was written less or more deep."""
    depths = [(indent_of(mine), indent_of(theirs)) for mine, theirs in pairs if mine.strip()]
    if all(a == b for a, b in depths):
        return lines
    shift = shift_rule(depths)
    out: list[tuple[str, str]] = []
    for sign, text in lines:
        deep = shift(indent_of(text)) if shift and sign == "+" and text.strip() else ""
        if shift is None or deep is None:
            raise ToolFailure(f"{name}: the lines of a chunk are there, but indented otherwise. Copy them exactly.")
        out.append((sign, deep + text.lstrip(" \t") if deep else text))
    return out


def _splices(starts: list[int], lines: list[str], at: int, chunk: list[tuple[str, str]], closed: bool) -> list[Splice]:
    """Runs of removed and added lines as changes; kept lines keep the file's bytes."""
    out: list[Splice] = []
    first, added = at, []
    for sign, text in [*chunk, (" ", "")]:
        if sign == "+":
            added.append(text)
        elif sign == "-":
            at += 1
        else:
            if added or at > first:
                out.append(_splice(starts, lines, first, at, added, closed))
            at += 1
            first, added = at, []
    return out


def _splice(starts: list[int], lines: list[str], first: int, stop: int, added: list[str], closed: bool) -> Splice:
    """One run. What is added are whole lines, each with its newline."""
    end = starts[stop] if closed or stop < len(lines) else max(0, starts[-1] - 1)
    words = "".join(f"{line}\n" for line in added)
    if first == len(lines) and lines and not closed:
        return Splice(end, end, "\n" + words)
    return Splice(starts[first] if first < len(lines) else end, end, words)
