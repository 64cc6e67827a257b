"""Folds the conversation now.

Words after the name say what the notes should keep. `--dry-run` shows what would leave the view and changes nothing;
`--undo` takes the last fold back. Nothing is lost: what leaves the view stays in the log, and the model can recall it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Face
from runtime.context.report import in_words
from runtime.folding import failed_line

TAKES = "[what matters] | --dry-run | --undo"
MOST_ROWS = 40


async def run(face: Face, words: str) -> None:
    if words.strip() == "--undo":
        _undo(face)
    elif words.strip() == "--dry-run":
        await _dry_run(face)
    else:
        await face.follow(face.session.compact(words))


def complete(face: Face, words: str) -> Sequence[str]:
    return [w for w in ("--dry-run", "--undo") if w.startswith(words)]


def _undo(face: Face) -> None:
    dropped = face.session.engine.undo_fold()
    if dropped is None:
        face.say("There is no fold to take back.")
        return
    face.say(
        f"The fold {dropped.id} is taken back: the view has about {face.session.engine.estimate():,} tokens again."
    )


async def _dry_run(face: Face) -> None:
    outcome, rows = await face.session.preview_compact()
    if outcome.checkpoint is None:
        face.say(f"A fold would be no use: {failed_line(outcome.reason, outcome.floor)}.")
        return
    table = [(f"#{r.seq}", r.what, f"{r.tokens:,}" if r.tokens else "", in_words(r.fate)) for r in rows[:MOST_ROWS]]
    face.table(table, ("id", "message", "tokens of its step", "what becomes of it"))
    if len(rows) > MOST_ROWS:
        face.say(f"and {len(rows) - MOST_ROWS} more")
    fold = outcome.checkpoint
    by = f" by {', '.join(fold.strategies)}" if fold.strategies else ""
    face.say(
        f"About {fold.tokens_before:,} tokens would become {fold.tokens_after:,}{by}, before any notes by the model. "
        "Nothing was changed."
    )
