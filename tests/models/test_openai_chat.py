"""How a request goes out, what a refusal teaches, how a stream is stopped, and what errors say."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path

import pytest

from agent.models import make_model
from agent.models.base import ModelOptions
from runtime.events import TextDelta
from runtime.model import ModelError, ModelErrorKind, ModelView
from tests.support.asking import BASH, HELLO, ask, hear, view
from tests.support.provider_server import (
    DONE,
    Pause,
    ProviderServer,
    Reply,
    Stall,
    ended,
    plainly,
    said,
    serving,
)


def refused(message: str, status: int = 400, **more: object) -> Reply:
    return Reply(status=status, body={"error": {"message": message, "type": "invalid_request_error", **more}})


def bodies(server: ProviderServer) -> list[dict]:
    return [a.body for a in server.asked]


# -- the request ------------------------------------------------------------------------------------------------------


def test_the_body_is_what_the_view_says_messages_last() -> None:
    with serving({"m": [plainly("ok")]}) as server:
        ask(
            "openai_chat:m", view(params={"max_tokens": 9, "tool_choice": "none"}), base_url=server.url, temperature=0.5
        )
    (body,) = bodies(server)
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 9,
        "tools": [BASH],
        "tool_choice": "none",
        "messages": [{"role": "system", "content": "You help."}, *HELLO],
    }
    assert list(body)[-1] == "messages"


def test_a_request_is_a_byte_prefix_of_the_next() -> None:
    longer = [*HELLO, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "日本語 — ok?"}]
    with serving({"m": [plainly("ok")]}) as server:
        for messages in (HELLO, longer):
            ask("openai_chat:m", view(messages), base_url=server.url)
    first, second = (a.raw for a in server.asked)
    assert second.startswith(first.removesuffix(b"]}"))


def test_what_another_provider_wanted_back_is_left_out() -> None:
    messages = [
        *HELLO,
        {"role": "assistant", "content": "Hi.", "reasoning_items": [1]},
        {"role": "user", "content": "?"},
    ]
    with serving({"m": [plainly("ok")]}) as server:
        ask("openai_chat:m", view(messages), base_url=server.url)
    assert bodies(server)[0]["messages"][2] == {"role": "assistant", "content": "Hi."}


def test_a_lone_surrogate_never_reaches_the_wire() -> None:
    with serving({"m": [plainly("ok")]}) as server:
        heard = ask("openai_chat:m", view([{"role": "user", "content": "a\ud800b"}]), base_url=server.url)
    assert heard.message.text == "ok"
    assert bodies(server)[0]["messages"][1]["content"] == "a\ufffdb"


def test_more_fields_come_from_the_options() -> None:
    extra = {"body": {"cache_prompt": True}, "label": "mine"}
    with serving({"m": [plainly("ok")]}) as server:
        heard = ask("openai_chat:m", base_url=server.url, effort="low", extra=extra)
    assert (bodies(server)[0]["cache_prompt"], bodies(server)[0]["reasoning_effort"]) == (True, "low")
    assert heard.message.model == "mine:m"


# -- what a refusal teaches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "field", "options"),
    [
        ("Unknown parameter: 'stream_options'", "stream_options", {}),
        ("Extra inputs are not permitted: stream_options.include_usage", "stream_options", {}),
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "temperature", {"temperature": 0.5}),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort", {"effort": "low"}),
    ],
)
def test_a_field_that_is_refused_is_left_out_from_then_on(message: str, field: str, options: dict) -> None:
    with serving({"m": [refused(message), plainly("All done.")]}) as server:
        heard = ask("openai_chat:m", base_url=server.url, times=2, **options)
    assert heard.message.text == "All done."
    assert [field in body for body in bodies(server)] == [True, False, False]


def test_max_tokens_gets_the_name_the_server_wants() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with serving({"m": [refused(words), plainly("ok")]}) as server:
        ask("openai_chat:m", view(params={"max_tokens": 9}), base_url=server.url)
    assert [(b.get("max_tokens"), b.get("max_completion_tokens")) for b in bodies(server)] == [(9, None), (None, 9)]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (
            404,
            "No endpoints found that support tool use. To learn more about provider routing, visit the documentation.",
        ),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ],
)
def test_a_model_without_tool_calls_is_asked_in_text(status: int, message: str) -> None:
    call = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'
    with serving({"m": [refused(message, status), plainly(call), plainly("Done.")]}) as server:
        heard = ask("openai_chat:m", base_url=server.url)
    assert [(c.name, c.arguments) for c in heard.message.calls] == [("bash", '{"command": "ls"}')]
    first, second = bodies(server)
    assert ("tools" in first, "tools" in second) == (True, False)
    assert "- bash(command): Runs a shell command." in second["messages"][0]["content"]


CALLED = (
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_long_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_long_1", "content": "ok"},
)


def test_ids_are_shortened_for_a_server_that_wants_nine_characters() -> None:
    words = "Tool call id was call_long_1 but must be a-z, A-Z, 0-9, with a length of 9."
    with serving({"m": [refused(words), plainly("ok")]}) as server:
        ask("openai_chat:m", view(CALLED), base_url=server.url)
    messages = bodies(server)[1]["messages"]
    ident = messages[2]["tool_calls"][0]["id"]
    assert (len(ident), ident.isalnum(), messages[3]["tool_call_id"]) == (9, True, ident)


@pytest.mark.parametrize(
    "words",
    [
        "Invalid type for 'messages[2].content': expected a string, but got null instead.",
        "messages[2]: missing field `content`",
    ],
)
def test_no_words_are_empty_words_for_a_server_that_takes_no_null(words: str) -> None:
    with serving({"m": [refused(words), plainly("ok")]}) as server:
        heard = ask("openai_chat:m", view(CALLED), base_url=server.url)
    assert heard.message.text == "ok"
    assert [b["messages"][2]["content"] for b in bodies(server)] == [None, ""]


def test_a_refusal_that_teaches_nothing_is_raised_at_once() -> None:
    with serving({"m": [refused("something else is wrong")]}) as server:
        error = ask("openai_chat:m", base_url=server.url).error
    assert (error.kind, len(server.asked)) == (ModelErrorKind.UNKNOWN, 1)  # type: ignore[union-attr]


# -- errors -----------------------------------------------------------------------------------------------------------


def test_an_auth_error_says_where_the_key_came_from() -> None:
    said = {"api_key": "sk-wrong", "api_key_source": "OPENAI_API_KEY in /home/me/.refold/.env"}
    with serving({"m": [refused("Incorrect API key provided.", 401, code="invalid_api_key")]}) as server:
        error = ask("openai_chat:m", base_url=server.url, **said).error
        without = ask("openai_chat:m", base_url=server.url).error
    assert error is not None and without is not None
    assert (error.kind, error.status) == (ModelErrorKind.AUTH, 401)
    assert error.message == (
        "HTTP 401: Incorrect API key provided. (the key came from OPENAI_API_KEY in /home/me/.refold/.env)"
    )
    assert without.message == "HTTP 401: Incorrect API key provided. (no key was sent; set OPENAI_API_KEY)"
    assert "sk-wrong" not in repr(ModelOptions(**said))


def test_no_key_for_openai_is_an_error_before_any_request() -> None:
    with pytest.raises(ModelError) as caught:
        make_model("openai_chat:gpt-5")
    assert caught.value.kind is ModelErrorKind.AUTH
    assert "OPENAI_API_KEY" in caught.value.message


@pytest.mark.parametrize("spec", ["nobody:x", "openai_chat", "openai_chat:", ":x", "", "base:x"])
def test_a_model_that_is_named_wrongly_is_a_config_error(spec: str) -> None:
    with pytest.raises(ModelError) as caught:
        make_model(spec, base_url="http://127.0.0.1:9/v1")
    assert caught.value.kind is ModelErrorKind.CONFIG


def test_a_name_without_a_provider_is_told_how_it_is_written() -> None:
    with pytest.raises(ModelError) as caught:
        make_model("gpt-5")
    assert caught.value.message == (
        "There is no provider 'gpt-5'. A model is named provider:model; providers: local, openai_chat, "
        "openai_responses, scripted. For a server that speaks OpenAI's chat completions: openai_chat:gpt-5."
    )


def test_a_model_that_is_not_there_says_who_was_asked() -> None:
    with serving({}) as server:
        error = ask("openai_chat:m", base_url=server.url).error
    assert error is not None
    assert (error.kind, error.message) == (ModelErrorKind.NOT_FOUND, f"HTTP 404: no model m (asked: {server.url})")


def test_a_refused_connection_is_told_plainly() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        error = ask("openai_chat:m", base_url=url).error
    assert error is not None
    assert error.kind is ModelErrorKind.NETWORK
    assert error.message == f"Cannot connect to {url}: nothing listens there (connection refused)"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "127.0.0.1:8000/v1", "http://[bad/v1"])
def test_a_url_that_cannot_be_used_is_a_config_error(url: str) -> None:
    with pytest.raises(ModelError) as caught:
        make_model("openai_chat:m", base_url=url)
    assert (caught.value.kind, url in caught.value.message) == (ModelErrorKind.CONFIG, True)


def test_retry_after_and_limit_are_read_from_the_answer() -> None:
    slow = Reply(status=429, headers={"Retry-After": "7"}, body={"error": {"message": "slow down"}})
    words = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    with serving({"m": [slow, refused(words, code="context_length_exceeded")]}) as server:
        first = ask("openai_chat:m", base_url=server.url).error
        second = ask("openai_chat:m", base_url=server.url).error
    assert first is not None and second is not None
    assert (first.kind, first.retry_after) == (ModelErrorKind.RATE_LIMIT, 7.0)
    assert (second.kind, second.limit, second.used) == (ModelErrorKind.PROMPT_TOO_LONG, 8192, 9000)


def test_the_sdk_does_not_retry_by_itself() -> None:
    with serving({"m": [Reply(status=500, body={"error": {"message": "boom"}})]}) as server:
        error = ask("openai_chat:m", base_url=server.url).error
    assert (error.kind, len(server.asked)) == (ModelErrorKind.SERVER, 1)  # type: ignore[union-attr]


# -- time -------------------------------------------------------------------------------------------------------------

STALLS = {
    "never answers": Reply(stall=True),
    "head, then nothing": Reply([Stall()]),
    "text, then nothing": Reply([said("Wait"), Stall()]),
    "signs of life only": Reply([said("Wait"), Stall(comments=True)]),
}


@pytest.mark.parametrize("name", STALLS)
def test_a_stalled_server_is_timed_out_with_a_clear_word(name: str) -> None:
    with serving({"m": [STALLS[name]]}) as server:
        began = time.monotonic()
        error = ask("openai_chat:m", base_url=server.url, timeout=0.8).error
        took = time.monotonic() - began
    assert error is not None
    assert (error.kind, "stalled" in error.message) == (ModelErrorKind.TIMEOUT, True), error.message
    assert (error.partial.text if error.partial else "") == ("Wait" if "Wait" in str(STALLS[name]) else "")
    assert took < 20


@pytest.mark.parametrize("name", STALLS)
def test_a_stream_is_stopped_at_once(name: str) -> None:
    """Whatever the server does; and the server sees that nobody listens any more."""

    async def run(url: str) -> float:
        model = make_model("openai_chat:m", base_url=url)
        await model.prepare()  # type: ignore[attr-defined]
        task = asyncio.create_task(hear(model))
        while not server.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        took = time.monotonic() - began
        assert task.cancelled()
        await model.close()  # type: ignore[attr-defined]
        return took

    with serving({"m": [STALLS[name]]}) as server:
        assert asyncio.run(run(server.url)) < 5
        assert server.left.wait(10)


def test_a_stream_can_be_left_in_the_middle() -> None:
    async def run(url: str) -> str:
        model = make_model("openai_chat:m", base_url=url)
        stream = model.stream(view())
        first = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        await model.close()  # type: ignore[attr-defined]
        assert isinstance(first, TextDelta)
        return first.text

    with serving({"m": [Reply([said("Hello"), Stall()])]}) as server:
        assert asyncio.run(run(server.url)) == "Hello"
        assert server.left.wait(10)


def test_a_line_that_stays_open_after_the_end_is_not_waited_for() -> None:
    with serving({"m": [Reply([said("ok"), ended(), DONE, Stall()])]}) as server:
        began = time.monotonic()
        assert ask("openai_chat:m", base_url=server.url).message.text == "ok"
        assert time.monotonic() - began < 10


def test_late_usage_is_waited_for() -> None:
    late = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    with serving({"m": [Reply([said("ok"), ended(), Pause(0.4), late])]}) as server:
        answer = ask("openai_chat:m", base_url=server.url).answer
    assert answer is not None
    assert answer.usage.input == 5


def test_one_model_serves_several_event_loops() -> None:
    with serving({"m": [plainly("ok")]}) as server:
        model = make_model("openai_chat:m", base_url=server.url)
        for _ in range(2):
            assert asyncio.run(hear(model)).message.text == "ok"


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving({"m": [plainly("ok")]}) as server:
        assert ask("openai_chat:m", base_url=server.url).message.text == "ok"


def test_a_thousand_messages_cost_little() -> None:
    """The view is sent as it is: no part of a step walks through the history in Python."""
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n} " * 20} for n in range(2001)]

    async def run(url: str) -> float:
        model = make_model("openai_chat:m", base_url=url)
        await hear(model)
        took = []
        for _ in range(5):
            began = time.process_time()
            await hear(model, ModelView("You help.", messages, [BASH]))
            took.append(time.process_time() - began)
        await model.close()  # type: ignore[attr-defined]
        return min(took)

    with serving({"m": [plainly("ok")]}) as server:
        assert asyncio.run(run(server.url)) < 0.5


def test_a_learned_window_is_remembered(tmp_path: Path) -> None:
    model = make_model("openai_chat:m", base_url="http://127.0.0.1:9/v1", home=tmp_path)
    assert (model.window, model.window_source) == (128_000, "default")
    model.learn_window(8192)  # type: ignore[attr-defined]
    again = make_model("openai_chat:m", base_url="http://127.0.0.1:9/v1/", home=tmp_path, window=50_000)
    other = make_model("openai_chat:other", base_url="http://127.0.0.1:9/v1", home=tmp_path, window=50_000)
    assert (again.window, again.window_source) == (8192, "learned")
    assert (other.window, other.window_source) == (50_000, "set")
    assert json.loads((tmp_path / "windows.json").read_text())["http://127.0.0.1:9/v1 m"]["window"] == 8192
