"""Taking one step out of a fold again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runtime.context.projection import Patch
from runtime.context.rounds import Step
from transcripts.records import Checkpoint


def without(checkpoint: Checkpoint, step: Step, steps: Sequence[Step]) -> Checkpoint:
    """The checkpoint with one step shown whole again. Its id is still the old one."""
    patch = Patch(checkpoint)
    seqs = {str(e.seq) for e in step.entries()}
    hidden: dict[str, str] = {}
    for other in steps:
        why = patch.hidden(other.first)
        if why and other.first != step.first:
            hidden[f"{other.first}-{other.last}"] = why
    return replace(
        checkpoint,
        hidden=hidden,
        texts={k: v for k, v in checkpoint.texts.items() if k not in seqs},
        args={k: v for k, v in checkpoint.args.items() if k.split(":")[0] not in seqs},
        cause="unfold",
        strategies=(),
        notes_status="",
    )
