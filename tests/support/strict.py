"""What the strictest provider we know of would refuse in a request: written apart from the product's own check."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def refusals(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """All that is wrong with the messages of a request (the system prompt apart); [] where any provider takes it."""
    out: list[str] = []
    if not messages:
        return ["no message"]
    if messages[0]["role"] != "user":
        out.append(f"it begins with {messages[0]['role']}")
    if messages[-1]["role"] not in ("user", "tool"):
        out.append("it ends with an answer")
    ids: set[str] = set()
    waiting: list[str] = []
    for n, message in enumerate(messages):
        before = messages[n - 1] if n else {"role": ""}
        out += [f"{n}: {what}" for what in _one(message, before, waiting)]
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"]) if message["tool_call_id"] in waiting else None
            continue
        out += [f"{n}: {call} has no result" for call in waiting]
        waiting = [c["id"] for c in message.get("tool_calls", ())]
        out += [f"{n}: the id {c} is there twice" for c in waiting if c in ids or waiting.count(c) > 1]
        ids.update(waiting)
    return out + [f"{call} has no result at the end" for call in waiting]


def _one(message: Mapping[str, Any], before: Mapping[str, Any], waiting: list[str]) -> list[str]:
    role, content = message["role"], message.get("content")
    out: list[str] = []
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        out.append("a lone surrogate")
    if role == "user":
        # Pictures after words may be a message of their own: joining them would change what was sent before.
        if before["role"] == "user" and isinstance(content, str):
            out.append("two texts of the user's in a row")
        if not _says(content):
            out.append("an empty user message")
    elif role == "assistant":
        if before["role"] == "assistant":
            out.append("two answers in a row")
        if content is not None and not str(content).strip():
            out.append("an answer of blanks")
        if content is None and not message.get("tool_calls"):
            out.append("an empty answer")
        out += [what for call in message.get("tool_calls", ()) for what in _call(call)]
    elif role == "tool":
        if message.get("tool_call_id") not in waiting:
            out.append("a result of no open call")
        if not _says(content):
            out.append("an empty result")
    else:
        out.append(f"the role {role}")
    return out


def _says(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(p["type"] != "text" or p["text"].strip() for p in content)


def _call(call: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if not call.get("id") or call.get("type") != "function":
        out.append("a call without id or type")
    if not NAME.fullmatch(call["function"]["name"]):
        out.append(f"a call of {call['function']['name']!r}")
    try:
        fine = isinstance(json.loads(call["function"]["arguments"]), dict)
        json.dumps(json.loads(call["function"]["arguments"]), ensure_ascii=False).encode()
    except (ValueError, UnicodeEncodeError):
        fine = False
    return out if fine else [*out, "arguments that are no JSON object"]
