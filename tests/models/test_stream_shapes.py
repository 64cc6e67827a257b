"""Every odd shape of a stream that servers have been seen to send, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from runtime.events import ToolCallDelta, Waiting
from runtime.model import ModelErrorKind
from tests.support.asking import ask
from tests.support.provider_server import (
    DONE,
    Pause,
    ProviderServer,
    Reply,
    Reset,
    chunk,
    ended,
    part,
    plainly,
    said,
    serving,
    usage,
)
from transcripts.records import Usage

LS, PWD = '{"command": "ls"}', '{"command": "pwd"}'
CUT = ended("tool_calls")


def sse(*lines: str, end: str = "\n\n") -> str:
    return "".join(line + end for line in lines)


TEXTS: dict[str, tuple[list, str]] = {
    "plain": ([said("He"), said("llo."), ended(), DONE], "Hello."),
    "finish in the last piece": ([said("Hello.", "stop"), DONE], "Hello."),
    "no DONE": ([said("Hello."), ended()], "Hello."),
    "DONE but no finish reason": ([said("Hello."), DONE], "Hello."),
    "finish tool_calls without calls": ([said("Hello."), ended("tool_calls"), DONE], "Hello."),
    "another word for stop": ([said("Hello."), ended("eos"), DONE], "Hello."),
    "upper case": ([said("Hello."), ended("STOP"), DONE], "Hello."),
    "delta null, choices null, choices empty": (
        [
            chunk(None) | {"choices": None},
            {"choices": []},
            {"choices": [{"delta": None}]},
            said("Hello."),
            ended(),
            DONE,
        ],
        "Hello.",
    ),
    "content null": ([chunk({"role": "assistant", "content": None}), said("Hello."), ended(), DONE], "Hello."),
    "content as parts": (
        [chunk({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]}), ended(), DONE],
        "Hello.",
    ),
    "message in the place of delta": (
        [{"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}, DONE],
        "Hello.",
    ),
    "the whole message once more at the end": (
        [said("Hello."), {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}, DONE],
        "Hello.",
    ),
    "text of the old completions": ([{"choices": [{"text": "Hello.", "finish_reason": "stop"}]}, DONE], "Hello."),
    "refusal": ([chunk({"refusal": "I will not."}), ended(), DONE], "I will not."),
    "lone surrogate": (['data: {"choices":[{"delta":{"content":"a\\ud83db"}}]}\n\n', ended(), DONE], "a\ufffdb"),
    "escaped pair": (['data: {"choices":[{"delta":{"content":"\\ud83d\\ude00"}}]}\n\n', ended(), DONE], "\U0001f600"),
    "CRLF": (
        [sse('data: {"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}', end="\r\n\r\n")],
        "Hello.",
    ),
    "CR": ([sse('data: {"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}', end="\r\r")], "Hello."),
    "no space": (
        [sse('data:{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}', "data:[DONE]")],
        "Hello.",
    ),
    "comments and other fields": (
        [": ping\n\n", "event: message\nid: 7\nretry: 10\n" + sse(f"data: {json.dumps(said('Hello.', 'stop'))}")],
        "Hello.",
    ),
    "data over two lines": (
        ['data: {"choices":[{"delta":{"content":"Hello."},\ndata: "finish_reason":"stop"}]}\n\n'],
        "Hello.",
    ),
    "byte order mark": (["\ufeff" + sse(f"data: {json.dumps(said('Hello.', 'stop'))}")], "Hello."),
    "no empty line at the end": ([f"data: {json.dumps(said('Hello.', 'stop'))}"], "Hello."),
    "garbage after the finish reason": ([said("Hello."), ended(), "data: {oops\n\n"], "Hello."),
    "reset after the finish reason": ([said("Hello."), ended(), Reset()], "Hello."),
    "character split over packets": (
        [b'data: {"choices":[{"delta":{"content":"na\xc3', Pause(0.05), b'\xafve"},"finish_reason":"stop"}]}\n\n'],
        "naïve",
    ),
    "line break raw in a string": (
        ['data: {"choices":[{"delta":{"content":"a\tb"},"finish_reason":"stop"}]}\n\n'],
        "a\tb",
    ),
}

CALLS: dict[str, tuple[list, list[tuple[str, str]]]] = {
    "fragments": ([part("", id="a", name="bash"), part('{"comm'), part('and": "ls"}'), CUT], [("a", LS)]),
    "two with index": ([part(LS, 0, "a", "bash"), part(PWD, 1, "b", "bash"), CUT], [("a", LS), ("b", PWD)]),
    "two, every index 0": (
        [part("", 0, "a", "bash"), part(LS), part("", 0, "b", "bash"), part(PWD), CUT],
        [("a", LS), ("b", PWD)],
    ),
    "two, every index 0, whole at once": (
        [part(LS, 0, "a", "bash"), part(PWD, 0, "b", "bash"), CUT],
        [("a", LS), ("b", PWD)],
    ),
    "no index at all": ([part(LS, None, "a", "bash"), part(PWD, None, "b", "bash"), CUT], [("a", LS), ("b", PWD)]),
    "no index, fragments": (
        [
            part("", None, "a", "bash"),
            part('{"command"', None),
            part(': "ls"}', None),
            part(PWD, None, "b", "bash"),
            CUT,
        ],
        [("a", LS), ("b", PWD)],
    ),
    "indexes from 3 on": ([part(LS, 3, "a", "bash"), part(PWD, 7, "b", "bash"), CUT], [("a", LS), ("b", PWD)]),
    "interleaved": (
        [
            part("", 0, "a", "bash"),
            part("", 1, "b", "bash"),
            part('{"command"', 0),
            part('{"command"', 1),
            part(': "ls"}', 0),
            part(': "pwd"}', 1),
            CUT,
        ],
        [("a", LS), ("b", PWD)],
    ),
    "id comes late": ([part("", name="bash"), part('{"command"', id="a"), part(': "ls"}'), CUT], [("a", LS)]),
    "id and name with each fragment": (
        [part('{"command"', id="a", name="bash"), part(': "ls"}', id="a", name="bash"), CUT],
        [("a", LS)],
    ),
    "a new id with each fragment": (
        [part('{"command"', id="a", name="bash"), part(': "ls"}', id="b"), CUT],
        [("a", LS)],
    ),
    "a new id and the name with each fragment": (
        [part('{"command"', id="a", name="bash"), part(': "ls"}', id="b", name="bash"), CUT],
        [("a", LS)],
    ),
    "whole call twice": ([part(LS, 0, "a", "bash"), part(LS, 0, "a", "bash"), CUT], [("a", LS)]),
    "name in pieces": ([part("", id="a", name="ba"), part(LS, name="sh"), CUT], [("a", LS)]),
    "arguments as an object": ([part({"command": "ls"}, 0, "a", "bash"), CUT], [("a", LS)]),
    "arguments twice encoded": ([part(json.dumps(LS), 0, "a", "bash"), CUT], [("a", LS)]),
    "raw line break in a string": ([part('{"command": "a\nb"}', 0, "a", "bash"), CUT], [("a", '{"command": "a\\nb"}')]),
    "surrogate in arguments": (
        [part('{"command": "a\\ud83d"}', 0, "a", "bash"), CUT],
        [("a", '{"command": "a\ufffd"}')],
    ),
    "finish stop": ([part(LS, 0, "a", "bash"), ended()], [("a", LS)]),
    "the old function_call": (
        [chunk({"function_call": {"name": "bash", "arguments": LS}}), ended("function_call")],
        [("", LS)],
    ),
    "tool_calls as one object": (
        [chunk({"tool_calls": {"id": "a", "function": {"name": "bash", "arguments": LS}}}), CUT],
        [("a", LS)],
    ),
}

PROBLEMS: dict[str, tuple[str, str]] = {
    "list": ('["ls"]', "The arguments must be one JSON object, not a list."),
    "number": ("5", "The arguments must be one JSON object, not a number."),
    "string": ('"ls"', "The arguments are not valid JSON: Expecting value at character 0."),
    "two objects": (
        LS + PWD,
        "The arguments must be one JSON object; there is more text after its end. Send one call each.",
    ),
    "words behind": (
        LS + " ok",
        "The arguments must be one JSON object; there is more text after its end. Send one call each.",
    ),
    "cut": (
        '{"command": "rm -rf bui',
        "The arguments are not valid JSON: Unterminated string starting at at character 12.",
    ),
    "NaN": ('{"command": NaN}', "The arguments are not valid JSON: NaN and Infinity are not JSON numbers."),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    replies = {f"text {n}": [Reply(e)] for n, (e, _) in TEXTS.items()}
    replies |= {f"calls {n}": [Reply([*e, DONE])] for n, (e, _) in CALLS.items()}
    replies |= {f"problem {n}": [Reply([part(a, 0, "a", "bash"), CUT, DONE])] for n, (a, _) in PROBLEMS.items()}
    with serving(replies) as state:
        yield state


@pytest.mark.parametrize("name", TEXTS)
def test_text_arrives_whole(server: ProviderServer, name: str) -> None:
    heard = ask(f"openai_chat:text {name}", base_url=server.url)
    assert (heard.message.text, heard.message.finish, heard.message.calls) == (TEXTS[name][1], "stop", ())
    assert heard.shown == heard.message.text


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_put_together(server: ProviderServer, name: str) -> None:
    message = ask(f"openai_chat:calls {name}", base_url=server.url).message
    assert [(c.name, c.arguments, c.problem) for c in message.calls] == [("bash", a, "") for _, a in CALLS[name][1]]
    for call, (wanted, _) in zip(message.calls, CALLS[name][1]):
        assert call.id == wanted or (not wanted and call.id.startswith("call_"))
    assert (message.finish, message.text) == ("tool_calls", "")


@pytest.mark.parametrize("name", PROBLEMS)
def test_arguments_that_are_no_object_are_never_guessed_at(server: ProviderServer, name: str) -> None:
    raw, problem = PROBLEMS[name]
    (call,) = ask(f"openai_chat:problem {name}", base_url=server.url).message.calls
    assert (call.id, call.arguments, call.raw, call.problem) == ("a", "{}", raw, problem)


@pytest.mark.parametrize("raw", ["", "null", "  "])
def test_no_arguments_are_no_problem(raw: str) -> None:
    with serving({"m": [Reply([part(raw, 0, "a", "bash"), CUT, DONE])]}) as server:
        (call,) = ask("openai_chat:m", base_url=server.url).message.calls
    assert (call.arguments, call.problem) == ("{}", "")


def test_ids_are_unique_in_the_answer_and_in_the_conversation() -> None:
    twice = Reply([part(LS, 0, "call_0", "bash"), part(PWD, 1, "call_0", "bash"), CUT, DONE])
    history = [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "bash", "arguments": LS}}],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "ok"},
    ]
    from tests.support.asking import view

    with serving({"m": [twice]}) as server:
        first = ask("openai_chat:m", base_url=server.url).message.calls
        later = ask("openai_chat:m", view(history), base_url=server.url, times=2).message.calls
    assert first[0].id == "call_0" != first[1].id
    assert len({"call_0", *(c.id for c in later)}) == 3


@pytest.mark.parametrize("finish", ["length", "max_tokens", "content_filter"])
def test_calls_of_an_answer_that_was_cut_are_not_run(finish: str) -> None:
    events = [part(LS, 0, "a", "bash"), part('{"comm', 1, "b", "bash"), ended(finish), DONE]
    with serving({"m": [Reply(events)]}) as server:
        message = ask("openai_chat:m", base_url=server.url).message
    assert message.finish == ("content_filter" if finish == "content_filter" else "length")
    assert [bool(c.problem) for c in message.calls] == [True, True]


CUTS: dict[str, tuple[list, str]] = {
    "text, then the end": ([said("The answer is for")], "The answer is for"),
    "text, then a reset": ([said("The answer is for"), Reset()], "The answer is for"),
    "a call, then the end": ([part('{"command": "rm -rf bui', 0, "a", "bash")], ""),
    "a whole call, then the end": ([part(LS, 0, "a", "bash")], ""),
    "a whole call, then DONE": ([part(LS, 0, "a", "bash"), DONE], ""),
    "a malformed chunk": ([said("a"), 'data: {"choices":[{"delta":{"cont\n\n', said("b"), ended(), DONE], "a"),
    "thinking, then the end": ([chunk({"reasoning_content": "hm"})], ""),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_stream_keeps_what_came_and_can_be_asked_again(name: str) -> None:
    events, kept = CUTS[name]
    with serving({"m": [Reply(events), plainly("All done.")]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
        again = ask("openai_chat:m", base_url=server.url)
    assert heard.error is not None
    assert heard.error.kind is ModelErrorKind.NETWORK
    partial = heard.error.partial
    assert (partial.text if partial else "", partial.finish if partial else "cut") == (kept, "cut")
    assert again.message.text == "All done."


@pytest.mark.parametrize(
    ("events", "kind", "word"),
    [
        ([ended(), DONE], ModelErrorKind.EMPTY, "empty response"),
        ([DONE], ModelErrorKind.EMPTY, "closed the stream"),
        ([chunk({"reasoning_content": "hm"}), ended(), DONE], ModelErrorKind.EMPTY, "empty response: only thinking"),
        ([said(" \n"), ended(), DONE], ModelErrorKind.EMPTY, "empty response"),
        ([], ModelErrorKind.NETWORK, "closed the stream"),
        ([ended("length"), DONE], ModelErrorKind.PROMPT_TOO_LONG, "no room left"),
        ([chunk({"reasoning": "hm"}), ended("length"), DONE], ModelErrorKind.OUTPUT_LIMIT, "for thinking"),
        ([ended("content_filter"), DONE], ModelErrorKind.UNKNOWN, "content filter"),
        ([said("a"), ended("error"), DONE], ModelErrorKind.SERVER, "error"),
        ([said("a"), ended("model_context_window_exceeded")], ModelErrorKind.PROMPT_TOO_LONG, "window"),
        ([{"error": {"message": "Overloaded", "type": "overloaded_error"}}], ModelErrorKind.SERVER, "Overloaded"),
        ([said("a"), {"error": {"code": 429, "message": "slow down"}}], ModelErrorKind.RATE_LIMIT, "slow down"),
        (
            ['event: error\ndata: {"message": "prompt is too long: 9 tokens > 8 maximum"}\n\n'],
            ModelErrorKind.PROMPT_TOO_LONG,
            "too long",
        ),
        ([{"error": "something broke"}], ModelErrorKind.UNKNOWN, "something broke"),
    ],
)
def test_an_answer_that_is_none_is_a_typed_error(events: list, kind: ModelErrorKind, word: str) -> None:
    with serving({"m": [Reply(events)]}) as server:
        error = ask("openai_chat:m", base_url=server.url).error
    assert error is not None
    assert (error.kind, word in error.message) == (kind, True), error.message


THOUGHTS: dict[str, list] = {
    "reasoning_content": [chunk({"reasoning_content": "let me"}), chunk({"reasoning_content": " see"}), said("Yes.")],
    "reasoning": [chunk({"reasoning": "let me see"}), said("Yes.")],
    "both, the same": [chunk({"reasoning": "let me see", "reasoning_content": "let me see"}), said("Yes.")],
    "think tags": [said("<think>let me see</think>\n\nYes.")],
    "think tags in pieces": [said(p) for p in ("<th", "ink>let", " me", " see</", "thi", "nk>\n", "Yes.")],
    "thinking parts": [
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "let me see"}]}]}),
        said("Yes."),
    ],
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_thinking_is_told_from_the_answer(name: str) -> None:
    with serving({"m": [Reply([*THOUGHTS[name], ended(), DONE])]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert (heard.message.reasoning, heard.message.text) == ("let me see", "Yes.")
    assert (heard.thought, heard.shown) == ("let me see", "Yes.")


def test_a_think_tag_in_the_middle_is_text() -> None:
    with serving({"m": [Reply([said("Use <think>x</think> tags."), ended(), DONE])]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert (heard.message.text, heard.message.reasoning) == ("Use <think>x</think> tags.", "")


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([usage(10, 2)], (10, 2, None, None)),
        ([usage(10, 1), usage(10, 2)], (10, 2, None, None)),
        ([usage(0, 0)], (None, None, None, None)),
        ([], (None, None, None, None)),
        ([usage(10, 2, prompt_tokens_details={"cached_tokens": 8})], (10, 2, 8, None)),
        ([usage(10, 9, completion_tokens_details={"reasoning_tokens": 7})], (10, 9, None, 7)),
        ([usage(10, 2, prompt_cache_hit_tokens=6)], (10, 2, 6, None)),
        ([{"choices": [], "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}}], (3, 4, None, None)),
        ([{"choices": [], "timings": {"prompt_n": 5, "cache_n": 20, "predicted_n": 3}}], (25, 3, None, None)),
        ([{"choices": [], "usage": {"input_tokens": 5, "output_tokens": 6}}], (5, 6, None, None)),
    ],
)
def test_usage_is_what_was_reported_last_and_zero_is_unknown(events: list, wanted: tuple) -> None:
    with serving({"m": [Reply([said("ok"), ended(), *events, DONE])]}) as server:
        answer = ask("openai_chat:m", base_url=server.url).answer
    assert answer is not None
    found: Usage = answer.usage
    assert (found.input, found.output, found.cached, found.reasoning) == wanted
    assert found.model == "openai_chat:m"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_json_in_the_place_of_a_stream(content_type: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": LS}}
    body = {
        "choices": [{"message": {"content": "Hello.", "tool_calls": [call]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    with serving({"m": [Reply(body=body, headers={"Content-Type": content_type})]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert (heard.message.text, [c.arguments for c in heard.message.calls]) == ("Hello.", [LS])
    assert heard.answer is not None
    assert (heard.answer.usage.input, heard.answer.usage.output) == (3, 4)


def test_an_error_with_status_200_is_an_error() -> None:
    body = {"error": {"message": "The model is overloaded.", "code": 503}}
    with serving({"m": [Reply(body=body)]}) as server:
        error = ask("openai_chat:m", base_url=server.url).error
    assert error is not None
    assert (error.kind, error.message) == (ModelErrorKind.SERVER, "HTTP 503: The model is overloaded.")


def test_a_page_of_html_is_named_and_not_shown() -> None:
    page = "<!doctype html><html><head><title>Bad gateway</title></head><body>" + "x" * 5000
    with serving({"m": [Reply(body=page), Reply(status=503, body=page)]}) as server:
        errors = [ask("openai_chat:m", base_url=server.url).error for _ in range(2)]
    assert [e.message for e in errors if e] == [
        "HTTP 502: the server sent an HTML page (Bad gateway)",
        "HTTP 503: the server sent an HTML page (Bad gateway)",
    ]
    assert {e.kind for e in errors if e} == {ModelErrorKind.SERVER}


def test_a_call_being_written_is_told() -> None:
    with serving({"m": [Reply([part("", id="a", name="bash"), part(LS), CUT, DONE])]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert heard.events == [ToolCallDelta("bash", 0), ToolCallDelta("bash", len(LS))]


def test_progress_of_reading_the_prompt_is_told() -> None:
    progress = [{"choices": [], "prompt_progress": {"total": 900, "processed": n}} for n in (0, 256, 900)]
    with serving({"m": [Reply([*progress, said("Hello."), ended(), DONE])]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert heard.waits == [Waiting("reading the prompt", 0, 900), Waiting("reading the prompt", 256, 900)]
