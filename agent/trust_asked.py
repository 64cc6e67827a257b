"""What the person has said to the question about trust besides yes: not now, or never for this folder.

Kept in home/trust-asked.json. It widens nothing: it only keeps the chat from asking again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent.private import read_object, write_private
from agent.trust import Brought


class Asked:
    """The answers for one folder. What cannot be read counts as not asked yet."""

    def __init__(self, home: Path, root: str) -> None:
        self._file = home / "trust-asked.json"
        self._root = root

    def quiet(self, files: Iterable[Brought]) -> bool:
        """Whether there is nothing to ask about these files: each was put off as it is now, or the folder for good."""
        entry = read_object(self._file).get(self._root)
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

    def _save(self, entry: dict[str, Any]) -> None:
        write_private(self._file, json.dumps({**read_object(self._file), self._root: entry}, indent=1))
