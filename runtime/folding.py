"""How a fold is told to the person: one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
        parts.append(f"left out {numbers(spans_of(checkpoint))}")
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


def failed_line(why: str, floor: Mapping[str, int]) -> str:
    """Why a fold was no use, and what cannot leave (tokens)."""
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in floor.items())
    return f"{why}; what cannot leave: {parts} tokens" if parts else why


def spans_of(checkpoint: Checkpoint) -> list[tuple[int, int]]:
    """What a fold leaves out of the view: the first and the last number of each stretch."""
    return [(int(a), int(b)) for a, _, b in (k.partition("-") for k in checkpoint.hidden)]


def numbers(spans: Iterable[tuple[int, int]], most: int = 3) -> str:
    """Stretches in words: "#4 to #108, #115 and 2 more"."""
    words = [f"#{a}" if a == b else f"#{a} to #{b}" for a, b in spans]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
