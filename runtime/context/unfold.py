"""Bringing one folded step back into the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runtime.context.draft import joined
from runtime.context.engine import ContextEngine
from runtime.context.projection import Patch
from runtime.context.rounds import Step
from transcripts.log import Entry
from transcripts.records import Checkpoint


def unfold(engine: ContextEngine, seq: int) -> Checkpoint:
    """Brings a folded message (with its step) back into the view, by a checkpoint without it.

    Raises ValueError where it is in view already or would not fit.
    """
    active, steps = engine.store.active_checkpoint, engine.projection.segmenter.steps(engine.history.messages)
    step = next((s for s in steps if any(e.seq == seq for e in s.entries())), None)
    if step is None:
        raise ValueError(f"There is no message #{seq}.")
    if active is None or all(Patch(active).fate(e) == "shown" for e in step.entries()):
        raise ValueError(f"#{seq} is not folded.")
    checkpoint = replace(
        _without(active, step, engine.history.messages), id=engine.store.new_id(), tokens_before=engine.estimate()
    )
    view = engine.projection.project(engine.history.messages, checkpoint).view
    tokens = engine.estimator.tokens(view.units + engine.fixed_units)
    if tokens > engine.policy.trigger:
        raise ValueError(f"#{seq} does not fit: {tokens:,} tokens, and folding begins at {engine.policy.trigger:,}.")
    engine.append(replace(checkpoint, tokens_after=tokens))
    return checkpoint


def _without(checkpoint: Checkpoint, step: Step, messages: Sequence[Entry]) -> Checkpoint:
    """The checkpoint with one step shown whole again. Its id is still the old one."""
    patch = Patch(checkpoint)
    seqs = {str(e.seq) for e in step.entries()}
    left = ((e.seq, e.seq, why) for e in messages if str(e.seq) not in seqs and (why := patch.hidden(e.seq)))
    return replace(
        checkpoint,
        hidden=joined(messages, left),
        texts={k: v for k, v in checkpoint.texts.items() if k not in seqs},
        args={k: v for k, v in checkpoint.args.items() if k.split(":")[0] not in seqs},
        cause="unfold",
        strategies=(),
        without_pictures=tuple(n for n in checkpoint.without_pictures if str(n) not in seqs),
        notes_status="",
    )
