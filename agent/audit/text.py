"""The audit as lines of plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agent.audit.findings import Audit, Fold, Stretch

_SHORT = {"tool_results": "results", "sliding_window": "steps", "truncation": "cut", "summarisation": "notes"}


def audit_lines(audit: Audit) -> Iterator[str]:
    """The whole audit: what was not seen, the folds, what went wrong, the rates."""
    answers = audit.stretches[-1].last if audit.stretches else 0
    yield f"Session {audit.session}: {audit.model or 'no model'}, window {_count(audit.window) or 'unknown'}"
    yield f"{_many(answers, 'answer')} under {_many(len(audit.stretches), 'view')}, {_many(len(audit.folds), 'fold')}"
    yield from _part("What the answers could not see", list(_unseen(audit.stretches)))
    yield from _part("What the folds did (tokens)", list(_folds(audit)))
    yield from _part("What came back by recall", list(_recalled(audit.folds)))
    yield from _part("What went wrong, as far as code can tell", list(_findings(audit)) or ["nothing"])
    yield from _part("Rates", [f"{share * 100:5.1f} %  {name}" for name, share in audit.rates.items()])


def _part(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", heading, *lines)


def _unseen(stretches: Sequence[Stretch]) -> Iterator[str]:
    if not any(s.counts for s in stretches):
        yield "nothing: every answer saw everything"
        return
    head = ("answers", "under fold", "messages", "shorter", "only in notes", "left out", "about tokens")
    yield from _table(head, [_stretch_row(s) for s in stretches], left=2)


def _stretch_row(s: Stretch) -> tuple[str, ...]:
    left_out = sum(count for fate, count in s.counts.items() if fate not in ("stub", "covered"))
    numbers = (s.messages, s.counts.get("stub", 0), s.counts.get("covered", 0), left_out, s.tokens)
    span = f"{s.first} to {s.last}" if s.last > s.first else str(s.first)
    return (span, s.fold or "-", *(f"{n:,}" for n in numbers))


def _folds(audit: Audit) -> Iterator[str]:
    if not audit.folds:
        return
    head = ("fold", "by", "notes", "before", "after", "freed", "kept", "read anew", "for notes", "recalls", "signs")
    signs = Counter(f.fold for f in audit.findings if f.fold)
    yield from _table(head, [_fold_row(fold, signs[fold.id]) for fold in audit.folds], left=3)
    yield "read anew: input of the next request that was not cached; for notes: input of the request for notes; ? = the"
    yield "provider did not say. kept: what must survive, in view + within reach / all."


def _fold_row(fold: Fold, signs: int) -> tuple[str, ...]:
    kept = fold.kept
    survived = f"{kept['in_view']}+{kept['by_id']}/{kept['total']}" if kept else "?"
    by = " ".join(_SHORT.get(name, name) for name in fold.strategies)
    if fold.undone:
        by += " (undone)"
    notes = {"": "-", "ok": "yes"}.get(fold.notes, "none")
    return (
        fold.id, by, notes, f"{fold.before:,}", f"{fold.after:,}", f"{fold.shrink * 100:.0f} %", survived,
        _count(fold.uncached_after) or "?", _count(fold.notes_input) or "-", str(len(fold.recalled)), str(signs),
    )  # fmt: skip


def _recalled(folds: Sequence[Fold]) -> Iterator[str]:
    for fold in folds:
        yield from (f"{fold.id}  {words}" for words in fold.recalled)


def _findings(audit: Audit) -> Iterator[str]:
    rows = [(f"#{f.seq}", f.fold or "-", f.kind, f.words) for f in audit.findings]
    if rows:
        yield from _table(("record", "under fold", "sign", "what"), rows, left=4)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> Iterator[str]:
    """Columns as wide as they need to be, the first `left` of them flush left."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    for row in (head, *rows):
        cells = (c.ljust(w) if n < left else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield "  ".join(cells).rstrip()


def _count(number: int | None) -> str:
    return "" if number is None or not number else f"{number:,}"


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
