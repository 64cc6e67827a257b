"""How a fold is told to the person: one line."""

from __future__ import annotations

from transcripts.records import Checkpoint


def fold_line(checkpoint: Checkpoint) -> str:
    """What went, what it saved, what is reachable, and what became of the notes."""
    before, after = checkpoint.tokens_before, checkpoint.tokens_after
    saved = round(100 * (before - after) / before) if before else 0
    hidden = len(checkpoint.hidden)
    by = f" by {', '.join(checkpoint.strategies)}" if checkpoint.strategies else ""
    parts = [f"folded {before:,} to {after:,} tokens (-{saved} %){by}"]
    if checkpoint.texts:
        n = len(checkpoint.texts)
        parts.append(f"{n} message{'s' if n != 1 else ''} shortened")
    if hidden:
        parts.append(f"left out {_ranges(checkpoint)}")
    if checkpoint.notes_status and checkpoint.notes_status != "ok":
        parts.append(checkpoint.notes_status)
    elif checkpoint.notes_status == "ok":
        parts.append("notes written by the model")
    kept = checkpoint.meta.get("retained")
    if kept:
        reach = f", {kept['by_id']} by recall" if kept["by_id"] else ""
        there = kept["in_view"] + kept["by_id"]
        parts.append(f"kept {there} of {kept['total']} facts that must survive ({kept['in_view']} in view{reach})")
    return "; ".join([*parts, "all of it within reach of recall"])


def _ranges(checkpoint: Checkpoint) -> str:
    spans = [
        f"#{k.replace('-', ' to #')}" if len(set(k.split("-"))) == 2 else f"#{k.split('-')[0]}"
        for k in checkpoint.hidden
    ]
    return ", ".join(spans[:3]) + (f" and {len(spans) - 3} more" if len(spans) > 3 else "")
