"""Folds under settings, notes and histories that nobody would choose."""

from __future__ import annotations

import asyncio

import pytest

from runtime.context.budget import ContextSettings
from runtime.context.engine import ContextEngine
from runtime.context.shape import problems
from runtime.context.unfold import unfold
from runtime.model import Answer, ModelError, ModelErrorKind
from tests.support.histories import engine_for, put
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Image, ToolCall, ToolResult, Usage, User


def worked(engine, steps: int, words: str = "content ") -> None:
    put(engine, [User("Look at every file.")])
    for n in range(steps):
        call = ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}')
        put(engine, [Assistant(f"File {n}.", (call,)), ToolResult(call.id, "read", f"{words}{n} " * 60)])


class Writer:
    """A model whose notes are always the same, however few are asked for."""

    name, window, window_source = "writer", 8_000, "set"

    def __init__(self, notes: str) -> None:
        self.notes = notes

    async def stream(self, view):
        yield Answer(Assistant(self.notes), Usage(10, 10))


@pytest.mark.parametrize("window", [600, 2_000, 8_000, 128_000])
@pytest.mark.parametrize("notes", ["note words ", "中文笔记内容"])
def test_notes_without_end_never_keep_a_fold_from_fitting(window, notes):
    engine = engine_for(window, ContextSettings(keep_turns=2))
    put(engine, [User("go"), *(Assistant(f"thought {n} " * (window // 100)) for n in range(120))])
    outcome = asyncio.run(engine.compact_if_needed(Writer(notes * 9_000)))
    assert outcome is not None and outcome.checkpoint is not None, outcome
    assert engine.estimate() <= window // 2
    kept = outcome.checkpoint
    assert bool(kept.notes) == (kept.notes_status == "ok") == bool(kept.notes_upto)


def test_a_token_budget_that_nothing_can_meet_does_not_cost_the_rescue():
    engine = engine_for(8_000, ContextSettings(token_budget=10))
    put(engine, [User("word " * 60_000)])
    outcome = asyncio.run(engine.compact_if_needed(None))
    assert outcome is not None and outcome.checkpoint is not None, outcome
    assert engine.estimate() <= 4_000


@pytest.mark.parametrize("threshold", [0.1, 0.15, 0.2])
def test_a_low_threshold_leaves_a_conversation(threshold):
    engine = engine_for(40_000, ContextSettings(compression_threshold=threshold))
    put(engine, [User("go")])
    count = 0
    while not engine.should_compact().should_compact:
        count += 1
        call = ToolCall(f"c{count}", "read", f'{{"path": "f{count}"}}')
        put(engine, [Assistant(f"File {count}.", (call,)), ToolResult(call.id, "read", f"content {count} " * 90)])
    asyncio.run(engine.compact_if_needed(None))
    assert engine.policy.trigger * 0.3 <= engine.estimate() <= engine.policy.trigger * 0.75


def test_of_one_message_of_ten_windows_as_much_stays_as_there_is_room_for():
    engine = engine_for(128_000)
    put(engine, [User("word " * 1_000_000)])
    asyncio.run(engine.compact_if_needed(None))
    assert 30_000 <= engine.estimate() <= 64_000


def test_a_little_over_a_floor_that_fills_most_of_the_window_is_better_than_a_refused_request():
    """One dense text made the estimate of all the rest too high, so that no goal can be met; what was refused is folded
    all the same."""
    engine = ContextEngine(TranscriptLog.memory(), system="You help. " * 1_500)
    engine.set_window(7_000, "test")
    put(engine, [User("go"), Assistant("ok"), User("\u00e4" * 400), Assistant("seen " * 60)])
    engine.estimator.observe(100.0, 140)
    before = engine.estimate()
    outcome = asyncio.run(engine.reactive_compact(None, ModelError(ModelErrorKind.PROMPT_TOO_LONG, "no", limit=7_000)))
    assert outcome.checkpoint is not None, outcome
    assert engine.estimate() < before
    assert engine.estimate() > engine.policy.goal(before, engine.floor())


def test_the_first_request_stays_while_results_of_tools_can_be_shortened():
    engine = engine_for(4_000)
    put(engine, [User("Mend the rounding. Never touch keep.txt."), User("Go on.")])
    for n in range(40):
        call = ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}')
        put(engine, [Assistant(f"File {n}.", (call,)), ToolResult(call.id, "read", f"line {n}\n" * 400)])
        asyncio.run(engine.compact_if_needed(None))
    assert engine.store.checkpoints
    assert engine.fates()[engine.history.messages[0].seq] == "shown"


def test_a_cut_text_ends_with_a_line_and_says_where_it_goes_on():
    engine = engine_for(8_000)
    put(engine, [User("go"), Assistant("".join(f"line {n} of the file\n" for n in range(1, 2_000)))])
    asyncio.run(engine.compact_if_needed(None))
    cut = next(m["content"] for m in reversed(engine.build_model_view().messages) if "folded: recall" in m["content"])
    head, _, rest = cut.partition("\n[... ")
    last = int(head.rpartition("line ")[2].split()[0])
    assert head.endswith(f"line {last} of the file")
    assert f"start={last + 1}) ...]\nline " in rest
    seq = rest.partition("#")[2].partition('"')[0]
    assert engine.recall(id=f"#{seq}", start=last + 1).startswith(f"line {last + 1} of the file")


def test_what_the_last_answer_asked_is_told_when_it_is_out_of_view():
    engine = engine_for(4_000)
    put(engine, [User("Look."), Assistant("I looked. " * 90 + "Shall I drop the table?"), User("Yes.")])
    for n in range(30):
        call = ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}')
        put(engine, [Assistant(f"File {n}.", (call,)), ToolResult(call.id, "read", f"content {n} " * 60)])
    asyncio.run(engine.compact_if_needed(None))
    state = engine.store.active_checkpoint.state
    line = next(x for x in state.splitlines() if x.endswith("Shall I drop the table?"))
    assert line.startswith("(#2) ... ")
    assert len(line) < 220


def test_old_calls_whose_results_are_lost_can_leave():
    engine = engine_for(4_000)
    put(engine, [User("go")])
    for n in range(100):
        engine.append(Assistant("looked " * 20, (ToolCall(f"c{n}", "read", '{"path": "x"}'),)))
    put(engine, [User("and now?")])
    asyncio.run(engine.compact_if_needed(None))
    assert engine.estimate() <= 2_000
    assert problems(engine.build_model_view().messages) == []


def test_words_between_a_call_and_its_result_do_not_leave_with_them():
    engine = engine_for(4_000)
    put(engine, [User("go")])
    for n in range(40):
        call = ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}')
        put(engine, [Assistant("a", (call,)), User(f"remember word{n}", "steered")])
        put(engine, [ToolResult(call.id, "read", f"result {n} " * 60)])
    asyncio.run(engine.compact_if_needed(None))
    said = [e for e in engine.history.messages if e.kind == "user"]
    assert {engine.fates()[e.seq] for e in said} == {"shown"}
    gone = next(s for s, fate in engine.fates().items() if fate.startswith("left out"))
    unfold(engine, gone)
    assert {engine.fates()[e.seq] for e in said} == {"shown"}
    assert engine.fates()[gone] == "shown"
    assert problems(engine.build_model_view().messages) == []


def test_twenty_folds_in_a_row_can_all_be_undone():
    engine = engine_for(8_000)
    views = []
    for _ in range(20):
        worked(engine, 40)
        views.append(engine.build_model_view().messages)
        assert asyncio.run(engine.compact_if_needed(None)).checkpoint is not None
        assert engine.estimate() <= 4_000
        assert problems(engine.build_model_view().messages) == []
        assert set(engine.fates()) == {e.seq for e in engine.history.messages}
    folds = [e.record.id for e in engine.store.checkpoints]
    assert [engine.undo_fold().id for _ in folds] == folds[::-1]
    assert engine.undo_fold() is None
    assert set(engine.fates().values()) == {"shown"}
    assert engine.build_model_view().messages[: len(views[0])] == views[0]


@pytest.mark.parametrize("by_tool", [False, True])
def test_pictures_that_are_more_than_a_window_are_put_away_and_come_back(by_tool):
    engine = engine_for(128_000)
    pictures = tuple(Image(engine.log.blobs.put(b"%d" % n), "image/png") for n in range(200))
    if by_tool:
        call = ToolCall("c", "read", "{}")
        put(engine, [User("look"), Assistant("", (call,)), ToolResult("c", "read", "200 pictures", images=pictures)])
    else:
        put(engine, [User("What is in these?", images=pictures)])
    asked = engine.history.last_seq
    outcome = asyncio.run(engine.compact_if_needed(None))
    assert outcome is not None and outcome.checkpoint is not None, outcome
    assert engine.estimate() <= 64_000
    assert engine.fates()[asked] == "stub"
    assert "data:image" not in str(engine.build_model_view().messages)
    assert problems(engine.build_model_view().messages) == []
    again = ContextEngine(engine.log, system="You help.")
    assert again.build_model_view().messages == engine.build_model_view().messages
    engine.set_window(1_000_000, "test")
    unfold(engine, asked)
    assert str(engine.build_model_view().messages).count("data:image") == 200
