"""Undo: the workspace as it was before a call, brought back byte for byte."""

from agent.undo.difference import Change
from agent.undo.restore import RestoreReport
from agent.undo.snapshots import Snapshots
from agent.undo.store import Snapshot, SnapshotError
from agent.undo.timeline import NOTE, Point, Step, Timeline

__all__ = [
    "NOTE", "Change", "Point", "RestoreReport", "Snapshot", "SnapshotError", "Snapshots", "Step", "Timeline",
]  # fmt: skip
