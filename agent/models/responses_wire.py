"""A view as the body of a Responses request: chat messages become items, thinking goes back as it came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.models.base import ModelOptions
from runtime.model import ModelView

ITEMS = "response_items"
"""Field of an assistant's message that holds its reasoning items: opaque, encrypted by the provider, wanted back."""


def body(model: str, view: ModelView, options: ModelOptions, effort: str, without: frozenset[str]) -> dict[str, Any]:
    """The whole body. Nothing is stored at the provider's; the input stands last and only grows at its end."""
    params = dict(view.params)
    out: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
    reasoning = {"summary": "auto", **({"effort": effort} if effort else {})}
    out["reasoning"] = reasoning
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if params.get("max_tokens") is not None:
        out["max_output_tokens"] = params.pop("max_tokens")
    if view.tools:
        out["tools"] = [_tool(t["function"]) for t in view.tools]
    else:
        params.pop("tool_choice", None)
    out.update({k: v for k, v in params.items() if v is not None})
    out.update(options.extra.get("body", {}))
    if view.system:
        out["instructions"] = view.system
    out = {k: v for k, v in out.items() if k not in without}
    return {"model": model, **out, "input": list(items(view.messages))}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": function.get("parameters") or {"type": "object", "properties": {}},
        "strict": False,
    }


def items(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Chat messages as items."""
    for message in messages:
        role = message["role"]
        if role == "tool":
            output = message["content"]
            text = output if isinstance(output, str) else "\n".join(p.get("text", "") for p in output)
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": text}
        elif role == "assistant":
            yield from _assistant(message)
        else:
            yield {"role": role, "content": _parts(message["content"])}


def _assistant(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from message.get(ITEMS) or ()
    if message.get("content"):
        yield {"role": "assistant", "content": [{"type": "output_text", "text": message["content"]}]}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return [
        {"type": "input_image", "image_url": p["image_url"]["url"]}
        if p.get("type") == "image_url"
        else {"type": "input_text", "text": p.get("text", "")}
        for p in content
    ]
