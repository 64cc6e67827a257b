"""The Responses API: items instead of messages, thinking carried from step to step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta
from runtime.model import ModelErrorKind
from tests.support.asking import BASH, ask, view
from tests.support.provider_server import Reply, serving
from transcripts.records import Assistant, ToolCall

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'}


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def text(piece: str) -> str:
    return event("response.output_text.delta", delta=piece)


def completed(*output: dict, kind: str = "response.completed", **more: Any) -> str:
    usage = {
        "input_tokens": 20,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 16},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    return event(kind, response={"output": list(output), "usage": usage, **more})


def test_an_answer_with_thinking_and_a_call() -> None:
    events = [
        event("response.created", response={"output": []}),
        event("response.reasoning_summary_text.delta", delta="Hm."),
        event("response.output_item.done", item=THOUGHT),
        text("I "),
        text("look."),
        event("response.output_item.added", item={**CALL, "arguments": ""}),
        event("response.function_call_arguments.delta", item_id="fc_1", delta='{"command": "ls"}'),
        event("response.output_item.done", item=CALL),
        completed(THOUGHT, CALL),
    ]
    with serving({"m": [Reply(events)]}) as server:
        heard = ask("openai_responses:m", base_url=server.url)
    assert heard.events == [ReasoningDelta("Hm."), TextDelta("I "), TextDelta("look."), ToolCallDelta("bash", 17)]
    assert heard.message == Assistant(
        "I look.",
        (ToolCall("call_1", "bash", '{"command": "ls"}'),),
        "Hm.",
        "tool_calls",
        "openai_responses:m",
        {"wire": {"response_items": [THOUGHT]}},
    )
    assert heard.answer is not None
    usage = heard.answer.usage
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (20, 9, 16, 5)


def test_the_request_is_made_of_items_and_carries_the_thinking() -> None:
    messages = [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": "I look.",
            "response_items": [THOUGHT],
            "reasoning_content": "for somebody else",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ],
        },
    ]
    with serving({"m": [Reply([text("ok"), completed()])]}) as server:
        ask("openai_responses:m", view(messages, params={"max_tokens": 50}), base_url=server.url, effort="low")
    (asked,) = server.asked
    assert asked.path == "/v1/responses"
    assert asked.body == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto", "effort": "low"},
        "max_output_tokens": 50,
        "tools": [{"type": "function", **BASH["function"], "strict": False}],
        "instructions": "You help.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Go."}]},
            THOUGHT,
            {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See:"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                ],
            },
        ],
    }


def test_the_text_of_an_answer_that_was_not_streamed_is_taken_from_its_end() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]}
    whole = {"output": [message], "usage": {"input_tokens": 3, "output_tokens": 2}}
    with serving({"m": [Reply([completed(message)]), Reply(body=whole)]}) as server:
        assert ask("openai_responses:m", base_url=server.url).message.text == "Hello."
        assert ask("openai_responses:m", base_url=server.url).message.text == "Hello."


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_answer_runs_no_calls(reason: str, finish: str) -> None:
    end = completed(CALL, kind="response.incomplete", incomplete_details={"reason": reason})
    with serving({"m": [Reply([text("Half"), end])]}) as server:
        message = ask("openai_responses:m", base_url=server.url).message
    assert (message.text, message.finish, [bool(c.problem) for c in message.calls]) == ("Half", finish, [True])


@pytest.mark.parametrize(
    ("events", "kind", "kept"),
    [
        ([text("Half")], ModelErrorKind.NETWORK, "Half"),
        (
            [event("response.failed", response={"error": {"code": "server_error", "message": "boom"}})],
            ModelErrorKind.SERVER,
            "",
        ),
        (
            [text("Half"), event("error", code="rate_limit_exceeded", message="slow down")],
            ModelErrorKind.RATE_LIMIT,
            "Half",
        ),
        (
            [event("response.failed", response={"error": {"code": "context_length_exceeded", "message": "too long"}})],
            ModelErrorKind.PROMPT_TOO_LONG,
            "",
        ),
        ([completed(THOUGHT)], ModelErrorKind.EMPTY, ""),
        (
            [completed(THOUGHT, kind="response.incomplete", incomplete_details={"reason": "max_output_tokens"})],
            ModelErrorKind.OUTPUT_LIMIT,
            "",
        ),
    ],
)
def test_what_is_no_answer_is_a_typed_error(events: list[str], kind: ModelErrorKind, kept: str) -> None:
    with serving({"m": [Reply(events)]}) as server:
        error = ask("openai_responses:m", base_url=server.url).error
    assert error is not None
    assert (error.kind, error.partial.text if error.partial else "") == (kind, kept)


def test_a_field_that_is_refused_is_left_out() -> None:
    words = "Unsupported parameter: 'reasoning.summary' is not supported with this model."
    refused = Reply(status=400, body={"error": {"message": words, "type": "invalid_request_error"}})
    with serving({"m": [refused, Reply([text("ok"), completed()])]}) as server:
        assert ask("openai_responses:m", base_url=server.url).message.text == "ok"
    assert ["reasoning" in a.body for a in server.asked] == [True, False]
