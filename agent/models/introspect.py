"""Asks a server how large the window is and what models it has. Each kind of server tells it in its own way.

llama.cpp: /props · vLLM, OpenRouter, Groq, Mistral and others: a field of /v1/models · Ollama: /api/ps for what is
loaded, /api/show for num_ctx · LM Studio: /api/v0/models. Whoever does not answer within a moment is not asked.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.models.connection import is_loopback

PATIENCE = 2.0
"""Seconds to wait for all answers: the person's first request waits behind them."""
LARGEST = 8 << 20
"""Bytes of a model list that are read at most; OpenRouter's has about one million."""
OLLAMA_DEFAULT = 4096
"""Tokens Ollama gives a model whose num_ctx nobody has set, and cuts the conversation to without a word."""

WINDOW_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
)
"""Names that servers have for the window, the surest first."""


@dataclass(frozen=True)
class Offer:
    """One model of a server; `window` in tokens, None where the server does not say."""

    name: str
    window: int | None = None


@dataclass(frozen=True)
class Server:
    """What a server says about itself. `kind`: llama.cpp, ollama, lmstudio, vllm, or "" where it does not show."""

    base_url: str
    kind: str = ""
    models: tuple[Offer, ...] = ()

    def window_of(self, model: str) -> int | None:
        """The window it gives a model, in tokens."""
        return next((m.window for m in self.models if m.name == model), None)


async def ask_server(base_url: str, model: str = "", api_key: str = "", patience: float = PATIENCE) -> Server | None:
    """What the server at `base_url` says, with the window of `model` where it can be had. None: nobody answers."""
    root = re.sub(r"/v\d+/?$", "", base_url.rstrip("/"))
    own = base_url.startswith("http://")  # nobody's public service: a machine of the person's
    async with _Asker(base_url, api_key, patience) as asker:
        listed, props, loaded, studio = await asyncio.gather(
            asker.get(f"{base_url.rstrip('/')}/models"),
            asker.get(f"{root}/props") if own else _nothing(),
            asker.get(f"{root}/api/ps") if own else _nothing(),
            asker.get(f"{root}/api/v0/models") if own else _nothing(),
        )
        shown = None
        if model and "models" in _mapping(loaded):  # only Ollama: another server might take a POST for a request
            shown = await asker.post(f"{root}/api/show", {"model": model})
    if listed is None and props is None and loaded is None:
        return None
    offers = {o.name: o for o in _listed(listed)}
    kind = _kind(props, shown, loaded, studio, listed)
    window = _props_window(props) or _ollama_window(model, shown, loaded)
    if window and model:
        offers[model] = Offer(model, window)
    offers |= {o.name: o for o in _listed(studio) if o.window}
    return Server(base_url, kind, tuple(offers.values()))


class _Asker:
    """A short-lived client whose every failure is None."""

    def __init__(self, base_url: str, api_key: str, patience: float) -> None:
        import httpx2

        self._httpx = httpx2
        self._patience = patience
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(
            timeout=patience, headers=headers, trust_env=not is_loopback(base_url), follow_redirects=True
        )

    async def __aenter__(self) -> _Asker:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    async def get(self, url: str) -> Any:
        return await self._ask("GET", url, None)

    async def post(self, url: str, body: Mapping[str, Any]) -> Any:
        return await self._ask("POST", url, body)

    async def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> Any:
        try:
            async with asyncio.timeout(self._patience), self._client.stream(method, url, json=body) as response:
                if response.status_code != 200:
                    return None
                data = bytearray()
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > LARGEST:
                        return None
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError):  # TimeoutError is an OSError
            return None
        return _json(bytes(data))


async def _nothing() -> None:
    return None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _listed(answer: Any) -> list[Offer]:
    rows = answer.get("data") if isinstance(answer, Mapping) else answer
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return []
    return [Offer(str(r["id"]), _window_in(r)) for r in rows if isinstance(r, Mapping) and r.get("id")]


def _window_in(row: Mapping[str, Any]) -> int | None:
    places = (row, _mapping(row.get("top_provider")), _mapping(row.get("meta")), _mapping(row.get("limits")))
    return next((w for name in WINDOW_FIELDS for p in places if (w := _tokens(p.get(name)))), None)


def _props_window(props: Any) -> int | None:
    found = _mapping(props)
    settings = _mapping(found.get("default_generation_settings"))
    return _tokens(settings.get("n_ctx")) or _tokens(found.get("n_ctx"))


def _ollama_window(model: str, shown: Any, loaded: Any) -> int | None:
    """What is loaded is loaded with that; else num_ctx of the model; else what Ollama does by itself."""
    rows = [_mapping(row) for row in _mapping(loaded).get("models") or ()]
    mine = [r for r in rows if model in (r.get("name"), r.get("model"), str(r.get("name")).split(":")[0])]
    if mine and (window := _tokens(mine[0].get("context_length"))):
        return window
    found = _mapping(shown)
    if "model_info" not in found and "parameters" not in found:
        return None
    told = re.search(r"\bnum_ctx\s+(\d+)", str(found.get("parameters") or ""))
    if told:
        return _tokens(int(told[1]))
    info = _mapping(found.get("model_info"))
    trained = next((_tokens(v) for k, v in info.items() if k.endswith(".context_length")), None)
    return min(OLLAMA_DEFAULT, trained or OLLAMA_DEFAULT)


def _kind(props: Any, shown: Any, loaded: Any, studio: Any, listed: Any) -> str:
    if _props_window(props):
        return "llama.cpp"
    if "models" in _mapping(loaded) or "model_info" in _mapping(shown):
        return "ollama"
    if _listed(studio):
        return "lmstudio"
    rows = _mapping(listed).get("data") or [{}]
    return "vllm" if isinstance(rows, list) and _mapping(rows[0]).get("owned_by") == "vllm" else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 256 else None
