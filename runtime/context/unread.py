"""A past of very many windows that no fold has touched (an import, a session of a far larger window): its oldest steps
are left out by the sizes of their lines, unread, so that the folds that read have no more before them than they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from runtime.context.facts import empty_facts, gather
from transcripts.log import Entry
from transcripts.records import Checkpoint

if TYPE_CHECKING:
    from runtime.context.engine import ContextEngine

MUCH = 16_000_000
"""Bytes of log lines from which on it is worth it: reading and weighing them takes a second and some 150 MB."""
_WINDOWS = 4
"""Windows of the newest lines that are left to the folds that read."""


def fold_unread(engine: ContextEngine) -> Checkpoint | None:
    """Commits such a fold where one is due; None where it is not. The person's words stay, as far as they have room;
    what is left out can be recalled like all else."""
    active = engine.store.active_checkpoint
    start = engine.history.index(active.upto + 1) if active else 0
    size = engine.history.bytes_from(start)
    room = int(_WINDOWS * engine.window * engine.settings.chars_per_token)
    if size < max(MUCH, 4 * room):
        return None
    messages = engine.history.messages[start:]
    steps = list(_steps(messages[: _cut(messages, room)]))
    gone = _gone(steps, room // 2, engine.pinned)
    if not gone:
        return None
    checkpoint = engine.store.create_checkpoint(**_values(engine, active, gone, size))
    engine.append(checkpoint)
    return checkpoint


def _cut(messages: Sequence[Entry], room: int) -> int:
    """Where the newest messages begin that have room, at the head of a step."""
    at = len(messages)
    while at > 0 and room > 0:
        at -= 1
        room -= messages[at].length
    while at < len(messages) and messages[at].kind == "tool_result":
        at += 1
    return at


def _steps(messages: Sequence[Entry]) -> Iterator[list[Entry]]:
    """An answer with the results behind it, or one message of the user's role, told by kind alone."""
    step: list[Entry] = []
    for entry in messages:
        if entry.kind != "tool_result" and step:
            yield step
            step = []
        step.append(entry)
    if step:
        yield step


def _gone(steps: Sequence[list[Entry]], room: int, pinned: frozenset[int]) -> list[list[Entry]]:
    """The steps that leave: all but pinned ones, and but the person's words, the newest first, that have room."""
    out: list[list[Entry]] = []
    for step in reversed(steps):
        stays = any(e.seq in pinned for e in step)
        if step[0].kind == "user" and not stays:
            room -= step[0].length
            stays = room > 0
        if not stays:
            out.append(step)
    return out[::-1]


def _values(engine: ContextEngine, active: Checkpoint | None, gone: list[list[Entry]], size: int) -> dict[str, Any]:
    """The checkpoint: the one before, if there is one, and what leaves now, of which only the person's words are
    read."""
    base = {f.name: getattr(active, f.name) for f in fields(active) if f.name != "id"} if active else {}
    facts = gather((active.meta.get("facts") if active else None) or empty_facts(), _said(engine, gone))
    last = gone[-1][-1].seq
    left = size - sum(e.length for step in gone for e in step)
    per_token = engine.settings.chars_per_token
    return {
        **base,
        "upto": last,
        "hidden": {**base.get("hidden", {}), **_spans(gone, engine)},
        "cause": "a past too large to be read",
        "strategies": ("sliding_window",),
        "tokens_before": int(size / per_token),
        "tokens_after": int(left / per_token),
        "meta": {"facts": {**facts, "upto": max(facts["upto"], last)}},
    }


def _said(engine: ContextEngine, gone: list[list[Entry]]) -> Iterator[Entry]:
    first, last = gone[0][0].seq, gone[-1][-1].seq
    messages = engine.history.messages
    return (e for e in messages[engine.history.index(first) : engine.history.index(last + 1)] if e.kind == "user")


def _spans(gone: list[list[Entry]], engine: ContextEngine) -> dict[str, str]:
    """The numbers that leave, neighbours as one span."""
    spans: list[list[int]] = []
    place = -1
    for step in gone:
        here = engine.history.index(step[0].seq)
        if here == place:
            spans[-1][1] = step[-1].seq
        else:
            spans.append([step[0].seq, step[-1].seq])
        place = here + len(step)
    return {f"{a}-{b}": "sliding_window" for a, b in spans}
