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


def folded(drawn: History) -> ContextEngine:
    """A history put into an engine step by step, folded whenever it was over the trigger."""
    engine = engine_for(drawn.window)
    for records in drawn.steps:
        put(engine, records)
        asyncio.run(engine.compact_if_needed(None))
    return engine


@on_histories
def test_every_view_is_well_formed_fits_and_conserves(drawn: History) -> None:
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


@on_histories
def test_the_view_only_grows_at_its_end_until_a_checkpoint(drawn: History) -> None:
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


@on_histories
def test_a_view_can_be_rebuilt_from_its_records(drawn: History) -> None:
    engine = folded(drawn)
    again = ProjectionBuilder(engine.estimator, lambda image: "").project(
        engine.history.messages, engine.store.active_checkpoint
    )
    assert again.view.sha(b"") == engine.current().sha(b"")
    assert again.view.messages == list(engine.build_model_view().messages)


@on_histories
def test_everything_left_out_is_within_reach(drawn: History) -> None:
    engine = folded(drawn)
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
