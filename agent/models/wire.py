"""A view as the body of a request, and what a server's refusal of the body teaches."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.models.base import ModelOptions
from agent.models.profiles import ModelProfile
from agent.models.text_protocol import as_text, with_tools
from runtime.model import ModelError, ModelErrorKind, ModelView

K = ModelErrorKind


@dataclass(frozen=True)
class Habits:
    """How this server wants to be asked; learned from its refusals. `without`: fields it does not know; `gives_back`:
    fields of an answer that it wants to see again (reasoning_content); `short_ids`: call ids of nine letters and
    digits; `empty_content`: what stands for the words of an answer that has none but calls."""

    tool_protocol: str = "native"
    output_field: str = "max_tokens"
    without: frozenset[str] = frozenset()
    gives_back: frozenset[str] = frozenset()
    short_ids: bool = False
    empty_content: str | None = None

    @property
    def plain(self) -> bool:
        """Whether the messages of a view can go out as they are."""
        return not self.short_ids and self.empty_content is None


_SPOKEN_FOR = frozenset(
    (K.PROMPT_TOO_LONG, K.INPUT_PLUS_OUTPUT_TOO_LONG, K.REQUEST_TOO_LARGE, K.AUTH, K.QUOTA, K.RATE_LIMIT)
)
"""Kinds that no field left out can help against."""

OPTIONAL = ("stream_options", "temperature", "tool_choice", "reasoning_effort", "prompt_cache_key", "return_progress")
"""Fields a request can do without when a server refuses them."""


def habits_of(profile: ModelProfile, options: ModelOptions) -> Habits:
    """How a model is asked before it has refused anything."""
    return Habits(
        tool_protocol=options.extra.get("tool_protocol") or profile.tool_protocol,
        output_field=profile.output_field,
        without=frozenset(profile.without),
        gives_back=frozenset([profile.reasoning_back] if profile.reasoning_back else []),
    )


def body(model: str, view: ModelView, options: ModelOptions, habits: Habits) -> dict[str, Any]:
    """The whole body of a chat-completions request. The messages stand last and only grow at their end, so as long as
    no checkpoint is made each body begins with all of the one before, but for its last two brackets."""
    out: dict[str, Any] = {"stream_options": {"include_usage": True}, **options.extra.get("body", {})}
    params = dict(view.params)
    if options.temperature is not None:
        out["temperature"] = options.temperature
    if options.effort:
        out["reasoning_effort"] = options.effort
    if params.get("max_tokens") is not None:
        out[habits.output_field] = params.pop("max_tokens")
    if view.tools and habits.tool_protocol == "native":
        out["tools"] = list(view.tools)
    else:
        params.pop("tool_choice", None)
    out.update({k: v for k, v in params.items() if v is not None})
    out["messages"] = messages(view, habits)
    return {"model": model, **{k: v for k, v in out.items() if k not in habits.without}}


def messages(view: ModelView, habits: Habits) -> list[Mapping[str, Any]]:
    """System prompt and messages as they go out."""
    if habits.tool_protocol == "text":
        system, shown = with_tools(view.system, view.tools), as_text(view.messages)
    else:
        plain = habits.plain
        system, shown = view.system, (m if plain and m.keys() <= _KNOWN else _known(m, habits) for m in view.messages)
    return [*([{"role": "system", "content": system}] if system else []), *shown]


_KNOWN = frozenset(("role", "content", "tool_calls", "tool_call_id", "name"))


def _known(message: Mapping[str, Any], habits: Habits) -> Mapping[str, Any]:
    """A message without what another provider wanted back, in the form this one takes."""
    out = {k: v for k, v in message.items() if k in _KNOWN or k in habits.gives_back}
    if out.get("content") is None and out["role"] == "assistant":
        out["content"] = habits.empty_content
    if habits.short_ids and "tool_call_id" in out:
        out["tool_call_id"] = _short(out["tool_call_id"])
    if habits.short_ids and "tool_calls" in out:
        out["tool_calls"] = [{**c, "id": _short(c["id"])} for c in out["tool_calls"]]
    return out


def _short(ident: str) -> str:
    """Nine characters that stand for an id, the same ones each time."""
    return hashlib.sha256(ident.encode()).hexdigest()[:9]


def adapt(habits: Habits, error: ModelError) -> Habits:
    """The habits with which the same request may be taken; the same object where there is nothing to change."""
    if error.status not in (400, 404, 422, 500, 501):
        return habits
    text = error.message.lower()
    if "max_completion_tokens" in text and habits.output_field == "max_tokens" and "max_tokens" in text:
        return replace(habits, output_field="max_completion_tokens")
    if not habits.short_ids and _SHORT_IDS.search(text):
        return replace(habits, short_ids=True)
    if habits.empty_content is None and _NO_NULL.search(text):
        return replace(habits, empty_content="")
    if habits.tool_protocol == "native" and _NO_TOOLS.search(text):
        return replace(habits, tool_protocol="text")
    if error.kind in _SPOKEN_FOR:
        return habits
    named = next((f for f in OPTIONAL if _refuses(text, f) and f not in habits.without), "")
    return replace(habits, without=habits.without | {named}) if named else habits


_SHORT_IDS = re.compile(r"tool call id .{0,80}length of 9")
"""Mistral's own wish; ids of another model's calls do not fulfil it."""
_NO_NULL = re.compile(r"content.{0,60}\b(null|none|nil|missing)\b|missing field .?content")
"""Ollama and others take no null for the words of an answer that has only calls."""
_NO_TOOLS = re.compile(
    r"(does not|doesn't|not|cannot|no) support\w* .{0,30}(tools?|function)"
    r"|(tools?|function calling) .{0,40}not (supported|available)"
    r"|no endpoints found that support tool|auto\"? tool choice requires"
)
"""A server or model that has no native tool calls says so at the first request (Ollama, OpenRouter, vLLM)."""


def _refuses(text: str, field: str) -> bool:
    if field == "stream_options" and "include_usage" in text:
        return True
    return re.search(rf"\b{field}\b", text) is not None


def call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids of all calls in the messages."""
    return {c["id"] for m in messages for c in m.get("tool_calls") or () if c.get("id")}
