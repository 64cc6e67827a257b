"""The prefix, as a real llama.cpp server counts it: what it had of each request in its cache, by its own figures.

The server reads every request of a real session; its answers are replaced by scripted ones, so that the session is the
same each time. It needs the weights of the built-in model and some minutes: `make test-model`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.models import make_model
from agent.models.weights import find_weights
from agent.session import Session
from agent.settings import Settings
from runtime.events import AnswerRecorded, Compacted, TurnEnded
from runtime.model import Answer, Model, ModelEvent, ModelView
from transcripts.records import Assistant, ToolCall

WEIGHTS = find_weights(Path("~/.refold/models").expanduser(), os.environ.get("REFOLD_LOCAL_MODEL", ""))
WINDOW = 4_096
STEPS = 26
LEAST = 0.9


@dataclass
class Prompted:
    """The real model, asked for real; but its answer to a step is the next of `answers`. Notes are its own words."""

    inner: Any
    answers: list[Assistant]

    small = True
    tool_protocol = "text"
    takes_images = False
    tool_names = ("read", "write", "edit", "bash")
    name = "local"

    @property
    def window(self) -> int:
        return self.inner.window

    @property
    def window_source(self) -> str:
        return self.inner.window_source

    async def stream(self, view: ModelView) -> AsyncIterator[ModelEvent]:
        """Passes the view on; for a step a few tokens of answer are enough."""
        notes = view.params.get("tool_choice") == "none"
        asked = view if notes else replace(view, params={**view.params, "max_tokens": 4})
        async with aclosing(self.inner.stream(asked)) as events:
            async for event in events:
                if isinstance(event, Answer) and not notes:
                    event = Answer(self.answers.pop(0), event.usage)
                yield event


def answers() -> list[Assistant]:
    """So many answers that print a file each, then the last word."""
    calls = [ToolCall(f"call_{n}", "bash", f'{{"command": "cat notes_{n}.txt"}}') for n in range(STEPS - 1)]
    return [*(Assistant(f"File {n}.", (c,), finish="tool_calls") for n, c in enumerate(calls)), Assistant("Done.")]


async def talk(folder: Path) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """((input, cached) of each step, of each request for notes, folds); a fold's own step has a cached count of -1."""
    work = folder / "work"
    work.mkdir()
    for n in range(STEPS):
        (work / f"notes_{n}.txt").write_text("".join(f"{n}.{i}: house {i} has the number {i * n}.\n" for i in range(6)))
    inner = make_model("local", home=folder, window=WINDOW, extra={"local_model": str(WEIGHTS)})
    model: Model = Prompted(inner, answers())
    settings = Settings.load(
        {"model": "local", "permission_mode": "yolo", "context_window": WINDOW, "summary_timeout": 300},
        {"REFOLD_HOME": str(folder / "home")},
        folder,
    )
    steps: list[tuple[int, int]] = []
    folds, folded = 0, True
    with Session.start(settings, cwd=work, model=model) as session:
        async for event in session.send("Read all the files of this folder one after the other."):
            if isinstance(event, Compacted):
                folds, folded = folds + 1, True
            elif isinstance(event, AnswerRecorded):
                usage = event.usage
                assert usage.input is not None
                steps.append((usage.input, -1 if folded else usage.cached or 0))
                folded = False
            elif isinstance(event, TurnEnded):
                assert (event.reason, event.text) == ("done", "Done.")
        usages = [e.record for e in session.log.entries if e.kind == "usage" and e.record.purpose == "summary"]
    await inner.close()
    return steps, [(u.input or 0, u.cached or 0) for u in usages], folds


@pytest.mark.real_model
@pytest.mark.timeout(1800)
def test_the_server_finds_the_prefix_in_its_cache(tmp_path: Path) -> None:
    steps, notes, folds = asyncio.run(talk(tmp_path))
    print(steps, notes, folds)
    assert len(steps) == STEPS
    assert folds >= 1 and notes
    reused = [cached / before for (before, _), (_, cached) in zip(steps, steps[1:], strict=False) if cached >= 0]
    assert len(reused) == STEPS - 1 - folds
    assert min(reused) >= LEAST, reused
    assert min(cached / size for size, cached in notes) >= LEAST, notes
