"""What fills the window, and what is out of view."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from agent.commands.base import Face
from runtime.context.report import ContextReport, in_words
from runtime.folding import fold_line, numbers

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    report = face.session.context()
    free = max(0, report.window - sum(tokens for _, tokens in report.parts))
    face.gauge([*report.parts, ("free", free)], report.window)
    face.say(_sums(report))
    gone = out_of_view(report)
    if gone:
        face.say(f"Not in view as it was said, all of it in the log and within reach of recall: {gone}.")
    if face.session.engine.pinned:
        face.say(f"Pinned: {', '.join(f'#{seq}' for seq in sorted(face.session.engine.pinned))}.")
    if report.checkpoint:
        face.say(f"Last fold {report.checkpoint.id}: {fold_line(report.checkpoint)}.")


def out_of_view(report: ContextReport) -> str:
    """How many messages are not shown whole, what became of them, and which they are: "12 left out by sliding_window
    (#3 to #14); 3 shortened (#20, #22, #25)"."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for fate, run in groupby(report.fates.items(), key=lambda item: item[1]):
        seqs = [seq for seq, _ in run]
        spans.setdefault(fate, []).append((seqs[0], seqs[-1]))
    fates = Counter(fate for fate in report.fates.values() if fate != "shown")
    return "; ".join(f"{n} {in_words(fate)} ({numbers(spans[fate], 6)})" for fate, n in fates.most_common())


def _sums(report: ContextReport) -> str:
    share = 100 * report.estimate / report.window if report.window else 0
    cached = (
        f" {report.cached:.0%} of the last request came from the provider's cache." if report.cached is not None else ""
    )
    return (
        f"About {report.estimate:,} of {report.window:,} tokens ({share:.0f} %); size of the window: "
        f"{report.window_source}. Folding begins at {report.trigger:,}.{cached}"
    )
