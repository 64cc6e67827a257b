"""What the person has said to the question about trust besides yes: not now, or never for this folder.

Kept in home/trust-asked.json. It widens nothing: it only keeps the chat from asking again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent.trust import Brought


class Asked:
    """The answers for one folder. What cannot be read counts as not asked yet."""

    def __init__(self, home: Path, root: str) -> None:
        self._file = home / "trust-asked.json"
        self._root = root

    def quiet(self, files: Iterable[Brought]) -> bool:
        """Whether there is nothing to ask about these files: each was put off as it is now, or the folder for good."""
        entry = self._load().get(self._root)
        seen = entry.get("seen") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and entry.get("never") is True:
            return True
        return isinstance(seen, dict) and all(seen.get(b.path) == b.sha for b in files)

    def put_off(self, files: Iterable[Brought]) -> None:
        """Not now: quiet until one of the files changes or another comes. Raises OSError."""
        self._save({"seen": {b.path: b.sha for b in files}})

    def never(self) -> None:
        """Quiet in this folder whatever it brings along; /trust still works. Raises OSError."""
        self._save({"never": True})

    def _load(self) -> dict[str, Any]:
        try:
            data = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _save(self, entry: dict[str, Any]) -> None:
        data = {**self._load(), self._root: entry}
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._file.with_name(f".trust-asked.{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        os.replace(temporary, self._file)
