"""What is known about a model and its server: profiles, windows, prices, servers found by themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.models import make_model, providers
from agent.models.base import ModelOptions
from agent.models.discovery import Choice, available, find_servers
from agent.models.introspect import Offer, Server, ask_server
from agent.models.prices import with_cost
from agent.models.profiles import ModelProfile, profile_for
from runtime.model import ModelError, ModelErrorKind
from tests.support.asking import hear, view
from tests.support.provider_server import DONE, Reply, chunk, ended, plainly, said, serving
from transcripts.records import Usage

FAR = "https://api.openai.com/v1"


def test_one_file_a_provider() -> None:
    assert providers() == ["local", "openai_chat", "openai_responses", "scripted"]


# -- profiles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "window", "edit_format"),
    [
        ("gpt-5", 272_000, "apply_patch"),
        ("openai/gpt-5.1-codex", 272_000, "apply_patch"),
        ("gpt-4o-mini", 128_000, "edit"),
        ("gpt-4.1", 1_047_576, "edit"),
        ("claude-sonnet-4-5", 200_000, "edit"),
        ("google/gemini-2.5-pro", 1_048_576, "edit"),
        ("deepseek-chat", 131_072, "edit"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 262_144, "edit"),
        ("kimi-k2-0905-preview", 262_144, "edit"),
        ("moonshot-v1-8k", 8192, "edit"),
        ("qwen2.5-coder:1.5b", 32_768, "whole"),
        ("never-heard-of-it", None, "edit"),
    ],
)
def test_a_model_is_known_by_its_name(name: str, window: int | None, edit_format: str) -> None:
    profile = profile_for(name)
    assert (profile.window, profile.edit_format) == (window, edit_format)


def test_small_models_are_told_little() -> None:
    assert [profile_for(n).small for n in ("qwen2.5-coder:1.5b", "llama3.2:3b", "local", "llama3.1:70b", "gpt-5")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert profile_for("local").tools == ("read", "write", "edit", "bash")


def test_a_persons_own_file_comes_last(tmp_path: Path) -> None:
    own = tmp_path / "profiles.toml"
    own.write_text(
        '[[profile]]\nmatch = ["gpt-5*"]\nwindow = 100000\n[[profile]]\nmatch = "mine"\ntool_protocol = "text"\n'
    )
    assert (profile_for("gpt-5", tmp_path).window, profile_for("gpt-5", tmp_path).edit_format) == (
        100_000,
        "apply_patch",
    )
    assert profile_for("Mine", tmp_path) == ModelProfile(tool_protocol="text")
    model: Any = make_model("openai_chat:gpt-5", base_url="http://127.0.0.1:9/v1", home=tmp_path)
    assert (model.window, model.window_source, model.edit_format) == (100_000, "table", "apply_patch")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("oops", "cannot be read"),
        ("[[profile]]\nwindow = 1000\n", "no `match`"),
        ('[[profile]]\nmatch = "a"\nwidow = 1000\n', "widow is no field"),
        ('[[profile]]\nmatch = "a"\nwindow = "big"\n', "window must be a number of tokens"),
        ('[[profile]]\nmatch = "a"\nedit_format = "udiff"\n', "edit_format must be one of edit, apply_patch, whole"),
        ('[[profile]]\nmatch = "a"\ntools = "read"\n', "tools must be a list of texts"),
        ('[[profile]]\nmatch = "a"\ntakes_images = "yes"\n', "takes_images must be true or false"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text(text)
    with pytest.raises(ModelError) as caught:
        profile_for("a", tmp_path)
    assert (caught.value.kind, word in caught.value.message) == (ModelErrorKind.CONFIG, True), caught.value.message


def test_what_a_profile_says_goes_into_the_request(tmp_path: Path) -> None:
    own = tmp_path / "profiles.toml"
    own.write_text(
        '[[profile]]\nmatch = "m"\noutput_field = "max_completion_tokens"\nwithout = ["temperature"]\n'
        'reasoning_back = "reasoning_content"\nthink_open = true\n'
    )
    thinking = Reply([said("I think.</think>Hello."), ended(), DONE])
    history = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Ok.", "reasoning_content": "Hm.", "response_items": []},
        {"role": "user", "content": "On."},
    ]
    with serving({"m": [thinking]}) as server:
        model: Any = make_model("openai_chat:m", base_url=server.url, home=tmp_path, temperature=0.5)
        heard = asyncio.run(hear(model, view(history, params={"max_tokens": 9})))
    (body,) = [a.body for a in server.asked]
    assert ("temperature" in body, body["max_completion_tokens"]) == (False, 9)
    assert body["messages"][2] == {"role": "assistant", "content": "Ok.", "reasoning_content": "Hm."}
    assert (heard.message.text, heard.message.reasoning) == ("Hello.", "I think.")
    assert heard.message.extra == {"wire": {"reasoning_content": "I think."}}


def test_reasoning_details_go_back_where_they_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text('[[profile]]\nmatch = "m"\nreasoning_back = "reasoning_details"\n')
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    with serving({"m": [Reply([chunk({"reasoning_details": details}), said("Hello."), ended(), DONE])]}) as server:
        model: Any = make_model("openai_chat:m", base_url=server.url, home=tmp_path)
        heard = asyncio.run(hear(model))
    assert heard.message.extra == {"wire": {"reasoning_details": details}}


# -- windows ----------------------------------------------------------------------------------------------------------

LISTED = {"data": [{"id": "m", "max_model_len": 40_960, "owned_by": "vllm"}, {"id": "other"}]}
SERVERS: dict[str, tuple[dict[str, Any], str, int | None]] = {
    "llama.cpp": (
        {"/props": {"default_generation_settings": {"n_ctx": 2048}}, "/v1/models": {"data": [{"id": "m"}]}},
        "llama.cpp",
        2048,
    ),
    "vllm": ({"/v1/models": LISTED}, "vllm", 40_960),
    "openrouter": ({"/v1/models": {"data": [{"id": "m", "context_length": 65_536}]}}, "", 65_536),
    "top provider": ({"/v1/models": {"data": [{"id": "m", "top_provider": {"context_length": 9000}}]}}, "", 9000),
    "groq": ({"/v1/models": {"data": [{"id": "m", "context_window": 131_072}]}}, "", 131_072),
    "ollama, loaded": (
        {
            "/v1/models": {"data": [{"id": "m"}]},
            "/api/ps": {"models": [{"name": "m", "context_length": 16_384}]},
            "/api/show": {"model_info": {"qwen2.context_length": 32_768}, "parameters": "num_ctx 8192"},
        },
        "ollama",
        16_384,
    ),
    "ollama, set": (
        {"/api/ps": {"models": []}, "/api/show": {"model_info": {}, "parameters": "stop x\nnum_ctx    8192"}},
        "ollama",
        8192,
    ),
    "ollama, neither": (
        {"/api/ps": {"models": []}, "/api/show": {"model_info": {"a.context_length": 32_768}}},
        "ollama",
        4096,
    ),
    "lm studio": (
        {
            "/v1/models": {"data": [{"id": "m"}]},
            "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 7424, "max_context_length": 32_768}]},
        },
        "lmstudio",
        7424,
    ),
    "says nothing": ({"/v1/models": {"data": [{"id": "m"}]}}, "", None),
    "nonsense": ({"/v1/models": ["x"], "/props": [], "/api/ps": "no"}, "", None),
}


@pytest.mark.parametrize("name", SERVERS)
def test_each_kind_of_server_is_asked_in_its_way(name: str) -> None:
    gets, kind, window = SERVERS[name]
    with serving({}, gets=gets) as server:
        found = asyncio.run(ask_server(server.url, "m"))
    assert found is not None
    assert (found.kind, found.window_of("m")) == (kind, window)


def test_nothing_is_posted_to_a_server_that_is_not_ollama() -> None:
    """It might take it for a request, and answer it."""
    with serving({"m": [plainly("ok")]}, gets={"/v1/models": LISTED}) as server:
        asyncio.run(ask_server(server.url, "m"))
    assert server.asked == []
    assert "/api/show" not in server.got


def test_nobody_there_is_nobody() -> None:
    assert asyncio.run(ask_server("http://127.0.0.1:9/v1", "m")) is None


def prepared(url: str, home: Path, **options: Any) -> tuple[int, str]:
    async def run() -> tuple[int, str]:
        model: Any = make_model("openai_chat:m", base_url=url, home=home, **options)
        await model.prepare()
        await model.prepare()
        await model.close()
        return model.window, model.window_source

    return asyncio.run(run())


def test_learned_goes_before_set_before_asked_before_table_before_default(tmp_path: Path) -> None:
    with serving({}, gets={"/v1/models": LISTED}) as server, serving({}) as silent:
        assert prepared(silent.url, tmp_path) == (128_000, "default")
        (tmp_path / "profiles.toml").write_text('[[profile]]\nmatch = "m"\nwindow = 50000\n')
        assert prepared(silent.url, tmp_path) == (50_000, "table")
        assert prepared(server.url, tmp_path) == (40_960, "asked")
        assert prepared(server.url, tmp_path, window=60_000) == (60_000, "set")
        model: Any = make_model("openai_chat:m", base_url=server.url, home=tmp_path)
        asyncio.run(model.prepare())
        model.learn_window(32_000)
        assert prepared(server.url, tmp_path, window=60_000) == (32_000, "learned")
        assert server.got.count("/v1/models") == 3


def test_what_was_learned_goes_when_the_server_is_started_anew(tmp_path: Path) -> None:
    with serving({}, gets={"/v1/models": LISTED}) as server:
        model: Any = make_model("openai_chat:m", base_url=server.url, home=tmp_path)
        asyncio.run(model.prepare())
        model.learn_window(32_000)
        server.gets = {"/v1/models": {"data": [{"id": "m", "max_model_len": 81_920}]}}
        assert prepared(server.url, tmp_path) == (81_920, "asked")
    assert json.loads((tmp_path / "windows.json").read_text()) == {}


def test_a_broken_file_of_windows_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "windows.json").write_text('{"x": 5, "y')
    model: Any = make_model("openai_chat:m", base_url="http://127.0.0.1:9/v1", home=tmp_path)
    model.learn_window(100)
    assert model.window == 128_000
    model.learn_window(5000)
    assert make_model("openai_chat:m", base_url="http://127.0.0.1:9/v1", home=tmp_path).window == 5000


# -- prices -----------------------------------------------------------------------------------------------------------


def test_a_known_price_is_reckoned_with_the_cached_share() -> None:
    full = with_cost(Usage(input=1_000_000, output=0, cached=0), "gpt-4o", FAR).cost
    cached = with_cost(Usage(input=1_000_000, output=0, cached=1_000_000), "gpt-4o", FAR).cost
    written = with_cost(Usage(input=1, output=1_000_000), "gpt-4o", FAR).cost
    assert full is not None and cached is not None and written is not None
    assert 0 < cached < full < written


@pytest.mark.parametrize(
    ("given", "model", "url"),
    [
        (Usage(input=10, output=10), "gpt-4o", "http://127.0.0.1:8000/v1"),
        (Usage(input=10, output=10), "never-heard-of-it", FAR),
        (Usage(input=10, output=10), "gpt-4o", "https://llm.example.com/v1"),
        (Usage(input=None, output=10), "gpt-4o", FAR),
        (Usage(input=10, output=None), "gpt-4o", FAR),
        (Usage(input=10, output=10, cost=0.5), "gpt-4o", FAR),
    ],
)
def test_a_price_is_never_invented(given: Usage, model: str, url: str) -> None:
    assert with_cost(given, model, url) == given


# -- servers on this machine ------------------------------------------------------------------------------------------


def test_servers_are_found_with_their_models() -> None:
    with serving({}, gets={"/v1/models": LISTED}) as one, serving({}) as silent:
        ports = [int(s.url.rsplit(":")[-1].removesuffix("/v1")) for s in (one, silent)]
        found = asyncio.run(find_servers([*ports, 9]))
    assert found == [Server(one.url, "vllm", (Offer("m", 40_960), Offer("other")))]


def test_a_server_needs_no_key() -> None:
    with serving({"m": [plainly("ok")]}) as server:
        model: Any = make_model("openai_chat:m", base_url=server.url)
        assert asyncio.run(hear(model)).message.text == "ok"
    sent = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert sent["authorization"] == "Bearer none"


def test_what_can_be_used_is_listed_with_how_it_is_named(tmp_path: Path) -> None:
    with serving({}, gets={"/v1/models": LISTED}) as configured, serving({}, gets={"/v1/models": LISTED}) as found:
        port = int(found.root.rpartition(":")[2])
        options = ModelOptions(base_url=configured.url, api_key="k", api_key_source="--api-key", home=tmp_path)
        listed = asyncio.run(available(options, [port]))
        without = asyncio.run(available(ModelOptions(home=tmp_path), [9]))
        gone = asyncio.run(available(ModelOptions(base_url="http://127.0.0.1:9/v1", home=tmp_path), [9]))
    assert [(p.title, p.base_url, p.problem) for p in listed] == [
        ("configured", configured.url, ""),
        ("vllm", found.url, ""),
        ("built in", "", "its weights are not here yet: 1.1 GB come with the first use"),
    ]
    assert listed[0].models == (Choice("openai_chat:m", 40_960), Choice("openai_chat:other", None))
    assert listed[2].models == (Choice("local", 8192),)
    assert [p.title for p in without] == ["built in"]
    assert (gone[0].title, gone[0].models, gone[0].problem) == (
        "configured",
        (),
        "nobody answers at http://127.0.0.1:9/v1",
    )
