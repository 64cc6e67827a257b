"""Retention, measured by code: what must survive a fold is taken down before it and looked for after it.

Each item must be in the view word for word or within reach by its number.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from runtime.context.rounds import PERSON
from transcripts.log import Entry

LAST_PROMPTS = 3
"""The person's newest messages that count as a whole."""

_MOST = 400
"""Characters of a prompt that are looked for."""


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


def must_keep(facts: Mapping[str, Any], messages: Sequence[Entry]) -> list[Must]:
    """What must survive a fold of these messages; each thing once, the newest mention of it."""
    found: dict[tuple[str, str], Must] = {}

    def keep(kind: str, text: str, seq: int) -> None:
        if text:
            found[(kind, text)] = Must(kind, text, seq)

    for seq, words in facts["constraints"]:
        keep("constraint", words, seq)
    prompts = (e for e in reversed(messages) if e.kind == "user" and e.record.source in PERSON)
    for entry in reversed(list(islice(prompts, LAST_PROMPTS))):
        keep("prompt", entry.record.text[:_MOST], entry.seq)
    for seq, name in facts["named"]:
        keep("identifier", name, seq)
    for path, known in facts["files"].items():
        keep("written" if known["wrote"] else "read", path, known["wrote"] or known["seq"])
    for command in facts["commands"].values():
        keep("command", command["command"], command["seq"])
    for item in facts["todo"]:
        if isinstance(item, dict) and item.get("status") != "done":
            keep("todo", str(item.get("text", "")), facts["upto"])
    for name, known in facts["failing"].items():
        keep("failing test", name, known["seq"])
    return list(found.values())


def measure(musts: Iterable[Must], shown: str, numbers: Container[int]) -> Retained:
    """Looks each item up in the text of the view, then among the numbers that recall can reach."""
    items = list(musts)
    away = [m for m in items if m.text not in shown]
    missing = tuple(m for m in away if m.seq not in numbers)
    return Retained(len(items), len(items) - len(away), len(away) - len(missing), missing)


def text_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """All words of a view."""
    parts: list[str] = []
    for message in messages:
        content = message.get("content")
        parts += [content] if isinstance(content, str) else [p.get("text", "") for p in content or ()]
        parts += [c["function"]["arguments"] for c in message.get("tool_calls", ())]
    return "\n".join(parts)
