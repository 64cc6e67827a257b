"""HistoryManager: what was said, append-only, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from transcripts.log import Entry
from transcripts.records import ToolCall

_MESSAGES = ("user", "assistant", "tool_result")


class HistoryManager:
    """The messages of a session that count: all that were said, less what a rewind set aside. Nothing is ever changed
    or removed by folding; a fold is a record of its own that the projection reads."""

    def __init__(self) -> None:
        self._messages: list[Entry] = []
        self._seqs: list[int] = []
        self._sizes: list[int] = [0]

    def append(self, entry: Entry) -> None:
        """Takes the next entry of the log; what the model is never shown is passed over."""
        if entry.kind in _MESSAGES:
            self._messages.append(entry)
            self._seqs.append(entry.seq)
            self._sizes.append(self._sizes[-1] + entry.length)
        elif entry.kind == "rewind":
            keep = bisect_left(self._seqs, entry.record.to + 1)
            del self._messages[keep:], self._seqs[keep:], self._sizes[keep + 1 :]

    @property
    def messages(self) -> Sequence[Entry]:
        """All messages in order. The list is the manager's own: read it, do not change it."""
        return self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def index(self, seq: int) -> int:
        """Where the first message with this number or a later one stands."""
        return bisect_left(self._seqs, seq)

    def get(self, seq: int) -> Entry | None:
        """The message with this number, or None."""
        i = self.index(seq)
        return self._messages[i] if i < len(self._seqs) and self._seqs[i] == seq else None

    def bytes_from(self, index: int) -> int:
        """Bytes of the log lines of the messages from this place on."""
        return self._sizes[-1] - self._sizes[index]

    def last(self, kind: str) -> int:
        """The number of the newest message of this kind; 0 where there is none."""
        return next((e.seq for e in reversed(self._messages) if e.kind == kind), 0)

    @property
    def last_seq(self) -> int:
        """The number of the newest message; 0 where there is none."""
        return self._seqs[-1] if self._seqs else 0

    def open_calls(self) -> list[ToolCall]:
        """Calls of the newest answer that have no result yet, in their order."""
        answered: set[str] = set()
        for entry in reversed(self._messages):
            if entry.kind == "tool_result":
                answered.add(entry.record.call_id)
            elif entry.kind == "assistant":
                return [c for c in entry.record.calls if c.id not in answered]
        return []
