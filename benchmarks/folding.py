"""Folding against the usual design, on one and the same session of 300 steps: calls, uncached input, facts kept.

Both are given the same ideal summariser (it copies every fact it can find in what it is shown, up to 2,000 characters)
and the same ideal cache. Run: python benchmarks/folding.py
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import asyncio  # noqa: E402

from agent.session import Session  # noqa: E402
from agent.settings import Settings  # noqa: E402
from benchmarks.parts.provider import Bill, Charged, PrefixCache, text_of  # noqa: E402
from benchmarks.parts.rolling_summary import RollingSummary  # noqa: E402
from runtime.events import AnswerRecorded, Compacted, RequestSent  # noqa: E402
from tests.support.recorded import by_recall, runs, shown_lines  # noqa: E402
from tests.support.workload import Fact, Workload  # noqa: E402

NOTES = 2_000
"""Characters the summariser writes at most."""

SCENES = (
    ("short rounds, large window", 6, 128_000),
    ("short rounds", 6, 64_000),
    ("long rounds, small window", 20, 16_000),
)


@dataclass
class Kept:
    """Of the facts known at each request, how many its view told; `end` and `reachable`: parts at the last one."""

    facts: list[Fact]
    known: int = 0
    shown: int = 0
    end: float = 0.0
    reachable: float = 0.0

    def look(self, step: int, text: str) -> None:
        """Looks the facts up in the view of the request for this step."""
        now = [f for f in self.facts if f.step < step]
        found = sum(tells(text, fact) for fact in now)
        self.known += len(now)
        self.shown += found
        self.end = found / len(now) if now else 1.0


@dataclass
class Outcome:
    """What one design came to."""

    name: str
    bill: Bill
    kept: Kept
    folds: int = 0
    notes: dict[str, Any] = field(default_factory=dict)


def tells(text: str, fact: Fact) -> bool:
    """Whether some line holds all words of a fact."""
    at = text.find(fact.words[0])
    while at >= 0:
        line = text[text.rfind("\n", 0, at) + 1 : text.find("\n", at) if "\n" in text[at:] else len(text)]
        if all(word in line for word in fact.words):
            return True
        at = text.find(fact.words[0], at + 1)
    return False


def summariser(facts: list[Fact]) -> Callable[[str], str]:
    """Copies facts out of a text, in an order of its own, until it has written enough."""
    order = Random(7).sample(facts, len(facts))

    def write(text: str) -> str:
        out = ""
        for fact in order:
            line = f"{fact.kind}: {' '.join(fact.words)}\n"
            if len(out) + len(line) <= NOTES and tells(text, fact):
                out += line
        return out or "Nothing was found that has to be kept."

    return write


def folded(workload: Workload, window: int, folder: Path) -> tuple[Outcome, Session]:
    """The session through refold itself."""
    cache, kept = PrefixCache(window), Kept(workload.facts)
    work = folder / "work"
    workload.lay_out(work)
    flags = {"model": "scripted:bench", "permission_mode": "yolo", "context_window": window}
    settings = Settings.load(flags, {"REFOLD_HOME": str(folder / "home")}, folder)
    model = Charged(workload.answers(), cache, summariser(workload.facts))
    session = Session.start(settings, cwd=work, model=model)
    outcome = Outcome("refold", cache.bill, kept)

    async def turns() -> None:
        step = 0
        for one in workload.rounds:
            async for event in session.send(one.words):
                if isinstance(event, RequestSent):
                    kept.look(step + 1, "\n".join(shown_lines(session, work.resolve())))
                step += isinstance(event, AnswerRecorded)
                outcome.folds += isinstance(event, Compacted)

    asyncio.run(turns())
    last = "\n".join(shown_lines(session, work.resolve()))
    away = [f for f in workload.facts if not tells(last, f)]
    kept.reachable = 1 - sum(not by_recall(f, session) for f in away) / len(workload.facts)
    return outcome, session


def rolled(workload: Workload, window: int, session: Session, patient: bool) -> Outcome:
    """The same messages through the usual design."""
    cache, kept = PrefixCache(window), Kept(workload.facts)
    engine = session.engine
    talk = RollingSummary(engine.system, list(engine.specs), cache, summariser(workload.facts), patient)
    step = 0
    for message in engine.projection.project(engine.history.messages, None).view.messages:
        if message["role"] == "assistant":
            step += 1
            talk.ask()
            kept.look(step, "\n".join([text_of(talk.view()), *runs(talk.view())]))
        talk.messages.append(message)
    kept.reachable = kept.end
    return Outcome("rolling summary" + (", patient" if patient else ""), cache.bill, kept)


def table(outcomes: list[Outcome], window: int) -> None:
    """The figures, and the ratios to the first."""
    ours = outcomes[0]
    print(f"{'':26}{'calls':>7}{'of them notes':>15}{'input':>13}{'uncached':>12}{'x':>6}{'largest':>10}", end="")
    print(f"{'over window':>20}{'facts in view':>15}{'at the end':>12}{'reachable':>11}")
    for o in outcomes:
        b, k = o.bill, o.kept
        over = f"{b.over_window}, first {b.first_over}" if b.over_window else "0"
        ratio = f"{b.uncached / ours.bill.uncached:.1f}"
        print(
            f"{o.name:26}{b.steps + b.summaries:>7}{b.summaries:>15}{b.input:>13,}{b.uncached:>12,}{ratio:>6}", end=""
        )
        print(f"{b.largest / window:>9.0%} {over:>20}{k.shown / k.known:>15.1%}{k.end:>12.1%}", end="")
        print(f"{k.reachable:>11.1%}")
    print(f"(refold folded {ours.folds} times)")


def main() -> None:
    """All scenes, each with both designs."""
    for name, per_round, window in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            workload = Workload(steps=300, per_round=per_round)
            outcome, session = folded(workload, window, Path(folder))
            with session:
                rows = [outcome, *(rolled(workload, window, session, patient) for patient in (False, True))]
            print(f"\n{name}: 300 steps, rounds of {per_round}, window {window:,}")
            table(rows, window)


if __name__ == "__main__":
    main()
