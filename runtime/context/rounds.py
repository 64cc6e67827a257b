"""RoundSegmenter: where a history may be cut. Rounds begin at the person's messages; inside them stand steps, which
are never torn: an answer with all results of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transcripts.log import Entry
from transcripts.records import ToolCall

PERSON = ("typed", "steered", "shell", "hook")
"""Sources of messages in the user's role that stay as the person's own words do; refold speaks in that role too."""

SPOKEN = ("typed", "steered")
"""Of these, what the person said: a command of theirs is followed by what it printed, and a hook says what it will."""


@dataclass
class Step:
    """The smallest piece that can leave the view: one message of the user's role, or one answer with its results.

    `results` holds the entry that answers each call, by call id; what answers no call is in `orphans`.
    """

    head: Entry
    results: dict[str, Entry] = field(default_factory=dict)
    orphans: list[Entry] = field(default_factory=list)

    @property
    def is_user(self) -> bool:
        """Whether this is a message in the user's role."""
        return self.head.kind == "user"

    @property
    def is_person(self) -> bool:
        """Whether these are the person's own words."""
        return self.is_user and self.head.record.source in PERSON

    @property
    def is_spoken(self) -> bool:
        """Whether the person said this, rather than a command or a hook of theirs."""
        return self.is_user and self.head.record.source in SPOKEN

    @property
    def first(self) -> int:
        """Number of the first record."""
        return self.head.seq

    @property
    def last(self) -> int:
        """Number of the last record."""
        return max([self.head.seq, *(e.seq for e in self.results.values()), *(e.seq for e in self.orphans)])

    def entries(self) -> list[Entry]:
        """All its messages, in the order in which they are shown."""
        return [self.head, *self.results.values(), *self.orphans]

    def unanswered(self) -> list[ToolCall]:
        """Calls without a result."""
        calls = self.head.record.calls if self.head.kind == "assistant" else ()
        return [c for c in calls if c.id not in self.results]


@dataclass
class Round:
    """The person's message and what the agent did for it. The first round may lack the message."""

    steps: list[Step] = field(default_factory=list)

    @property
    def first(self) -> int:
        """Number of the first record."""
        return self.steps[0].first


class RoundSegmenter:
    """Sorts messages into steps and rounds."""

    def steps(self, messages: Sequence[Entry]) -> list[Step]:
        """The steps of a history. A result that answers no open call is an orphan of the step before it."""
        out: list[Step] = []
        wanted: set[str] = set()
        for entry in messages:
            if entry.kind != "tool_result":
                out.append(Step(entry))
                wanted = {c.id for c in entry.record.calls} if entry.kind == "assistant" else wanted
                continue
            owner = _owner(out, entry.record.call_id) if entry.record.call_id in wanted else None
            if owner is not None:
                owner.results[entry.record.call_id] = entry
            elif out:
                out[-1].orphans.append(entry)
            else:
                out.append(Step(entry))
        return out

    def identify(self, messages: Sequence[Entry]) -> list[Round]:
        """The rounds of a history."""
        return self.rounds(self.steps(messages))

    def rounds(self, steps: Sequence[Step]) -> list[Round]:
        """The rounds that these steps form."""
        out: list[Round] = []
        for step in steps:
            if step.is_person or not out:
                out.append(Round())
            out[-1].steps.append(step)
        return out


def _owner(steps: list[Step], call_id: str) -> Step | None:
    """The newest answer that still waits for this call; a message between call and result does not part them."""
    for step in reversed(steps):
        if step.head.kind == "assistant":
            return None if call_id in step.results else step
    return None
