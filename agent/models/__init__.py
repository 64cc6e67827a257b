"""The providers: one file each. A module here that defines `create(name, options)` is a provider of its own name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from agent.models.base import ModelOptions, config_error
from runtime.model import Model


def providers() -> list[str]:
    """Names of the providers in this package, sorted."""
    return sorted(i.name for i in pkgutil.iter_modules(__path__) if hasattr(_module(i.name), "create"))


def make_model(spec: str, options: ModelOptions | None = None, **given: Any) -> Model:
    """The model that `spec` names: provider:name ("openai_chat:gpt-5", "scripted:demo.jsonl", "local", "local:a.gguf").

    Options come as one ModelOptions or as its fields. Raises ModelError of kind CONFIG where the provider is unknown or
    something it needs is not installed, AUTH where it needs a key and there is none.
    """
    provider, _, name = spec.strip().partition(":")
    known = {i.name for i in pkgutil.iter_modules(__path__)}
    module = _module(provider) if provider in known else None
    if not hasattr(module, "create"):
        words = (
            f"There is no provider {provider!r}. A model is named provider:model; providers: {', '.join(providers())}."
        )
        if provider and ":" not in spec:
            words += f" For a server that speaks OpenAI's chat completions: openai_chat:{provider}."
        raise config_error(words)
    return module.create(name, options or ModelOptions(**given))  # type: ignore[union-attr]


def _module(name: str) -> Any:
    return importlib.import_module(f"{__package__}.{name}")
