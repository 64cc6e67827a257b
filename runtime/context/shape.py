"""Shape: what the strictest provider refuses, checked before a request is sent instead of after a 400."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def problems(messages: Sequence[Mapping[str, Any]], start: int = 0) -> list[str]:
    """What is wrong with wire messages from number `start` on, which must not stand between a call and its results.

    Calls are answered exactly once, directly after them; ids are there and unique in their message; arguments are a
    JSON object; nobody says nothing; no two texts of the user's role in a row (pictures after a text are a message of
    their own, for joining them would change bytes already sent); no lone surrogate.
    """
    out: list[str] = []
    waiting: dict[str, None] = {}
    for n in range(start, len(messages)):
        message = messages[n]
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                out.append(f"message {n}: a result that answers no open call")
            waiting.pop(str(message.get("tool_call_id")), None)
        else:
            out += [f"message {n}: no result for {call} before it" for call in waiting]
            waiting = {}
        out += [f"message {n}: {what}" for what in _message(message, messages[n - 1] if n else {})]
        for call in message.get("tool_calls") or ():
            waiting[str(call.get("id"))] = None
    out += [f"no result for {call} at the end" for call in waiting]
    return out


def _message(message: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    role, content = message.get("role"), message.get("content")
    out: list[str] = []
    if role not in ("user", "assistant", "tool"):
        out.append(f"the role {role!r}")
    if role == "user" and before.get("role") == "user" and isinstance(content, str):
        out.append("two messages of the user's role in a row")
    if role in ("user", "tool") and not content:
        out.append(f"an empty {role} message")
    if role == "assistant" and not content and not message.get("tool_calls"):
        out.append("an empty answer")
    texts = [content] if isinstance(content, str) else [p.get("text", "") for p in content or ()]
    if any(not t.isascii() and _SURROGATE.search(t) for t in texts):
        out.append("a lone surrogate")
    return out + _calls(message.get("tool_calls") or ())


def _calls(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    ids = [c.get("id") for c in calls]
    out = ["an id that is missing or there twice"] if len(set(ids)) != len(ids) or not all(ids) else []
    for call in calls:
        function = call.get("function", {})
        if not function.get("name"):
            out.append("a call without a name")
        try:
            fine = isinstance(json.loads(function.get("arguments") or ""), dict)
        except ValueError:
            fine = False
        if not fine:
            out.append("arguments that are not a JSON object")
    return out
