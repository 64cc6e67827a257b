"""The first start: which models could be used here, and where a choice is kept.

Looks for keys in the environment, for servers on this machine, and for the built-in model. Nothing is sent anywhere
but to this machine's own ports, until the person has chosen.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from agent.models.weights import find_weights
from agent.settings import Settings

PATIENCE = 0.7
"""Seconds a server on this machine has to answer."""

SERVERS = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
)
"""Where these servers listen if nobody told them otherwise."""

KEYS = (
    ("OPENAI_API_KEY", "OpenAI", "https://api.openai.com/v1", "gpt-5"),
    ("OPENROUTER_API_KEY", "OpenRouter", "https://openrouter.ai/api/v1", ""),
    ("ANTHROPIC_API_KEY", "Anthropic", "https://api.anthropic.com/v1", ""),
    ("GEMINI_API_KEY", "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", ""),
    ("DEEPSEEK_API_KEY", "DeepSeek", "https://api.deepseek.com/v1", ""),
    ("MISTRAL_API_KEY", "Mistral", "https://api.mistral.ai/v1", ""),
    ("GROQ_API_KEY", "Groq", "https://api.groq.com/openai/v1", ""),
    ("XAI_API_KEY", "xAI", "https://api.x.ai/v1", ""),
)
"""(variable, provider, its OpenAI-compatible address, a model to begin with)."""

NO_KEY = "none"
"""The key of a server that asks for none."""

MODES = (
    ("ask", "reads freely, asks before every edit and command"),
    ("auto", "works freely in this folder, in a sandbox; asks for all beyond it"),
    ("yolo", "asks for nothing (plan: changes nothing). Shift+Tab changes the mode"),
)
"""Three lines on who decides what."""


@dataclass(frozen=True)
class Offer:
    """One way to a model. `models` are the names the server gave; `key` is secret."""

    label: str
    note: str
    provider: str = "openai_chat"
    base_url: str = ""
    key: str = ""
    model: str = ""
    models: tuple[str, ...] = ()


def find_offers(settings: Settings, env: Mapping[str, str]) -> list[Offer]:
    """What there is: the server that is configured, local ones that answer, keys, the built-in model. Takes little more
    than PATIENCE, where the configured server is slow a few seconds."""
    servers = [*_own_servers(env), *SERVERS]
    with ThreadPoolExecutor(len(servers) + 1) as pool:
        configured = pool.submit(_configured, settings)
        answers = list(pool.map(lambda server: _server(*server), servers))
        found = [*configured.result(), *(offer for offer in answers if offer is not None)]
    found += [
        Offer(label, f"with {variable}", base_url=url, key=env[variable], model=model)
        for variable, label, url, model in KEYS
        if env.get(variable) and not (settings.base_url and variable == "OPENAI_API_KEY")
    ]
    return [*found, _built_in(settings)]


def _configured(settings: Settings) -> list[Offer]:
    """The server of `base_url`, first of all; it is offered too where it lists nothing."""
    if not settings.base_url:
        return []
    url, key = settings.base_url.rstrip("/"), settings.api_key
    names = models_of(url, key, 5.0)
    words = f"{url.partition('://')[2]}, {settings.source('base_url')}"
    return [Offer("The configured server", words, base_url=url, key=key or NO_KEY, models=tuple(names))]


def _own_servers(env: Mapping[str, str]) -> list[tuple[str, str]]:
    host = env.get("OLLAMA_HOST", "")
    if not host:
        return []
    address = host if "://" in host else f"http://{host}"
    return [("Ollama", f"{address.rstrip('/').replace('0.0.0.0', '127.0.0.1')}/v1")]


def _server(label: str, url: str) -> Offer | None:
    models = models_of(url, "", PATIENCE)
    if not models:
        return None
    words = f"{len(models)} model{'s' if len(models) > 1 else ''} at {url.removeprefix('http://').removesuffix('/v1')}"
    return Offer(label, words, base_url=url, key=NO_KEY, models=tuple(models))


def _built_in(settings: Settings) -> Offer:
    named = Path(settings.local_model).stem
    label = f"Built in ({named or 'Qwen2.5-Coder 1.5B'})"
    if importlib.util.find_spec("xllamacpp") is None:
        return Offer(label, "needs: pip install 'refold[local]'", provider="", model="local")
    here = bool(named) or find_weights(settings.home / "models") is not None
    note = "runs on this machine" if here else "runs here; 1.1 GB are fetched once"
    return Offer(label, note, provider="local", model="local")


def models_of(url: str, key: str, patience: float) -> list[str]:
    """The models a server lists; none where it does not answer as such a server does."""
    request = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({} if "//127." in url else None))
    try:
        with opener.open(request, timeout=patience) as answer:
            data = json.loads(answer.read(4_000_000))
        return sorted(str(m["id"]) for m in data["data"])
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError):
        return []


def chosen(settings: Settings, offer: Offer, model: str) -> Settings:
    """The settings with this choice."""
    spec = "local" if offer.provider == "local" else f"{offer.provider}:{model}"
    sources = {**settings.sources, "model": "chosen at the start"}
    return replace(settings, model=spec, base_url=offer.base_url, api_key=offer.key, sources=sources)


def keep(home: Path, settings: Settings, env: Mapping[str, str]) -> list[Path]:
    """Keeps model and address in config.toml, the key in .env (readable by its owner only) unless the environment has
    it anyway. Returns what was written. Raises OSError."""
    home.mkdir(parents=True, exist_ok=True)
    known = {"", NO_KEY, env.get("OPENAI_API_KEY", ""), env.get("REFOLD_API_KEY", "")}
    secret = settings.api_key not in known
    values = {
        "model": settings.model,
        "base_url": settings.base_url,
        "api_key": NO_KEY if settings.api_key == NO_KEY else "",
    }
    _set_lines(home / "config.toml", {k: f"{k} = {json.dumps(v)}" for k, v in values.items() if v}, 0o644)
    if secret:
        _set_lines(home / ".env", {"OPENAI_API_KEY": f"OPENAI_API_KEY={settings.api_key}"}, 0o600)
    return [home / "config.toml", *([home / ".env"] if secret else [])]


def _set_lines(path: Path, lines: Mapping[str, str], mode: int) -> None:
    """Puts `name = value` lines into a file, each in the place of the line that set the name before. What else the
    file says stays; tables come after the new lines, as TOML wants it."""
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [x for x in old if (m := re.match(r"\s*(\w+)\s*=", x)) is None or m[1] not in lines]
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines.values(), *kept]) + "\n")
