"""What the model has seen of a file, so that nothing it never saw is overwritten and no stale picture is edited."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tools._diff import unified
from tools._files import digest
from tools._text import NotText, decode, plain
from tools.base import ToolContext

_KEEP_FILE, _KEEP_ALL = 400_000, 8_000_000
"""Bytes kept of one file and of all together, to say what changed. Beyond it a change is stated without its diff."""

_MAX_DIFF = 4_000
"""Characters of a diff in a refusal."""


@dataclass
class _Memory:
    known: set[str] = field(default_factory=set)
    """Files seen in this run of the program; of others only the hash is known, from the log of a resumed session."""
    copies: dict[str, bytes] = field(default_factory=dict)
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Lines of a file not shown yet, as (first, last); a file without an entry was seen whole."""


def _memory(ctx: ToolContext) -> _Memory:
    return ctx.state.setdefault("seen", _Memory())


def remember(ctx: ToolContext, path: Path, data: bytes) -> str:
    """Notes that the model knows these bytes: it read them, or edited what it knew. Returns their SHA."""
    memory, key, sha = _memory(ctx), str(path), digest(data)
    memory.known.add(key)
    memory.copies.pop(key, None)
    if len(data) <= _KEEP_FILE:
        memory.copies[key] = data
        while sum(map(len, memory.copies.values())) > _KEEP_ALL:
            memory.copies.pop(next(iter(memory.copies)))
    ctx.seen[key] = sha
    return sha


def remember_part(
    ctx: ToolContext, path: Path, sha: str, data: bytes | None, first: int, last: int, total: int
) -> None:
    """Notes that lines first..last (from 1, inclusive) of `total` were shown. `data` None: too large to keep."""
    memory, key = _memory(ctx), str(path)
    known = ctx.seen.get(key) == sha
    gaps = memory.gaps.get(key, []) if known else [(1, total)]
    left = [piece for a, b in gaps for piece in ((a, min(b, first - 1)), (max(a, last + 1), b)) if piece[0] <= piece[1]]
    memory.gaps.pop(key, None)
    if left:
        memory.gaps[key] = left
    memory.known.add(key)
    if data is not None:
        remember(ctx, path, data)
    ctx.seen[key] = sha


def remember_whole(ctx: ToolContext, path: Path, data: bytes) -> str:
    """Like remember, and every line counts as seen: the model wrote the file."""
    _memory(ctx).gaps.pop(str(path), None)
    return remember(ctx, path, data)


def forget(ctx: ToolContext, path: Path) -> None:
    """The file is gone."""
    memory, key = _memory(ctx), str(path)
    memory.known.discard(key)
    for table in (ctx.seen, memory.copies, memory.gaps):
        table.pop(key, None)


def state(ctx: ToolContext, path: Path, data: bytes) -> Literal["unread", "part", "earlier", "same", "stale"]:
    """How the model's picture of a file stands to the bytes on disk; `earlier`: the same, but it was seen before the
    session was resumed, and nobody knows how much of it."""
    sha = ctx.seen.get(str(path))
    if not sha:
        return "unread"
    if sha != digest(data):
        return "stale"
    if str(path) not in _memory(ctx).known:
        return "earlier"
    return "part" if str(path) in _memory(ctx).gaps else "same"


def gaps(ctx: ToolContext, path: Path) -> str:
    """The lines not shown yet, in words."""
    return ", ".join(f"{a}-{b}" for a, b in _memory(ctx).gaps.get(str(path), []))


def what_changed(ctx: ToolContext, path: Path, name: str, data: bytes) -> str:
    """The refusal of a stale file: what is different on disk from what the model last saw."""
    words = f"{name} has changed on disk since you last saw it, so nothing was written. Read it again first."
    old = _memory(ctx).copies.get(str(path))
    if old is None:
        return words
    try:
        diff = plain(unified(name, decode(old).text, decode(data).text))
    except NotText:
        return words
    cut = diff[:_MAX_DIFF] + ("\n…" if len(diff) > _MAX_DIFF else "")
    return f"{words} What changed:\n{cut}"
