"""The protocol for models without native tool calls: tools in the system prompt, one ```json block a call, results as
the user's messages. What is written is a pure function of each message, so that the prefix stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

HEAD = "You work in a folder on this computer by calling tools."
"""First words of `small_prompt`; a system prompt that has them needs no other description of the tools."""

_RULES = """To call a tool, reply with one block like this and nothing after it:
```json
{"name": "TOOL", "arguments": {"ARGUMENT": "VALUE"}}
```
One call a reply. Wait for its result before you go on. When everything is finished, reply with the word done and one \
sentence about what you did."""


def small_prompt(specs: Sequence[Mapping[str, Any]]) -> str:
    """The description of the tools and of how they are called, in about 150 to 700 tokens.

    `specs` are chat-completions `tools` entries. No example names a path: a small model believes it.
    """
    lines = [_line(s["function"]) for s in specs]
    return "\n".join([HEAD, "", "Tools:", *lines, "", _RULES])


def _line(function: Mapping[str, Any]) -> str:
    schema = function.get("parameters") or {}
    required = schema.get("required") or ()
    properties = schema.get("properties") or {}
    takes = ", ".join(name if name in required else f"{name}?" for name in properties)
    about = str(function.get("description") or "").split(". ")[0].rstrip(".")
    return f"- {function['name']}({takes}): {about}."


def with_tools(system: str, specs: Sequence[Mapping[str, Any]]) -> str:
    """The system prompt, the tools described in it exactly once."""
    if HEAD in system or not specs:
        return system
    return f"{system}\n\n{small_prompt(specs)}".strip()


def as_text(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Chat messages without the tool roles. Results that answer one message become one message of the user's."""
    names: dict[str, str] = {}
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            name = names.get(message["tool_call_id"], "the tool")
            results.append(f"Result of {name}:\n{_plain(message['content'])}")
            continue
        if results:
            yield {"role": "user", "content": "\n\n".join(results)}
            results = []
        calls = message.get("tool_calls") or ()
        names.update({c["id"]: c["function"]["name"] for c in calls})
        yield {"role": message["role"], "content": _said(message, calls)}
    if results:
        yield {"role": "user", "content": "\n\n".join(results)}


def _said(message: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> Any:
    content = message.get("content")
    if message["role"] != "assistant":
        return content
    blocks = [_block(c["function"]) for c in calls]
    return "\n\n".join([*([_plain(content)] if content else []), *blocks])


def _block(function: Mapping[str, Any]) -> str:
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {}
    call = {"name": function["name"], "arguments": arguments}
    return f"```json\n{json.dumps(call, ensure_ascii=False)}\n```"


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text", "") for p in content or () if isinstance(p, Mapping))
