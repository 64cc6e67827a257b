"""Whether a session is sound: its records, its blobs, and every request it made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.faults import reason
from agent.replay import reworded_words, verify
from agent.sessions import id_of
from transcripts.log import TranscriptLog, VersionError


@dataclass(frozen=True)
class Checked:
    """What was found in one session. `problems` are damage to the log, in plain words; `lost` ids of blobs that records
    name and that are gone or damaged; `requests` of which `same` come out as they were sent; `differences`, the first
    one first; `reworded`: so many more are no damage, but were sent by a refold of another wording."""

    path: Path
    records: int = 0
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    requests: int = 0
    same: int = 0
    differences: tuple[str, ...] = ()
    reworded: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.problems or self.lost or self.differences)

    def words(self) -> str:
        """The finding as lines for the person."""
        head = f"{id_of(self.path)}: {self.records:,} records, {self.same:,} of {self.requests:,} requests as sent"
        found = [*self.problems, *(f"blob {name} is gone or damaged" for name in self.lost), *self.differences[:1]]
        more = [f"and {len(self.differences) - 1} more requests differ"] if len(self.differences) > 1 else []
        told = [f"{self.reworded:,} {reworded_words(self.reworded)}"] if self.reworded else []
        lines = [f"  {line}" for line in found + more + told]
        return "\n".join([head, *lines] if found else [f"{head}; all is well", *lines])

    def as_json(self) -> dict[str, Any]:
        """The finding for a script."""
        return {**vars(self), "id": id_of(self.path), "path": str(self.path), "good": self.good}


def check(path: Path) -> Checked:
    """Reads one session through; changes nothing."""
    try:
        log = TranscriptLog.open(path, readonly=True)
    except (OSError, VersionError) as error:
        return Checked(path, problems=(reason(error, path),))
    try:
        requests = verify(log)
        return Checked(
            path, len(log.entries), tuple(log.problems), _lost_blobs(log), requests.requests, requests.same,
            requests.differences, requests.reworded,
        )  # fmt: skip
    finally:
        log.close()


def _lost_blobs(log: TranscriptLog) -> tuple[str, ...]:
    named: set[str] = set()
    for entry in log.entries:
        if entry.kind in ("user", "tool_result"):
            named |= {getattr(entry.record, "blob", ""), *(i.blob for i in entry.record.images)}
        elif entry.kind == "request":
            named |= {entry.record.system, entry.record.tools}
    return tuple(sorted(name for name in named - {""} if not _there(log, name)))


def _there(log: TranscriptLog, name: str) -> bool:
    try:
        log.blobs.get(name)
    except KeyError:
        return False
    return True
