"""Counts and refusals that cannot be true: they never fold for ever, and never take the window away."""

from __future__ import annotations

import asyncio

import pytest

from agent.workshop import floor_refusal
from runtime import events as ev
from runtime.context.engine import LEARNED, ContextEngine
from runtime.model import ModelError, ModelErrorKind
from tests.runtime.test_loop import Rig, call
from tests.support.histories import engine_for, put
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Note, Usage, User

COUNTS = {
    "one": lambda n: 1,
    "zero": lambda n: 0,
    "negative": lambda n: -5,
    "far too many": lambda n: 10_000_000,
    "as many as a window": lambda n: 200_000,
    "fewer each time": lambda n: max(10, 20_000 - 900 * n),
    "nothing of what was cached": lambda n: 11_000 if n % 10 == 9 else 600,
}


def played(tmp_path, count, steps: int = 30) -> tuple[Rig, list]:
    answers = [
        {"calls": [call("look", at=f"{n}" + "y" * 2_000)], "usage": {"prompt_tokens": count(n)}} for n in range(steps)
    ]
    rig = Rig([*answers, "Done."], tmp_path)
    return rig, rig.run()


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_cannot_be_true_neither_folds_for_ever_nor_takes_the_window_away(name, tmp_path):
    rig, events = played(tmp_path, COUNTS[name])
    assert events[-1].reason == "done"
    assert sum(isinstance(e, ev.Compacting) for e in events) <= 4
    assert rig.engine.window >= 10_000


def test_a_server_that_counts_millions_does_not_make_the_floor_look_too_large(tmp_path):
    rig, _ = played(tmp_path, lambda n: 10_000_000, steps=3)
    assert rig.engine.estimator.factor < 1.1
    assert rig.engine.meter.proved < 4_000


def test_a_tokenizer_that_is_thrifty_is_not_taken_for_a_server_that_cuts():
    """It counts 0.4 of what is expected, whatever the size: held to cut at first, it is believed when a request of
    another size is counted alike, and the window is what it was."""
    engine = engine_for(128_000)
    put(engine, [User("look at this " * 8_000)])

    def ask() -> None:
        view = engine.build_model_view()
        entry = engine.record_request(view, "m")
        engine.append(Assistant("ok"))
        engine.append(Usage(int(entry.record.units * 0.4)))

    ask()
    asyncio.run(engine.compact_if_needed(None))
    assert (engine.window, engine.window_source) == (10_418, "learned from a refusal")
    ask()
    put(engine, [User("go on")])
    ask()
    assert (engine.window, engine.window_source) == (128_000, "test")
    assert engine.estimator.factor == pytest.approx(0.4, rel=0.01)
    again = ContextEngine(engine.log, system=engine.system, specs=engine.specs)
    again.set_window(128_000, "test")
    assert again.window == 128_000
    for _ in range(3):
        put(engine, [User("more " * 3_000)])
        ask()
    assert [e.record.value for e in engine.log.entries if e.key == "window_cap"] == [10_418, 0]


def test_a_window_that_was_guessed_grows_with_what_is_taken_and_ends_no_session():
    """A refusal without a figure, before anything was counted, may be taken for far too small a window."""
    engine = ContextEngine(TranscriptLog.memory(), system="You help. " * 300)
    engine.set_window(8_000, "test")
    put(engine, [User("go")])
    engine.append(Note("window_cap", 900))
    assert engine.window_source == LEARNED
    assert floor_refusal(engine).startswith("The window of 900 tokens (learned from a refusal) is too small")
    engine.record_request(engine.build_model_view(), "m")
    put(engine, [Assistant("ok"), Usage(850), User("word " * 900)])
    assert floor_refusal(engine) == ""
    engine.record_request(engine.build_model_view(), "m")
    put(engine, [Assistant("ok"), Usage(2_100), User("go on")])
    engine.record_request(engine.build_model_view(), "m")
    assert (engine.window, engine.window_source) == (2_100, LEARNED)


def test_a_negative_count_in_a_log_is_no_count():
    engine = engine_for(8_000)
    put(engine, [User("go " * 9_000)])
    before = engine.estimate()
    view = engine.build_model_view()
    engine.record_request(view, "m")
    engine.append(Usage(-5))
    assert (engine.estimate(), engine.window) == (before, 8_000)


@pytest.mark.parametrize("kind", [ModelErrorKind.PROMPT_TOO_LONG, ModelErrorKind.REQUEST_TOO_LARGE])
def test_refusals_without_end_end_the_turn_with_their_words_and_the_session_goes_on(kind, tmp_path):
    answers = [{"calls": [call("look", at=f"{n}" + "y" * 2_000)]} for n in range(20)]
    rig = Rig([*answers, *[ModelError(kind, "the real words")] * 4], tmp_path)
    events = rig.run()
    assert (events[-1].reason, events[-1].message) == ("error", "the real words")
    assert rig.engine.window >= 10_000
    assert len([e for e in rig.engine.history.messages if e.kind == "tool_result"]) == 20
    assert rig.run("again")[-1].reason == "done"


def test_refusals_of_a_server_that_never_counted_leave_room_for_a_conversation():
    engine = engine_for(8_000)
    for n in range(6):
        put(engine, [User(f"{n} " * 600), Assistant("ok " * 500)])
        asyncio.run(engine.reactive_compact(None, ModelError(ModelErrorKind.PROMPT_TOO_LONG, "too long")))
    assert engine.window >= 2 * engine.floor()


def test_a_limit_that_not_even_the_tools_fit_into_is_no_window_where_more_was_taken_before(tmp_path):
    answers = [{"calls": [call("look", at=f"{n}" + "y" * 2_000)]} for n in range(10)]
    odd = ModelError(ModelErrorKind.PROMPT_TOO_LONG, "at most 30 pictures, error 300", limit=30)
    rig = Rig([*answers, odd, "Done."], tmp_path)
    assert rig.run()[-1].reason == "done"
    assert (rig.engine.window, rig.model.window_source) == (rig.engine.meter.proved, "default")
    fresh = Rig([ModelError(ModelErrorKind.PROMPT_TOO_LONG, "at most 30", limit=30)], tmp_path)
    fresh.run()
    assert fresh.engine.window == 30


def test_notes_are_still_asked_for_after_folds_that_the_person_stopped():
    engine = engine_for(4_000)
    put(engine, [User("go"), *(Assistant(f"thought {n} " * 60) for n in range(40))])

    class Slow:
        name, window, window_source = "slow", 4_000, "set"

        async def stream(self, view):
            await asyncio.sleep(60)
            yield ev.TextDelta("")

    async def stopped() -> None:
        task = asyncio.ensure_future(engine.compact_if_needed(Slow()))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    before = engine.build_model_view().sha
    for _ in range(3):
        asyncio.run(stopped())
    assert (engine.notes.failures, engine.build_model_view().sha) == (0, before)


def test_what_was_futile_is_tried_again_when_something_has_changed():
    engine = engine_for(8_000)
    put(engine, [User("go " * 100), Assistant("x")])
    engine._futile = 9
    engine.pin(engine.history.last("user"))
    assert engine._futile == 0
    engine._futile = 9
    engine.set_window(4_000, "test")
    assert engine._futile == 0
