"""What the first start finds, and what it writes down."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from agent.first_run import NO_KEY, Offer, chosen, find_offers, keep, models_of
from agent.models.discovery import PORTS, TITLES
from agent.settings import Settings
from tests.support.provider_server import serving

BARE = {"REFOLD_ENV_FILE": ""}


def settings(home: Path, **env: str) -> Settings:
    return Settings.load({}, {**BARE, "REFOLD_HOME": str(home), **env})


def test_keys_are_offered_by_their_names(tmp_path: Path) -> None:
    env = {"OPENROUTER_API_KEY": "or-1", "MISTRAL_API_KEY": ""}
    found = {o.label: o for o in find_offers(settings(tmp_path), env)}
    assert found["OpenRouter"] == Offer(
        "OpenRouter", "with OPENROUTER_API_KEY", base_url="https://openrouter.ai/api/v1", key="or-1"
    )
    assert "Mistral" not in found
    assert any(label.startswith("Built in") for label in found)


def test_weights_that_are_here_are_not_said_to_be_fetched(tmp_path: Path) -> None:
    other = find_offers(settings(tmp_path), {})[-1]
    named = find_offers(settings(tmp_path, REFOLD_LOCAL_MODEL="/models/coder-7b.gguf"), {})[-1]
    assert (other.label, other.note) == ("Built in (Qwen2.5-Coder 1.5B)", "runs here; 1.1 GB are fetched once")
    assert (named.label, named.note) == ("Built in (coder-7b)", "runs on this machine")


def test_a_configured_server_comes_first_even_if_it_lists_nothing(tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k"}
    first = find_offers(settings(tmp_path, **env), env)[0]
    assert (first.label, first.base_url, first.key, first.models) == (
        "The configured server",
        "http://127.0.0.1:9/v1",
        "k",
        (),
    )


def test_servers_of_this_machine_are_offered_with_what_they_have(tmp_path: Path) -> None:
    ollama = {"/v1/models": {"data": [{"id": "b"}, {"id": "a"}]}, "/api/ps": {"models": []}}
    plain = {"/v1/models": {"data": [{"id": "m"}]}}
    with serving({}, gets=ollama) as first, serving({}, gets=plain) as second, serving({}) as empty:
        ports = [urlsplit(s.url).port or 0 for s in (first, second, empty)]
        env = {"OLLAMA_HOST": f"127.0.0.1:{ports[0]}"}
        found = find_offers(settings(tmp_path), env, ports)[:-1]
        assert models_of(first.url, "", 1) == ["a", "b"]
    assert found == [
        Offer("Ollama", f"2 models at 127.0.0.1:{ports[0]}", base_url=first.url, key=NO_KEY, models=("a", "b")),
        Offer("A server", f"1 model at 127.0.0.1:{ports[1]}", base_url=second.url, key=NO_KEY, models=("m",)),
    ]
    assert models_of("http://127.0.0.1:9/v1", "", 1) == []


def test_every_usual_port_has_a_name_for_people() -> None:
    assert TITLES.keys() == PORTS.keys()


def test_a_choice_is_kept_and_found_again(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('theme = "dark"\nmodel = "old:one"\n\n[table]\nx = 1\n')
    offer = Offer("OpenRouter", "", base_url="https://openrouter.ai/api/v1", key="or-1")
    made = chosen(settings(tmp_path), offer, "some/model")
    assert keep(tmp_path, made, {}) == [tmp_path / "config.toml", tmp_path / ".env"]
    assert stat.S_IMODE(os.stat(tmp_path / ".env").st_mode) == 0o600
    again = Settings.load({}, {"REFOLD_HOME": str(tmp_path), "REFOLD_ENV_FILE": str(tmp_path / ".env")})
    assert (again.model, again.base_url, again.api_key, again.theme) == (
        "openai_chat:some/model",
        "https://openrouter.ai/api/v1",
        "or-1",
        "dark",
    )
    assert "[table]" in (tmp_path / "config.toml").read_text()


def test_a_key_of_the_environment_is_not_written_down(tmp_path: Path) -> None:
    made = chosen(settings(tmp_path), Offer("OpenAI", "", base_url="https://api.openai.com/v1", key="sk-1"), "gpt-5")
    assert keep(tmp_path, made, {"OPENAI_API_KEY": "sk-1"}) == [tmp_path / "config.toml"]
    assert not (tmp_path / ".env").exists()


def test_the_local_model_needs_neither_key_nor_address(tmp_path: Path) -> None:
    made = chosen(settings(tmp_path), Offer("Built in", "", provider="local", model="local"), "")
    keep(tmp_path, made, {})
    assert (tmp_path / "config.toml").read_text() == 'model = "local"\n'
    assert NO_KEY not in (tmp_path / "config.toml").read_text()
