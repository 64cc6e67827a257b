"""Which snapshot belongs to which turn, what /undo and /redo go to, and how all of it survives a restart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent.undo.difference import Change
from agent.undo.restore import RestoreReport
from agent.undo.snapshots import Snapshots
from agent.undo.store import SnapshotError

NOTE = "snapshot"
"""Key of the notes in the log by which a session knows its snapshots again: {"id", "title"}, and for a step back or
forth {"undone": number of the message, "kept": id of the state before} or {"redone": true}."""


@dataclass(frozen=True)
class Point:
    """The state before one call: `seq` is its place in the log."""

    snapshot: str
    seq: int
    title: str = ""


@dataclass(frozen=True)
class Step:
    """A way back (or forth): the snapshot to go to, what was changed since, and from which message on it undoes.
    `diff` tells the changes as they were made, `back` as they would be taken back."""

    snapshot: str
    seq: int
    changes: tuple[Change, ...]
    diff: str
    back: str = ""


@dataclass
class Timeline:
    """The snapshots of one session in order. `undone` are the steps taken back: (message from which on, the position
    before it, the id of the state before)."""

    snapshots: Snapshots
    points: list[Point] = field(default_factory=list)
    undone: list[tuple[int, int, str]] = field(default_factory=list)
    end: int = 1 << 62

    def replay(self, notes: Iterable[tuple[int, object]]) -> None:
        """Takes up what an earlier process wrote down: (sequence number, value) of its notes."""
        for seq, value in notes:
            if not isinstance(value, dict):
                continue
            if "undone" in value:
                self._stepped_back(int(value["undone"]), str(value.get("kept", "")))
            elif "redone" in value:
                self._stepped_forth()
            elif "id" in value:
                self.add(Point(str(value["id"]), seq, str(value.get("title", ""))))

    def add(self, point: Point) -> None:
        """A call with effects begins: what was undone before it cannot be redone any more."""
        self.points = [p for p in self.points if p.seq < self.end] + [point]
        self.undone, self.end = [], 1 << 62

    def last_step(self, turns: Sequence[int]) -> Step | None:
        """Back before the newest turn that left something changed; None where there is none. `turns` are the
        sequence numbers of the person's messages. Raises SnapshotError."""
        for turn in sorted((t for t in turns if t < self.end), reverse=True):
            step = self.step_to(turn)
            if step is not None and step.changes:
                return step
        return None

    def step_to(self, turn: int) -> Step | None:
        """Back to the files as they were when a message was sent; None where nothing was done since. Raises
        SnapshotError."""
        first = next((p for p in self.points if turn < p.seq < self.end), None)
        if first is None:
            return None
        return self._step(first.snapshot, turn)

    def go(self, step: Step) -> tuple[RestoreReport, dict[str, object]]:
        """Takes a step back; gives the report and the note to keep in the log. Raises SnapshotError."""
        report = self.snapshots.restore(step.snapshot)
        self._stepped_back(step.seq, report.before)
        return report, {"undone": step.seq, "kept": report.before}

    def forth(self) -> Step | None:
        """What /redo would go to; None where nothing was undone. Raises SnapshotError."""
        if not self.undone:
            return None
        seq, _, kept = self.undone[-1]
        return self._step(kept, seq)

    def _step(self, snapshot: str, seq: int) -> Step:
        found = tuple(self.snapshots.changes(snapshot))
        return Step(snapshot, seq, found, self.snapshots.told(found), self.snapshots.told(c.reversed() for c in found))

    def redo(self, step: Step) -> tuple[RestoreReport, dict[str, object]]:
        """Takes the last step back again; gives the report and the note for the log. Raises SnapshotError."""
        report = self.snapshots.restore(step.snapshot)
        self._stepped_forth()
        return report, {"redone": True}

    def _stepped_back(self, seq: int, kept: str) -> None:
        self.undone.append((seq, self.end, kept))
        self.end = seq

    def _stepped_forth(self) -> None:
        if self.undone:
            self.end = self.undone.pop()[1]


__all__ = ["NOTE", "Point", "SnapshotError", "Step", "Timeline"]
