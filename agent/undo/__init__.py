"""Undo: the workspace as it was before a call, brought back byte for byte."""

from agent.undo.difference import Change
from agent.undo.restore import RestoreReport
from agent.undo.snapshots import Snapshots
from agent.undo.store import Snapshot, SnapshotError

__all__ = ["Change", "RestoreReport", "Snapshot", "SnapshotError", "Snapshots"]
