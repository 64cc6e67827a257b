"""What fills the window, and what is out of view."""

from __future__ import annotations

from collections import Counter

from agent.commands.base import Face
from runtime.context.report import ContextReport
from runtime.folding import fold_line

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    report = face.session.context()
    free = max(0, report.window - sum(tokens for _, tokens in report.parts))
    face.gauge([*report.parts, ("free", free)], report.window)
    face.say(_sums(report))
    gone = out_of_view(report)
    if gone:
        face.say(f"Out of view, in the log, recalled when needed: {gone}.")
    if report.checkpoint:
        face.say(f"Last fold {report.checkpoint.id}: {fold_line(report.checkpoint)}.")


def out_of_view(report: ContextReport) -> str:
    """How many messages are not shown whole, and why: "12 left out: sliding_window, 3 stub"."""
    fates = Counter(fate for fate in report.fates.values() if fate != "shown")
    return ", ".join(f"{n} {fate}" for fate, n in fates.most_common())


def _sums(report: ContextReport) -> str:
    share = 100 * report.estimate / report.window if report.window else 0
    cached = (
        f" {report.cached:.0%} of the last request came from the provider's cache." if report.cached is not None else ""
    )
    return (
        f"About {report.estimate:,} of {report.window:,} tokens ({share:.0f} %); size of the window: "
        f"{report.window_source}. Folding begins at {report.trigger:,}.{cached}"
    )
