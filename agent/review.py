"""Reviewing a change piece by piece: which hunks are taken, which are not, what the model is told of it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools._changed import changed
from tools._files import remove, shown
from tools._files import replace as replace_file
from tools._seen import remember
from tools.base import Tool, ToolContext, ToolFailure, ToolOutput

CONTEXT = 3
"""Lines shown around a hunk; changes closer than twice as many are one hunk."""

Contents = Mapping[Path, tuple[bytes | None, bytes | None]]
"""What each file of a change holds before and after it; None: there is no file."""


@dataclass(frozen=True)
class Hunk:
    """Changes that stand together: lines `start` to `end` (from 0, exclusive) of the old file become `new`. `text` is
    the hunk as a unified diff with the file's name."""

    path: Path
    start: int
    end: int
    new: tuple[bytes, ...]
    text: str


@dataclass(frozen=True)
class Choice:
    """What became of a hunk: `new` are the lines that take the place of the old ones (None: the old ones stay);
    `edited`: the person wrote them."""

    hunk: Hunk
    new: tuple[bytes, ...] | None
    edited: bool = False


@dataclass(frozen=True)
class Review:
    """A change as the person left it: the files' new contents and the words for the model."""

    contents: Contents
    words: str = field(default="")


def contents_of(tool: Tool, ctx: ToolContext, args: Mapping[str, object]) -> Contents:
    """What a call would make of its files; empty where that is not known, would be refused, or is no text."""
    if tool.after is None:
        return {}
    try:
        after = tool.after(ctx, args)
        contents = {p: (p.read_bytes() if os.path.isfile(p) else None, data) for p, data in after.items()}
    except (ToolFailure, OSError, ValueError, KeyError, TypeError):
        return {}
    return contents if reviewable(contents) else {}


def reviewable(contents: Contents) -> bool:
    """Whether a change can be looked at hunk by hunk: text, in files that are there before and after, or new ones."""
    return bool(contents) and all(
        after is not None and b"\0" not in after[:8000] and b"\0" not in (before or b"")[:8000]
        for before, after in contents.values()
    )


def hunks_of(contents: Contents, ctx: ToolContext) -> list[Hunk]:
    """The hunks of a change, file by file, top down."""
    return [hunk for path, (before, after) in contents.items() for hunk in _hunks(path, before, after, ctx)]


def _hunks(path: Path, before: bytes | None, after: bytes | None, ctx: ToolContext) -> list[Hunk]:
    old, new = _lines(before), _lines(after)
    found: list[Hunk] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        changes = [op for op in group if op[0] != "equal"]
        start, end = changes[0][1], changes[-1][2]
        text = _told(shown(ctx, path), old, new, group)
        found.append(Hunk(path, start, end, tuple(new[changes[0][3] : changes[-1][4]]), text))
    return found


def _lines(data: bytes | None) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + [r for r in data.split(b"\n")[-1:] if r] if data else []


def _told(
    name: str, old: Sequence[bytes], new: Sequence[bytes], group: Sequence[tuple[str, int, int, int, int]]
) -> str:
    first, last = group[0], group[-1]
    head = f"--- a/{name}\n+++ b/{name}\n"
    head += f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@\n"
    out: list[str] = []
    for kind, a, b, c, d in group:
        if kind == "equal":
            out += [_line(" ", line) for line in old[a:b]]
        else:
            out += [_line("-", line) for line in old[a:b]] + [_line("+", line) for line in new[c:d]]
    return head + "".join(out)


def _line(sign: str, line: bytes) -> str:
    return sign + line.decode("utf-8", "replace").rstrip("\r\n") + "\n"


def edited(hunk: Hunk, text: str) -> Choice:
    """A hunk whose new lines the person wrote; they end as the lines of the hunk did."""
    ending = b"\r\n" if hunk.new and hunk.new[0].endswith(b"\r\n") else b"\n"
    lines = tuple(line.encode() + ending for line in text.splitlines())
    return Choice(hunk, lines, edited=True)


def concluded(contents: Contents, choices: Sequence[Choice], reason: str, ctx: ToolContext) -> Review:
    """The change that is left of it, and what the model is told: what was applied, what was not, and why."""
    out: dict[Path, tuple[bytes | None, bytes | None]] = {}
    for path, (before, _) in contents.items():
        after = _merged(before, [c for c in choices if c.hunk.path == path])
        if before is not None or any(c.new is not None for c in choices if c.hunk.path == path):
            out[path] = (before, after)
    return Review(out, _words(choices, reason))


def _merged(before: bytes | None, choices: Sequence[Choice]) -> bytes:
    lines = _lines(before)
    for choice in sorted(choices, key=lambda c: c.hunk.start, reverse=True):
        if choice.new is not None:
            lines[choice.hunk.start : choice.hunk.end] = choice.new
    return b"".join(lines)


def _words(choices: Sequence[Choice], reason: str) -> str:
    taken = [c for c in choices if c.new is not None]
    own = [c for c in choices if c.edited]
    lines = [f"The person reviewed this change: {len(taken)} of {len(choices)} hunks were applied."]
    if own:
        lines.append("They wrote these parts themselves; the file holds their words, not yours:")
        lines += [c.hunk.text.rstrip("\n") for c in own]
    left = [c for c in choices if c.new is None]
    if left:
        lines.append("They did NOT apply these hunks; the file is unchanged there:")
        lines += [c.hunk.text.rstrip("\n") for c in left]
    if reason:
        lines.append(f"They said: {reason}")
    return "\n".join(lines)


async def apply(review: Review, ctx: ToolContext) -> ToolOutput:
    """Writes a reviewed change, all of it or nothing, and says what was done in the place of the tool."""
    written: list[tuple[Path, bytes | None, bytes]] = []
    try:
        for path, (before, after) in review.contents.items():
            if after is not None and after != before:
                replace_file(path, after, before)
                written.append((path, before, after))
    except (OSError, ToolFailure):
        for path, before, after in written:
            if before is None:
                remove(path)
            else:
                replace_file(path, before, after)
        raise
    outputs = [await changed(ctx, path, before, after, "") for path, before, after in written]
    for path, _, after in written:
        remember(ctx, path, after)
    problems = [o.text for o in outputs if o.text]
    meta = {**(outputs[0].meta if outputs else {}), "diff": "".join(str(o.meta.get("diff", "")) for o in outputs)}
    return ToolOutput("\n".join([review.words, *problems]), meta=meta)
