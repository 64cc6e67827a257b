"""Early pruning: only when it is free or soon pays for itself, and then in one go."""

from __future__ import annotations

import asyncio

import pytest

from runtime.context.price import break_even, is_cold
from tests.support.histories import engine_for, put
from transcripts.records import Assistant, Note, ToolCall, ToolResult, Usage, User


@pytest.mark.parametrize(
    ("suffix", "freed", "ratio", "calls"),
    [
        (120_000, 30_000, 10, 27.0),
        (120_000, 100_000, 10, 1.8),
        (150_000, 125_000, 10, 1.8),
        (50_000, 50_000, 10, 0.0),
        (120_000, 30_000, 1, 0.0),
        (10, 0, 10, float("inf")),
    ],
)
def test_break_even_is_the_number_of_calls_after_which_it_pays(suffix, freed, ratio, calls):
    assert break_even(suffix, freed, ratio) == pytest.approx(calls)


def half_full():
    """An engine at about 65 % of its window, nearly all of it old results, with a reported usage a moment ago."""
    engine = engine_for(20_000)
    put(engine, [User("Look at every file.")])
    for n in range(24):
        put(engine, [Assistant(f"File {n}.", (ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}'),))])
        put(engine, [ToolResult(f"c{n}", "read", f"content {n} " * 190)])
    engine.append(Usage())
    return engine


def test_a_cold_cache_is_used_for_free():
    engine = half_full()
    assert engine.policy.target < engine.estimate() < engine.policy.trigger
    engine.append(Note("model", "openai_chat:other"))
    assert is_cold(engine.log.entries)
    outcome = asyncio.run(engine.prune_when_cheap())
    assert outcome.checkpoint.strategies == ("tool_results",)
    assert outcome.checkpoint.hidden == {}
    assert engine.estimate() <= engine.policy.target


def test_a_warm_cache_is_broken_only_where_it_soon_pays():
    engine = half_full()
    assert not is_cold(engine.log.entries)
    before = engine.build_model_view().sha
    outcome = asyncio.run(engine.prune_when_cheap())
    assert outcome is None
    assert engine.build_model_view().sha == before


def test_below_half_of_the_window_nothing_is_pruned():
    engine = engine_for(100_000)
    put(engine, [User("hello")])
    assert asyncio.run(engine.prune_when_cheap()) is None
