"""What all providers share: how they are told what to do, and how they refuse."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.model import ModelError, ModelErrorKind
from transcripts.records import Usage

TIMEOUT = 300.0
"""Seconds without a byte after which a stream counts as stalled; models that think in silence take minutes."""


@dataclass(frozen=True)
class ModelOptions:
    """What a provider is told. `api_key_source` says in words where the key came from ("OPENAI_API_KEY in ~/.env").

    `window` and `output_reserve` are tokens as the person set them; None where they did not. `timeout` is seconds
    without a byte. `effort` is the reasoning effort, "" for the provider's own. `home` is the folder for caches and
    learned windows. `extra` holds what only one provider understands; those keys are documented with the provider.
    """

    api_key: str = field(default="", repr=False)
    api_key_source: str = ""
    base_url: str = ""
    window: int | None = None
    output_reserve: int | None = None
    timeout: float = TIMEOUT
    temperature: float | None = None
    effort: str = ""
    home: Path = field(default_factory=lambda: Path(os.path.expanduser("~/.refold")))
    extra: Mapping[str, Any] = field(default_factory=dict)


def config_error(message: str) -> ModelError:
    """Something about the choice of the model is wrong; the person has to change it."""
    return ModelError(ModelErrorKind.CONFIG, message)


def usage_of(reported: Mapping[str, Any] | None, model: str, started: float) -> Usage:
    """A provider's usage object as ours. Zero and missing both mean unknown; cumulative reports replace each other.

    `started` is the time.monotonic() of the request. Understands OpenAI's two forms, DeepSeek's cache fields and
    OpenRouter's cost.
    """
    r = reported or {}
    details = _mapping(r.get("prompt_tokens_details") or r.get("input_tokens_details"))
    written = _mapping(r.get("completion_tokens_details") or r.get("output_tokens_details"))
    cost = r.get("cost")
    return Usage(
        input=_count(r, "prompt_tokens", "input_tokens"),
        output=_count(r, "completion_tokens", "output_tokens"),
        cached=_count(details, "cached_tokens") or _count(r, "prompt_cache_hit_tokens", "cached_tokens"),
        reasoning=_count(written, "reasoning_tokens"),
        cost=float(cost) if isinstance(cost, (int, float)) and cost > 0 else None,
        seconds=round(time.monotonic() - started, 3),
        model=model,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(data: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = data.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return int(value)
    return None
