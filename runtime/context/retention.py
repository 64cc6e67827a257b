"""Retention, measured by code: what must survive a fold is taken down before it and looked for after it.

Each item must be in the view word for word or within reach by its number. What neither holds is put into the state.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transcripts.log import Entry

LAST_PROMPTS = 3
"""The person's newest messages that count as a whole."""

_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{3,80})\"")
_MARKS = re.compile(r"https?://[^\s)>\]]+|\b[0-9a-f]{7,64}\b|(?<=:)\d{2,5}\b|\bport \d{2,5}\b")
_FAILED = re.compile(r"(?m)^(?:FAILED|ERROR) (\S+::\S+)")
_MOST, _LOOK_BACK = 400, 400


@dataclass(frozen=True)
class Must:
    """Something that must survive: its kind, its words, and the message it stands in."""

    kind: str
    text: str
    seq: int


@dataclass(frozen=True)
class Retained:
    """How much survived: word for word in the view, by number, not at all."""

    total: int
    in_view: int
    by_id: int
    missing: tuple[Must, ...] = ()
    away: tuple[Must, ...] = ()
    """What is not in the view, by number or missing."""


def must_keep(facts: Mapping[str, Any], messages: Sequence[Entry]) -> list[Must]:
    """What must survive a fold of these messages; each thing once, the newest mention of it."""
    found: dict[tuple[str, str], Must] = {}

    def keep(kind: str, text: str, seq: int) -> None:
        if text:
            found[(kind, text)] = Must(kind, text, seq)

    for seq, words in facts["constraints"]:
        keep("constraint", words, seq)
    prompts = [e for e in messages if e.kind == "user" and e.record.source != "harness"]
    for entry in prompts[-LAST_PROMPTS:]:
        keep("prompt", entry.record.text[:_MOST], entry.seq)
    for entry in prompts:
        for mark in _identifiers(entry.record.text[:20_000]):
            keep("identifier", mark, entry.seq)
    for path, known in facts["files"].items():
        keep("written" if known["wrote"] else "read", path, known["wrote"] or known["seq"])
    for command in facts["commands"].values():
        keep("command", command["command"], command["seq"])
    for item in facts["todo"]:
        if isinstance(item, dict) and item.get("status") != "done":
            keep("todo", str(item.get("text", "")), facts["upto"])
    for name, seq in _failing(messages):
        keep("failing test", name, seq)
    return list(found.values())


def _identifiers(text: str) -> Iterable[str]:
    yield from (m[1] or m[2] for m in _QUOTED.finditer(text))
    yield from (m[0] for m in _MARKS.finditer(text))


def _failing(messages: Sequence[Entry]) -> list[tuple[str, int]]:
    """Tests that failed in the newest result that names any."""
    for entry in reversed(messages[-_LOOK_BACK:]):
        if entry.kind == "tool_result" and (names := _FAILED.findall(entry.record.text)):
            return [(name, entry.seq) for name in names[:20]]
    return []


def measure(musts: Iterable[Must], shown: str, numbers: Container[int]) -> Retained:
    """Looks each item up in the text of the view, then among the numbers that recall can reach."""
    items = list(musts)
    away = [m for m in items if m.text not in shown]
    missing = tuple(m for m in away if m.seq not in numbers)
    return Retained(len(items), len(items) - len(away), len(away) - len(missing), missing, tuple(away))


def reminder(away: Sequence[Must], room: int) -> str:
    """Short things that are out of view, as one line of at most `room` characters, the newest first."""
    line = ""
    for must in sorted(away, key=lambda m: -m.seq):
        if must.kind in ("prompt", "constraint") or len(must.text) > 120:
            continue
        part = f"{must.kind} {must.text} (#{must.seq})"
        if len(line) + len(part) + 2 > room:
            break
        line = f"{line}; {part}" if line else f"also: {part}"
    return line


def text_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """All words of a view."""
    parts: list[str] = []
    for message in messages:
        content = message.get("content")
        parts += [content] if isinstance(content, str) else [p.get("text", "") for p in content or ()]
        parts += [c["function"]["arguments"] for c in message.get("tool_calls", ())]
    return "\n".join(parts)
