"""What fills the window, for the person: by kind, from the front of the request to its end, and what is out of view."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.context.engine import ContextEngine
from runtime.context.projection import FOLD_HEADER, View, message_units, preface
from transcripts.records import Checkpoint

_NAMES = {"user": "your words", "assistant": "answers", "tool": "tool results"}


@dataclass(frozen=True)
class ContextReport:
    """`parts`: (label, tokens) in the order of the request. `cached`: part of the last request's input that the
    provider had in its cache, None where it does not say. `fates`: what became of each message."""

    parts: list[tuple[str, int]]
    window: int
    window_source: str
    trigger: int
    estimate: int
    checkpoint: Checkpoint | None
    fates: dict[int, str] = field(default_factory=dict)
    cached: float | None = None


def report_on(engine: ContextEngine) -> ContextReport:
    """The report on an engine as it stands."""
    estimator, checkpoint = engine.estimator, engine.store.active_checkpoint
    system = estimator.units(engine.system)
    sizes = {"system": system, "tools": engine.fixed_units - system}
    if checkpoint:
        folded = View(estimator)
        folded.add({"role": "user", "content": preface(checkpoint)})
        sizes["folded away"] = folded.units
    for message in engine.current().messages:
        label = _NAMES[message["role"]]
        sizes[label] = sizes.get(label, 0.0) + message_units(message, estimator)
    if checkpoint and FOLD_HEADER in str(engine.current().messages[0]["content"]):
        sizes["your words"] -= sizes["folded away"]
    parts = [(label, estimator.tokens(size)) for label, size in sizes.items() if size > 0]
    return ContextReport(
        parts, engine.window, engine.window_source, engine.policy.trigger, engine.estimate(), checkpoint,
        engine.fates(), _cached(engine),
    )  # fmt: skip


def _cached(engine: ContextEngine) -> float | None:
    last = next((e.record for e in reversed(engine.log.entries) if e.kind == "usage"), None)
    return last.cached / last.input if last and last.input and last.cached is not None else None


def in_words(fate: str) -> str:
    """What became of a message, for the person."""
    plain = {"shown": "in view", "stub": "shortened", "covered": "only in the notes"}
    return plain.get(fate) or fate.replace("left out: ", "left out by ").replace("by orphan", "(it answers no call)")
