"""The invariants of the context, on random histories."""

from __future__ import annotations

import asyncio
import os

import pytest

from runtime.context.engine import ContextEngine
from runtime.context.projection import ProjectionBuilder, canonical
from runtime.context.shape import problems
from tests.support.histories import History, engine_for, put

ROUNDS = int(os.environ.get("TEST_ROUNDS", "40"))
"""Random histories a property is tried on; set it to 10000 for the long run. One seed, one history."""

SEEDS = range(ROUNDS)


def folded(seed: int) -> tuple[History, ContextEngine]:
    """A history put into an engine step by step, folded whenever it was over the trigger."""
    drawn = History(seed)
    engine = engine_for(drawn.window)
    for records in drawn.steps:
        put(engine, records)
        asyncio.run(engine.compact_if_needed(None))
    return drawn, engine


@pytest.mark.parametrize("seed", SEEDS)
def test_every_view_is_well_formed_fits_and_conserves(seed):
    drawn = History(seed)
    window, steps = drawn.window, drawn.steps
    engine = engine_for(window)
    for records in steps:
        put(engine, records)
        before = engine.estimate()
        outcome = asyncio.run(engine.compact_if_needed(None))
        view = engine.build_model_view()
        assert problems(view.messages) == []
        assert set(engine.fates()) == {e.seq for e in engine.history.messages}
        assert engine.estimate() <= engine.policy.trigger
        if outcome is not None:
            assert outcome.checkpoint is not None, outcome
            assert engine.estimate() <= window // 2
            assert engine.estimate() <= before * 0.75


@pytest.mark.parametrize("seed", SEEDS)
def test_the_view_only_grows_at_its_end_until_a_checkpoint(seed):
    drawn = History(seed)
    window, steps = drawn.window, drawn.steps
    engine = engine_for(window)
    last, checkpoint = b"", ""
    for records in steps:
        put(engine, records)
        asyncio.run(engine.compact_if_needed(None))
        view = engine.build_model_view()
        body = canonical(list(view.messages))
        if view.checkpoint == checkpoint:
            assert body.startswith(last), (last[-80:], body[len(last) - 80 :][:160])
        last = body.rstrip(b']}"')
        checkpoint = view.checkpoint


@pytest.mark.parametrize("seed", SEEDS)
def test_a_view_can_be_rebuilt_from_its_records(seed):
    _, engine = folded(seed)
    again = ProjectionBuilder(engine.estimator, lambda image: "").project(
        engine.history.messages, engine.store.active_checkpoint
    )
    assert again.view.sha(b"") == engine.current().sha(b"")
    assert again.view.messages == list(engine.build_model_view().messages)


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_left_out_is_within_reach(seed):
    drawn, engine = folded(seed)
    gone = [seq for seq, fate in engine.fates().items() if fate != "shown"]
    for seq in drawn.random.sample(gone, min(3, len(gone))):
        assert engine.recall(id=f"#{seq}") is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refusal_is_answered_without_a_model(seed):
    drawn = History(seed)
    window, steps = drawn.window, drawn.steps
    engine = engine_for(window * 4)
    for records in steps:
        put(engine, records)
    before = engine.estimate()
    engine.set_window(window, "test")
    outcome = asyncio.run(engine.reactive_compact(None))
    if before > window:
        assert outcome.checkpoint is not None, (before, outcome)
        assert engine.estimate() <= min(window, before) // 2
    assert problems(engine.build_model_view().messages) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_undoing_a_fold_brings_the_former_view_back(seed):
    drawn = History(seed)
    window, steps = drawn.window, drawn.steps
    engine = engine_for(window)
    for records in steps:
        put(engine, records)
    before = engine.build_model_view().sha
    outcome = asyncio.run(engine.compact(None))
    if outcome.checkpoint is not None:
        engine.undo_fold()
    assert engine.build_model_view().sha == before
