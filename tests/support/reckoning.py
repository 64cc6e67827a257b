"""What each request must have shown, reckoned from the bytes of the log alone: written apart from the projection, so
that a fault there is not a fault here as well."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = dict[str, Any]


@dataclass
class Reckoned:
    """One request for a step: its record, the fold it was made under (None: none), how often the session had been
    rewound, every message that counted then."""

    request: Line
    fold: Line | None
    rewound: int = 0
    messages: list[Line] = field(default_factory=list)

    def fate(self, line: Line) -> str:
        """left out, other words or whole."""
        fold = self.fold or {}
        for span in fold.get("hidden", {}):
            first, last = map(int, span.split("-"))
            if first <= line["seq"] <= last:
                return "left out"
        return "other words" if str(line["seq"]) in fold.get("texts", {}) else "whole"

    def shown(self) -> Iterator[tuple[str, Any]]:
        """What the request shows in order: (role, words) and ("call", (name, arguments))."""
        fold = self.fold or {}
        if fold:
            yield "user", [_whole(fold.get("state", "")), _whole(fold.get("notes", ""))]
        answers = {m["call_id"]: m for m in self.messages if m["kind"] == "tool_result"}
        for line in self.messages:
            if line["kind"] == "tool_result" or self.fate(line) == "left out":
                continue
            yield {"user": "user", "assistant": "assistant"}[line["kind"]], [self._words(line)]
            for call in line.get("calls", ()):
                key = f"{line['seq']}:{call['id']}"
                yield "call", (call["name"], fold.get("args", {}).get(key, call.get("arguments", "{}")))
            for call in line.get("calls", ()):
                yield "tool", [self._words(answers[call["id"]])]

    def _words(self, line: Line) -> str:
        return _whole((self.fold or {}).get("texts", {}).get(str(line["seq"]), line["text"]))


def lines_of(path: Path) -> list[Line]:
    """The records of a log."""
    return [json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw.strip()]


def reckon(lines: list[Line]) -> Iterator[Reckoned]:
    """Each request for a step, in order."""
    messages: list[Line] = []
    folds: list[Line] = []
    rewound = 0
    for line in lines:
        kind = line["kind"]
        if kind in ("user", "assistant", "tool_result"):
            messages.append(line)
        elif kind == "rewind":
            rewound += 1
            messages = [m for m in messages if m["seq"] <= line["to"]]
            folds = [f for f in folds if f["upto"] <= line["to"]]
        elif kind == "checkpoint":
            folds.append(line)
        elif kind == "unfold":
            folds = [f for f in folds if f["id"] != line["checkpoint"]]
        elif kind == "request" and line.get("purpose", "step") == "step":
            yield Reckoned(line, folds[-1] if folds else None, rewound, list(messages))


def sent(body: dict[str, Any]) -> str:
    """The hash of what a request shows, as the log notes it."""
    system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
    sha = hashlib.sha256()
    for message in body["messages"]:
        if message["role"] != "system":
            sha.update(_json(message) + b",")
    sha.update(_json(system) + _json(body.get("tools", [])))
    return sha.hexdigest()


def disagreements(reckoned: Reckoned, body: dict[str, Any]) -> Iterator[str]:
    """Where a request that was sent is not what its log says it is."""
    if sent(body) != reckoned.request["view"]:
        yield "the hash of what was sent is not the one that is noted"
    rest, at = list(_flat([m for m in body["messages"] if m["role"] != "system"])), 0
    for role, words in reckoned.shown():
        at = _found(rest, at, role, words)
        if at < 0:
            yield f"not shown, or not in its place: {role} {str(words)[:200]}"
            return


def _found(rest: list[tuple[str, Any]], at: int, role: str, words: Any) -> int:
    """Where in `rest` the next thing may stand, once this one is found; -1 where it is not there."""
    for n in range(at, len(rest)):
        here, said = rest[n]
        if here != role:
            if role in ("call", "tool") or here in ("call", "tool"):
                return -1
            continue
        if role == "call":
            return n + 1 if said == words else -1
        if all(_blank(w) or w in said for w in words):
            return n if role == "user" else n + 1
        if role != "user":
            return -1
    return -1


def _whole(text: str) -> str:
    """The text with a sign in the place of halves of characters, which nothing can send."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _blank(words: str) -> bool:
    return not words.strip()


def _flat(wire: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for message in wire:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "\n\n".join(part.get("text", "") for part in content)
        yield message["role"], content
        for call in message.get("tool_calls", ()):
            yield "call", (call["function"]["name"], call["function"]["arguments"])


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
