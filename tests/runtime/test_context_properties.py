"""The invariants of the context, on random histories. A failure names the seed of the smallest window it shows in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.engine import ContextEngine
from runtime.context.projection import ProjectionBuilder, canonical
from runtime.context.shape import problems
from tests.support.histories import WINDOWS, History, engine_for, put

ROUNDS = int(os.environ.get("TEST_ROUNDS", "40"))
"""Random histories a property is tried on; set it to 10000 for the long run."""


def on_histories(test: Callable[[History], None]) -> Callable[[], None]:
    """Tries a property on that many histories; each window comes up as often as it is listed."""
    tries = settings(max_examples=ROUNDS, deadline=None, database=None, derandomize=True, print_blob=False)
    histories = st.builds(History, st.integers(0, 2**32 - 1), st.sampled_from(WINDOWS))
    return tries(given(histories)(test))


@on_histories
def test_a_history_folded_whenever_it_is_due(drawn: History) -> None:
    """Conservation, shape, stable prefix, rescue without a model, progress; and that what left can be got back."""
    engine = engine_for(drawn.window)
    last, checkpoint = b"", ""
    for records in drawn.steps:
        put(engine, records)
        before = engine.estimate()
        outcome = asyncio.run(engine.compact_if_needed(None))
        if outcome is not None:
            assert outcome.checkpoint is not None, outcome
            assert engine.estimate() <= drawn.window // 2
            assert engine.estimate() <= before * 0.75
        assert engine.estimate() <= engine.policy.trigger
        assert set(engine.fates()) == {e.seq for e in engine.history.messages}
        view = engine.build_model_view()
        assert problems(view.messages) == []
        body = canonical(list(view.messages))
        if view.checkpoint == checkpoint:
            assert body.startswith(last), (last[-80:], body[len(last) - 80 :][:160])
        last, checkpoint = body.rstrip(b']}"'), view.checkpoint
    is_rebuilt(engine)
    is_within_reach(engine, drawn)


def is_rebuilt(engine: ContextEngine) -> None:
    """The view is the same when it is made of its records in one go."""
    again = ProjectionBuilder(engine.estimator, lambda image: "").project(
        engine.history.messages, engine.store.active_checkpoint
    )
    assert again.view.sha(b"") == engine.current().sha(b"")
    assert again.view.units == engine.current().units
    assert again.view.messages == list(engine.build_model_view().messages)


def is_within_reach(engine: ContextEngine, drawn: History) -> None:
    """What is not shown can be recalled by its number."""
    gone = [seq for seq, fate in engine.fates().items() if fate != "shown"]
    for seq in drawn.random.sample(gone, min(3, len(gone))):
        assert engine.recall(id=f"#{seq}") is not None


@on_histories
def test_a_refusal_is_answered_without_a_model(drawn: History) -> None:
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


@on_histories
def test_undoing_a_fold_brings_the_former_view_back(drawn: History) -> None:
    window, steps = drawn.window, drawn.steps
    engine = engine_for(window)
    for records in steps:
        put(engine, records)
    before = engine.build_model_view().sha
    outcome = asyncio.run(engine.compact(None))
    if outcome.checkpoint is not None:
        engine.undo_fold()
    assert engine.build_model_view().sha == before
