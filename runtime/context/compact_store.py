"""CompactStore: the folds of a session, append-only like the history, in the same log."""

from __future__ import annotations

import secrets
from typing import Any

from transcripts.log import Entry
from transcripts.records import Checkpoint


class CompactStore:
    """Which checkpoints exist and which one is active: the newest that was neither undone nor rewound over."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._dropped: set[str] = set()

    def append(self, entry: Entry) -> None:
        """Takes the next entry of the log; what does not concern folds is passed over."""
        if entry.kind == "checkpoint":
            self._entries.append(entry)
        elif entry.kind == "unfold":
            self._dropped.add(entry.record.checkpoint)
        elif entry.kind == "rewind":
            self._dropped |= {e.record.id for e in self._entries if e.record.upto > entry.record.to}

    @property
    def active_checkpoint(self) -> Checkpoint | None:
        """The fold that shapes the view now, or None."""
        return next((e.record for e in reversed(self._entries) if e.record.id not in self._dropped), None)

    @property
    def checkpoints(self) -> list[Entry]:
        """Every fold ever made, in order."""
        return list(self._entries)

    def create_checkpoint(self, **values: Any) -> Checkpoint:
        """A new checkpoint with an id of its own. It counts once its record is in the log."""
        return Checkpoint(id=self.new_id(), **values)

    def new_id(self) -> str:
        """An id that no checkpoint has: its number and three random bytes, for forks go on from the same number."""
        return f"f{len(self._entries) + 1}-{secrets.token_hex(3)}"
