"""The first start: which models could be used here, and where a choice is kept.

Looks for keys in the environment, for servers on this machine, and for the built-in model. Nothing is sent anywhere
but to this machine's own ports, until the person has chosen.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.models.discovery import TITLES, find_servers
from agent.models.introspect import Server, ask_server
from agent.models.weights import find_weights
from agent.settings import Settings
from transcripts.files import private_folder

PATIENCE = 5.0
"""Seconds the configured server has to answer: it may be far away."""

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
    ("ask", "reads freely, asks before every edit and command (edits: commands only)"),
    ("auto", "works freely in this folder, in a sandbox; asks for all beyond it"),
    ("yolo", "asks for nothing. Shift+Tab changes the mode; in plan nothing is changed"),
)
"""Three lines on who decides what, each within 80 columns."""


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


def find_offers(settings: Settings, env: Mapping[str, str], ports: Sequence[int] | None = None) -> list[Offer]:
    """What there is: the server that is configured, those on this machine that answer (on `ports`, else on the usual
    ones), keys, the built-in model. To be called where no event loop runs; takes a second, where the configured server
    is slow PATIENCE."""
    found = asyncio.run(_servers(settings, env, ports))
    found += [
        Offer(label, f"with {variable}", base_url=url, key=env[variable], model=model)
        for variable, label, url, model in KEYS
        if env.get(variable) and not (settings.base_url and variable == "OPENAI_API_KEY")
    ]
    return [*found, _built_in(settings)]


async def _servers(settings: Settings, env: Mapping[str, str], ports: Sequence[int] | None) -> list[Offer]:
    configured, own, usual = await asyncio.gather(_configured(settings), _own_server(env), find_servers(ports))
    servers = {server.base_url: server for server in (*own, *usual)}
    return [*configured, *map(_offer, servers.values())]


async def _configured(settings: Settings) -> list[Offer]:
    """The server of `base_url`, first of all; it is offered too where it lists nothing."""
    if not settings.base_url:
        return []
    url, key = settings.base_url.rstrip("/"), settings.api_key
    server = await ask_server(url, api_key=key, patience=PATIENCE)
    words = f"{url.partition('://')[2]}, {settings.source('base_url')}"
    return [Offer("The configured server", words, base_url=url, key=key or NO_KEY, models=_names(server))]


async def _own_server(env: Mapping[str, str]) -> list[Server]:
    """The Ollama that its own variable names, where it answers."""
    host = env.get("OLLAMA_HOST", "")
    if not host:
        return []
    address = host if "://" in host else f"http://{host}"
    server = await ask_server(f"{address.rstrip('/').replace('0.0.0.0', '127.0.0.1')}/v1")
    return [replace(server, kind="ollama")] if server and server.models else []


def _offer(server: Server) -> Offer:
    models = _names(server)
    place = server.base_url.removeprefix("http://").removesuffix("/v1")
    words = f"{len(models)} model{'s' if len(models) > 1 else ''} at {place}"
    label = TITLES.get(server.kind, "A server")
    return Offer(label, words, base_url=server.base_url, key=NO_KEY, models=models)


def _built_in(settings: Settings) -> Offer:
    named = Path(settings.local_model).stem
    label = f"Built in ({named or 'Qwen2.5-Coder 1.5B'})"
    if importlib.util.find_spec("xllamacpp") is None:
        return Offer(label, "needs: pip install 'refold[local]'", provider="", model="local")
    here = bool(named) or find_weights(settings.home / "models") is not None
    note = "runs on this machine" if here else "runs here; 1.1 GB are fetched once"
    return Offer(label, note, provider="local", model="local")


def models_of(url: str, key: str, patience: float) -> list[str]:
    """The models a server lists; none where it does not answer as such a server does within `patience` seconds. To be
    called where no event loop runs."""
    return list(_names(asyncio.run(ask_server(url, api_key=key, patience=patience))))


def _names(server: Server | None) -> tuple[str, ...]:
    return tuple(sorted(m.name for m in server.models)) if server else ()


def chosen(settings: Settings, offer: Offer, model: str) -> Settings:
    """The settings with this choice."""
    spec = "local" if offer.provider == "local" else f"{offer.provider}:{model}"
    sources = {**settings.sources, "model": "chosen at the start"}
    return replace(settings, model=spec, base_url=offer.base_url, api_key=offer.key, sources=sources)


def keep(home: Path, settings: Settings, env: Mapping[str, str]) -> list[Path]:
    """Keeps model and address in config.toml, the key in .env (readable by its owner only) unless the environment has
    it anyway. Returns what was written. Raises OSError."""
    private_folder(home)
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
    old = path.read_text(encoding="utf-8").splitlines() if os.path.exists(path) else []
    kept = [x for x in old if (m := re.match(r"\s*(\w+)\s*=", x)) is None or m[1] not in lines]
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines.values(), *kept]) + "\n")
