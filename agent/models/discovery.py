"""Model servers on this machine, found on the ports where they usually are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.models.introspect import Server, ask_server

PORTS: Mapping[str, int] = {"ollama": 11434, "lmstudio": 1234, "llama.cpp": 8080, "vllm": 8000}
"""Kind of server -> the port it listens on where nobody has said otherwise."""
PATIENCE = 0.6
"""Seconds: this machine answers in a few milliseconds or not at all."""


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
