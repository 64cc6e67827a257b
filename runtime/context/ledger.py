"""The ledger: what a fold takes out of the view, message by message, before it happens or after."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.context.engine import ContextEngine
from runtime.context.projection import Patch, message_units, wire_step
from transcripts.log import Entry
from transcripts.records import Checkpoint


@dataclass(frozen=True)
class Row:
    """One message that a fold changes: its number, what it is, its tokens before, and what becomes of it."""

    seq: int
    what: str
    tokens: int
    fate: str


def ledger(engine: ContextEngine, checkpoint: Checkpoint) -> list[Row]:
    """The rows of every step that the active fold shows otherwise than `checkpoint`; tokens count the whole step."""
    now, then = Patch(engine.store.active_checkpoint), Patch(checkpoint)
    rows: list[Row] = []
    for step in engine.projection.segmenter.steps(engine.history.messages):
        changed = [e for e in step.entries() if now.fate(e) != then.fate(e)]
        if not changed:
            continue
        wire = wire_step(step, now, lambda image: "data:")
        tokens = engine.estimator.tokens(sum(message_units(m, engine.estimator) for m in wire))
        for entry in changed:
            rows.append(Row(entry.seq, label(entry), tokens if entry is changed[0] else 0, then.fate(entry)))
    return rows


def label(entry: Entry) -> str:
    """What a message is, in a few words."""
    record = entry.record
    if entry.kind == "tool_result":
        return f"{record.name} result {record.about}".strip()[:70]
    who = {"user": "you: ", "assistant": "answer: "}[entry.kind]
    return (who + " ".join(record.text[:200].split()))[:70]
