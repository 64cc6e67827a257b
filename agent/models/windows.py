"""How large a model's window is, and who said so: learned > set > asked > table > default."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.models.base import ModelOptions
from agent.private import read_object, write_private

DEFAULT = 128_000
"""Tokens, where nobody knows."""
SMALLEST = 256
"""Tokens below which a number that a server names is no window."""


class Window:
    """The window of one model at one server. Learned values are kept in home/windows.json, per (base URL, model)."""

    def __init__(self, base_url: str, model: str, options: ModelOptions, table: int | None = None) -> None:
        self._key = f"{base_url} {model}"
        self._path = options.home / "windows.json"
        self._old = _remembered(self._path).get(self._key, {})
        self._learned: int | None = self._old.get("window")
        self._set = options.window
        self._asked: int | None = None
        self._table = table

    @property
    def tokens(self) -> int:
        """The window in tokens."""
        return self._learned or self._set or self._asked or self._table or DEFAULT

    @property
    def source(self) -> str:
        """learned, set, asked, table or default."""
        found = {"learned": self._learned, "set": self._set, "asked": self._asked, "table": self._table}
        return next((name for name, value in found.items() if value), "default")

    def ask(self, tokens: int | None) -> None:
        """Takes what the server says about itself. What was learned from it once, while it said something else, is out
        of date: it has been started anew with another window."""
        self._asked = tokens if tokens and tokens >= SMALLEST else None
        if self._asked and self._old and self._old.get("asked") != self._asked:
            self.forget()
        self._old = {}

    def learn(self, tokens: int) -> None:
        """Takes and remembers what an error proved. A file that cannot be written is no reason to stop."""
        if tokens < SMALLEST:
            return
        self._learned = tokens
        self._save({**_remembered(self._path), self._key: {"window": tokens, "asked": self._asked}})

    def forget(self) -> None:
        """Takes back what was learned: it was no proof after all."""
        self._learned = None
        self._save({k: v for k, v in _remembered(self._path).items() if k != self._key})

    def _save(self, everything: dict[str, Any]) -> None:
        with suppress(OSError):
            write_private(self._path, json.dumps(everything, indent=1, sort_keys=True))


def _remembered(path: Path) -> dict[str, Any]:
    return {key: value for key, value in read_object(path).items() if isinstance(value, dict)}
