"""Events as the JSON lines that scripts of this field read: system, assistant, user, stream_event, result.

The shape is the one in wide use; what is ours alone stands inside `meta`. data/stream-json.schema.json describes
every line, and `schema_version` in the first and the last line says which version of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.events import (
    AnswerRecorded,
    Compacted,
    CompactFailed,
    Event,
    Notice,
    ReasoningDelta,
    Retrying,
    Steered,
    TaskEvent,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
)
from runtime.folding import failed_line, spans_of
from transcripts.records import Assistant, ToolResult, Usage

SCHEMA_VERSION = 1

Line = dict[str, Any]


@dataclass
class StreamJson:
    """Makes the lines of one session; `partial` adds the pieces of answers as they come. A line is a dict."""

    session_id: str
    partial: bool = False
    _block: int = -1
    _kind: str = ""
    _uuids: Iterator[str] = field(default_factory=lambda: iter(lambda: str(uuid.uuid4()), ""))

    def init(self, facts: Mapping[str, Any]) -> Line:
        """The first line. `facts`: cwd, model, permissionMode, tools and the like."""
        head = {"mcp_servers": [], "slash_commands": [], "schema_version": SCHEMA_VERSION}
        return self._line("system", subtype="init", **{**head, **facts})

    def lines(self, event: Event) -> list[Line]:
        """The lines for one event; most events of the loop have none."""
        match event:
            case AnswerRecorded():
                return [*self._close(event), self._assistant(event.message, event.usage, event.seq)]
            case ToolFinished():
                return [self._result(event.result, event.seq)]
            case Steered():
                message = {"role": "user", "content": [{"type": "text", "text": event.text}]}
                return [self._line("user", message=message, parent_tool_use_id=None, meta={"seq": event.seq})]
            case TaskEvent(call, ident, inner):
                return [_of_task(line, call.id, ident) for line in self._inner(inner)]
            case TextDelta() | ReasoningDelta() | ToolCallDelta() if self.partial:
                return self._delta(event)
            case _:
                return self._system(event)

    def _inner(self, event: Event) -> list[Line]:
        """What a sub-agent said and did; how it got there is in its own log."""
        match event:
            case AnswerRecorded():
                return [self._assistant(event.message, event.usage, event.seq)]
            case ToolFinished():
                return [self._result(event.result, event.seq)]
            case _:
                return []

    def _system(self, event: Event) -> list[Line]:
        match event:
            case Retrying():
                self._block, self._kind = -1, ""
                delay = round(event.wait * 1000)
                count = {"attempt": event.attempt, "max_retries": event.attempts, "retry_delay_ms": delay}
                return [self._line("system", subtype="api_retry", **count, error=event.reason)]
            case Compacted():
                point = event.checkpoint
                auto = "manual" if point.cause == "asked" else "auto"
                data = {"trigger": auto, "pre_tokens": point.tokens_before, "post_tokens": point.tokens_after}
                meta = {
                    "line": event.line, "checkpoint": point.id, "strategies": list(point.strategies),
                    "cause": point.cause, "left_out": [list(s) for s in spans_of(point)],
                    "shortened": sorted(map(int, point.texts)), "kept": dict(point.meta.get("retained", {})),
                    "notes": point.notes_status,
                }  # fmt: skip
                return [self._line("system", subtype="compact_boundary", compact_metadata=data, meta=meta)]
            case CompactFailed():
                why = failed_line(event.why, event.floor)
                return [self._line("system", subtype="notice", meta={"level": "warning", "text": why})]
            case Notice():
                return [self._line("system", subtype="notice", meta={"level": event.level, "text": event.text})]
            case _:
                return []

    def _assistant(self, message: Assistant, usage: Usage, seq: int) -> Line:
        content: list[Line] = []
        if message.reasoning:
            content.append({"type": "thinking", "thinking": message.reasoning})
        if message.text:
            content.append({"type": "text", "text": message.text})
        for call in message.calls:
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.args})
        body = {
            "id": f"msg_{seq}",
            "type": "message",
            "role": "assistant",
            "model": message.model,
            "content": content,
            "stop_reason": stop_reason(message.finish),
            "stop_sequence": None,
            "usage": usage_of(usage),
        }
        return self._line("assistant", message=body, parent_tool_use_id=None, meta={"seq": seq})

    def _result(self, result: ToolResult, seq: int) -> Line:
        block = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.text,
            "is_error": result.status != "ok",
        }
        meta = {"seq": seq, "tool": result.name, "status": result.status}
        return self._line("user", message={"role": "user", "content": [block]}, parent_tool_use_id=None, meta=meta)

    def _delta(self, event: TextDelta | ReasoningDelta | ToolCallDelta) -> list[Line]:
        """A piece of an answer, with what has to stand around the first piece of a block and of an answer."""
        match event:
            case TextDelta():
                kind, start, delta = "text", {"text": ""}, {"type": "text_delta", "text": event.text}
            case ReasoningDelta():
                kind, start = "thinking", {"thinking": ""}
                delta = {"type": "thinking_delta", "thinking": event.text}
            case ToolCallDelta():
                kind, start = f"tool_use {event.name}", {"id": "", "name": event.name, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": ""}
        out: list[Line] = []
        if self._block < 0:
            head = {"role": "assistant", "type": "message", "content": []}
            out.append(self._event({"type": "message_start", "message": head}))
        if kind != self._kind:
            out += self._stop_block()
            self._block, self._kind = self._block + 1, kind
            block = {"type": kind.split()[0], **start}
            out.append(self._event({"type": "content_block_start", "index": self._block, "content_block": block}))
        out.append(self._event({"type": "content_block_delta", "index": self._block, "delta": delta}))
        return out

    def _stop_block(self) -> list[Line]:
        return [self._event({"type": "content_block_stop", "index": self._block})] if self._block >= 0 else []

    def _close(self, event: AnswerRecorded) -> list[Line]:
        if self._block < 0:
            return []
        delta = {"stop_reason": stop_reason(event.message.finish), "stop_sequence": None}
        out = self._stop_block()
        out.append(self._event({"type": "message_delta", "delta": delta, "usage": usage_of(event.usage)}))
        out.append(self._event({"type": "message_stop"}))
        self._block, self._kind = -1, ""
        return out

    def _event(self, event: Line) -> Line:
        return self._line("stream_event", event=event, parent_tool_use_id=None)

    def _line(self, kind: str, **rest: Any) -> Line:
        return {"type": kind, **rest, "session_id": self.session_id, "uuid": next(self._uuids)}


def _of_task(line: Line, call: str, ident: str) -> Line:
    """A line of a sub-agent: which call it works for, and in whose log the record of that number stands."""
    return {**line, "parent_tool_use_id": call, "meta": {**line["meta"], "task": ident}}


def usage_of(usage: Usage) -> Line:
    """Tokens by the field's names; what the provider did not report counts 0 here and is told in meta.reported."""
    cached = usage.cached or 0
    return {
        "input_tokens": max(0, (usage.input or 0) - cached),
        "output_tokens": usage.output or 0,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
    }


def stop_reason(finish: str) -> str | None:
    """Our word for the end of an answer as the one in use; None for an answer that was cut."""
    known = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
    return known.get(finish)


def model_usage(usages: Sequence[Usage]) -> Line:
    """Tokens and money of each model."""
    out: Line = {}
    for usage in usages:
        row = out.setdefault(
            usage.model,
            {
                "inputTokens": 0,
                "outputTokens": 0,
                "cacheReadInputTokens": 0,
                "cacheCreationInputTokens": 0,
                "costUSD": 0.0,
            },
        )
        counts = usage_of(usage)
        row["inputTokens"] += counts["input_tokens"]
        row["outputTokens"] += counts["output_tokens"]
        row["cacheReadInputTokens"] += counts["cache_read_input_tokens"]
        row["costUSD"] += usage.cost or 0.0
    return out
