"""None of the four strategies is dead code: in one ordinary session each has its turn, and each keeps a promise that
breaks when it is taken away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from agent.models.scripted import Scripted
from runtime.context.compact import ContextCompactor
from runtime.context.discard import all_strategies
from runtime.context.engine import ContextEngine
from tests.support.histories import engine_for, put
from transcripts.records import Assistant, Checkpoint, Record, ToolCall, ToolResult, User

WINDOW = 16_000
NAMES = ("tool_results", "sliding_window", "truncation", "summarisation")
NOTES = "The logs were read one after the other and the plan was talked over; the paste is what is left to look at."


def read_step(n: int) -> list[Record]:
    """The agent reads one more log: little said, much seen."""
    call = ToolCall(f"read-{n}", "bash", f'{{"command": "tail -n 60 logs/{n}.log"}}')
    text = "\n".join(f"log {n} line {i}: nothing unusual here" for i in range(60))
    meta = {"command": f"tail -n 60 logs/{n}.log", "exit_code": 0}
    return [Assistant(f"Log {n} next.", (call,), finish="tool_calls"), ToolResult(call.id, "bash", text, meta=meta)]


def talk(n: int) -> list[Record]:
    """The agent thinks aloud and is told to go on: much said, nothing seen."""
    said = " ".join(f"Point {n}.{i}: the plan could be otherwise, and here is what would follow." for i in range(24))
    return [Assistant(said), User("Go on.")]


@dataclass
class Story:
    """A session in three acts: many logs are read, a plan is talked over, three windows are pasted. `folds`: the fold
    of each act, None where it could not be made."""

    engine: ContextEngine
    folds: list[Checkpoint | None]

    @property
    def used(self) -> set[str]:
        """The strategies that had a turn."""
        return {name for fold in self.folds if fold for name in fold.strategies}


def tell(strategies: list) -> Story:
    engine = engine_for(WINDOW)
    engine.compactor = ContextCompactor(engine.store, engine.projection, strategies)
    model = Scripted([], window=WINDOW, head={"notes": NOTES})
    put(engine, [User("Find out why the service stalls. Never restart it.")])
    folds = [
        until_fold(engine, model, read_step),
        until_fold(engine, model, talk),
        until_fold(engine, model, lambda n: [User("Here is everything:\n" + "some line of the paste\n" * 9_000)]),
    ]
    return Story(engine, folds)


def until_fold(engine: ContextEngine, model: Scripted, step) -> Checkpoint | None:
    """Goes on with such steps until a fold is due; gives it, or None where there is none to be had."""
    for n in range(100):
        put(engine, step(n))
        if engine.should_compact().should_compact:
            return asyncio.run(engine.compact(model)).checkpoint
    raise AssertionError("no fold was ever due")


def broken(story: Story) -> set[str]:
    """Promises that do not hold, each by the name of the strategy that keeps it."""
    reading, talking, pasting = story.folds
    promises = {
        "tool_results": reading is not None and not reading.hidden,
        "sliding_window": talking is not None and bool(talking.hidden) and not cut(talking),
        "truncation": pasting is not None and pasting.tokens_after <= WINDOW // 2,
        "summarisation": any(fold is not None and fold.notes == NOTES for fold in story.folds),
    }
    return {name for name, holds in promises.items() if not holds}


def cut(fold: Checkpoint) -> list[str]:
    """Texts that lost their middle."""
    return [text for text in fold.texts.values() if "characters folded" in text]


def test_each_strategy_has_its_turn_and_keeps_its_promise():
    story = tell(all_strategies())
    assert [s.name for s in all_strategies()] == [*NAMES]
    assert story.used == set(NAMES)
    assert broken(story) == set()


@pytest.mark.parametrize("name", NAMES)
def test_without_it_its_promise_is_broken(name):
    assert name in broken(tell([s for s in all_strategies() if s.name != name]))
