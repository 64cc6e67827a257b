"""What was typed, over all sessions: one JSON line an entry in ~/.refold/history.jsonl."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

READ = 1_000_000
"""Bytes of the file's end that are looked at: some ten thousand entries."""

LONGEST = 20_000
"""Characters of an entry that are kept."""


class InputHistory(History):
    """Entries of all sessions, the newest first; what cannot be read or written is left out without a word."""

    def __init__(self, path: Path, cwd: str) -> None:
        super().__init__()
        self._path = path
        self._cwd = cwd

    def load_history_strings(self) -> Iterable[str]:
        seen: set[str] = set()
        for line in reversed(self._tail()):
            try:
                text = json.loads(line)["text"]
            except (ValueError, KeyError, TypeError):
                continue
            if isinstance(text, str) and text not in seen:
                seen.add(text)
                yield text

    def store_string(self, string: str) -> None:
        entry = {"at": round(time.time()), "cwd": self._cwd, "text": string[:LONGEST]}
        line = json.dumps(entry, ensure_ascii=True) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError:
            pass

    def _tail(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, self._path.stat().st_size - READ))
                return file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []
