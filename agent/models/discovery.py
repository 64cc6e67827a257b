"""What can be used: the configured server, servers on this machine on the ports where they usually are, the built-in
model."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.models.base import ModelOptions
from agent.models.introspect import Server, ask_server
from agent.models.openai_chat import DEFAULT_URL
from agent.models.profiles import profile_for
from agent.models.weights import find_weights

PORTS: Mapping[str, int] = {"ollama": 11434, "lmstudio": 1234, "llama.cpp": 8080, "vllm": 8000}
"""Kind of server -> the port it listens on where nobody has said otherwise."""
TITLES: Mapping[str, str] = {"ollama": "Ollama", "lmstudio": "LM Studio", "llama.cpp": "llama.cpp", "vllm": "vLLM"}
"""What people call each kind."""
PATIENCE = 0.6
"""Seconds: this machine answers in a few milliseconds or not at all."""


@dataclass(frozen=True)
class Choice:
    """One model that can be used: `spec` as it is named on the command line, `window` in tokens where it is known."""

    spec: str
    window: int | None = None


@dataclass(frozen=True)
class Place:
    """Where models are: a server or this program. `problem` says why there are none, or what is missing."""

    title: str
    base_url: str = ""
    models: tuple[Choice, ...] = ()
    problem: str = ""


async def available(options: ModelOptions, ports: Sequence[int] | None = None) -> list[Place]:
    """Every model that can be used now: the configured server first, then what is found, then the built-in one."""
    configured, found = await asyncio.gather(_configured(options), find_servers(ports))
    places = [configured] if configured else []
    known = {configured.base_url.rstrip("/")} if configured else set()
    places += [Place(s.kind, s.base_url, _choices(s, options.home)) for s in found if s.base_url not in known]
    return [*places, _built_in(options)]


async def _configured(options: ModelOptions) -> Place | None:
    if not options.api_key and not options.base_url:
        return None
    url = options.base_url or DEFAULT_URL
    server = await ask_server(url, api_key=options.api_key)
    if server is None:
        return Place("configured", url, problem=f"nobody answers at {url}")
    models = _choices(server, options.home)
    return Place("configured", url, models, "" if models else "it lists no models; name one as openai_chat:NAME")


def _choices(server: Server, home: Path) -> tuple[Choice, ...]:
    return tuple(Choice(f"openai_chat:{m.name}", m.window or profile_for(m.name, home).window) for m in server.models)


def _built_in(options: ModelOptions) -> Place:
    window = options.window or profile_for("local", options.home).window
    problem = ""
    if importlib.util.find_spec("xllamacpp") is None:
        problem = "needs the extra: pip install 'refold[local]'"
    elif find_weights(options.home / "models", str(options.extra.get("local_model") or "")) is None:
        problem = "its weights are not here yet: 1.1 GB come with the first use"
    return Place("built in", models=(Choice("local", window),), problem=problem)


async def find_servers(ports: Sequence[int] | None = None, patience: float = PATIENCE) -> list[Server]:
    """The servers that answer on loopback, in the order of `PORTS`, with their models."""
    wanted = list(PORTS.values()) if ports is None else list(ports)
    found = await asyncio.gather(*(_find(port, patience) for port in wanted))
    return [server for server in found if server is not None and server.models]


async def _find(port: int, patience: float) -> Server | None:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), patience)
    except (OSError, TimeoutError):
        return None
    writer.close()
    server = await ask_server(f"http://127.0.0.1:{port}/v1", patience=patience)
    if server is None or server.kind:
        return server
    usual = next((kind for kind, usual in PORTS.items() if usual == port), "")
    return replace(server, kind=usual)
