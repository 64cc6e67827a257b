"""What is known about models, as data: profiles.toml here, then the person's own in ~/.refold."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent.faults import reason
from agent.models.base import config_error

SHIPPED = Path(__file__).with_name("profiles.toml")


@dataclass(frozen=True)
class ModelProfile:
    """One model as profiles.toml describes it; the words of that file say what each field means. `window` and
    `output_reserve` are tokens."""

    window: int | None = None
    output_reserve: int | None = None
    edit_format: str = "edit"
    tool_protocol: str = "native"
    prompt: str = "full"
    tools: tuple[str, ...] = ()
    effort: str = ""
    takes_images: bool = False
    output_field: str = "max_tokens"
    reasoning_back: str = ""
    think_open: bool = False
    without: tuple[str, ...] = ()

    @property
    def small(self) -> bool:
        """Whether the model is told little."""
        return self.prompt == "small"


_TYPES = {f.name: f.type for f in fields(ModelProfile)}
_CHOICES = {
    "edit_format": ("edit", "apply_patch", "whole"),
    "tool_protocol": ("native", "text"),
    "prompt": ("full", "small"),
}


def profile_for(model: str, home: Path | None = None) -> ModelProfile:
    """The profile of a model by its name. Raises ModelError CONFIG where the person's file is wrong."""
    name = model.lower().rpartition("/")[2]
    own = home / "profiles.toml" if home is not None else None
    found = [*_entries(SHIPPED, 0), *(_entries(own, own.stat().st_mtime_ns) if own and os.path.isfile(own) else ())]
    profile = ModelProfile()
    for patterns, values in found:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            profile = replace(profile, **values)
    return profile


@functools.lru_cache(maxsize=8)
def _entries(path: Path, version: int) -> tuple[tuple[Sequence[str], Mapping[str, Any]], ...]:
    """(patterns, values) of a file; `version` makes a changed file a new one."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise config_error(f"{path} cannot be read: {reason(error, path)}") from error
    entries = data.get("profile", [])
    return tuple(_entry(path, entry) for entry in ([entries] if isinstance(entries, dict) else entries))


def _entry(path: Path, entry: Mapping[str, Any]) -> tuple[Sequence[str], Mapping[str, Any]]:
    values = dict(entry)
    patterns = values.pop("match", None)
    patterns = [patterns] if isinstance(patterns, str) else patterns
    if not patterns:
        raise config_error(f"{path}: a profile has no `match`.")
    for key, value in values.items():
        problem = _problem(key, value)
        if problem:
            raise config_error(f"{path}: {key} {problem} (in the profile of {', '.join(patterns)}).")
    lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    return [p.lower() for p in patterns], {**values, **lists}


def _problem(key: str, value: Any) -> str:
    """What is wrong with one value, in words that follow its name; "" where nothing is."""
    kind = str(_TYPES.get(key, ""))
    if not kind:
        return f"is no field of a profile; there are {', '.join(_TYPES)}"
    if key in _CHOICES and value not in _CHOICES[key]:
        return f"must be one of {', '.join(_CHOICES[key])}, not {value!r}"
    if kind.startswith("int") and (not isinstance(value, int) or isinstance(value, bool) or value < 256):
        return f"must be a number of tokens, not {value!r}"
    wanted: tuple[str, type] | None = {"str": ("a text", str), "bool": ("true or false", bool)}.get(kind)
    if kind.startswith("tuple"):
        return "" if isinstance(value, list) and all(isinstance(v, str) for v in value) else "must be a list of texts"
    return f"must be {wanted[0]}, not {value!r}" if wanted and not isinstance(value, wanted[1]) else ""
