"""The model that plays a file."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from agent.models import make_model
from agent.models.scripted import END, Scripted
from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta, Waiting
from runtime.model import Answer, ModelError, ModelErrorKind
from tests.support.asking import Heard, ask, hear, view
from transcripts.records import Assistant, ToolCall, Usage


def write(path: Path, *entries: object) -> str:
    path.write_text("\n".join(json.dumps(e) for e in entries))
    return f"scripted:{path}"


def play(model: Scripted, times: int = 1) -> list[Heard]:
    async def run() -> list[Heard]:
        return [await hear(model) for _ in range(times)]

    return asyncio.run(run())


def test_answers_come_in_order_and_then_the_end(tmp_path: Path) -> None:
    spec = write(tmp_path / "s.jsonl", "One.", {"text": "Two."})
    model = make_model(spec)
    assert isinstance(model, Scripted)
    assert [h.message.text for h in play(model, 3)] == ["One.", "Two.", END]
    assert (model.name, model.window, model.window_source) == ("scripted:s.jsonl", 128_000, "default")
    assert [v.system for v in model.views] == ["You help."] * 3


def test_an_answer_with_everything(tmp_path: Path) -> None:
    call = {"name": "bash", "arguments": {"command": "ls"}}
    spec = write(
        tmp_path / "s.jsonl",
        {"window": 8000},
        {"text": "Ok.", "reasoning": "Hm.", "calls": [call], "usage": {"input": 9, "output": 3, "cached": 4}},
    )
    heard = ask(spec)
    assert heard.events == [ReasoningDelta("Hm."), TextDelta("Ok."), ToolCallDelta("bash", 17)]
    assert heard.answer is not None
    assert heard.answer.message == Assistant(
        "Ok.", (ToolCall("call_1_1", "bash", '{"command": "ls"}'),), "Hm.", "tool_calls", "scripted:s.jsonl"
    )
    usage = heard.answer.usage
    assert (usage.input, usage.output, usage.cached, usage.model) == (9, 3, 4, "scripted:s.jsonl")
    assert make_model(spec).window == 8000
    assert make_model(spec, window=500).window == 500


def test_usage_is_counted_unless_the_script_reports_nothing() -> None:
    counted, silent = play(Scripted([{"text": "x" * 40}, {"text": "x", "usage": {}}]), 2)
    assert counted.answer is not None and silent.answer is not None
    assert counted.answer.usage.output == 10
    assert (counted.answer.usage.input or 0) > 50
    assert (silent.answer.usage.input, silent.answer.usage.output) == (None, None)


def test_errors_are_raised_with_all_they_say() -> None:
    entry = {
        "error": "rate_limit",
        "message": "slow",
        "status": 429,
        "retry_after": 2,
        "limit": 5,
        "used": 6,
        "text": "Hal",
    }
    (heard,) = play(Scripted([entry]))
    error = heard.error
    assert error is not None
    assert (error.kind, error.message, error.status) == (ModelErrorKind.RATE_LIMIT, "slow", 429)
    assert (error.retry_after, error.limit, error.used) == (2, 5, 6)
    assert error.partial == Assistant("Hal", finish="cut", model="scripted:script")
    assert heard.shown == "Hal"
    (unknown,) = play(Scripted([{"error": "weird"}]))
    assert (unknown.error.kind, unknown.error.message) == (ModelErrorKind.UNKNOWN, "weird")  # type: ignore[union-attr]


def test_calls_of_a_cut_answer_are_not_to_be_run_and_broken_arguments_are_a_problem() -> None:
    cut = {"calls": [{"name": "bash", "arguments": {"command": "ls"}}], "finish": "length"}
    broken = {"calls": [{"name": "bash", "arguments": '{"command'}]}
    first, second = play(Scripted([cut, broken]), 2)
    assert (first.message.finish, bool(first.message.calls[0].problem)) == ("length", True)
    assert (second.message.calls[0].raw, second.message.calls[0].arguments) == ('{"command', "{}")


def test_a_window_can_be_enforced(tmp_path: Path) -> None:
    spec = write(tmp_path / "s.jsonl", {"window": 90_000, "enforce": 300}, "Fine.")
    model = make_model(spec)
    long = view([{"role": "user", "content": "x" * 4000}])

    async def run() -> list[Heard]:
        return [await hear(model, long), await hear(model)]

    refused, fine = asyncio.run(run())
    assert refused.error is not None
    assert (refused.error.kind, refused.error.limit) == (ModelErrorKind.PROMPT_TOO_LONG, 300)
    assert fine.message.text == "Fine."


@pytest.mark.parametrize(
    ("answered", "wanted"),
    [
        (0, ["One.", "boom", "Two."]),
        (1, ["boom", "Two.", "The end."]),
        (2, ["The end.", "The end.", "The end."]),
        (9, ["The end.", "The end.", "The end."]),
    ],
)
def test_a_resumed_session_goes_on_behind_its_answers(answered: int, wanted: list[str], tmp_path: Path) -> None:
    spec = write(tmp_path / "s.jsonl", {"end": "The end."}, "One.", {"error": "server", "message": "boom"}, "Two.")
    heard = play(make_model(spec, extra={"answered": answered}), 3)  # type: ignore[arg-type]
    assert [h.error.message if h.error else h.message.text for h in heard] == wanted


def test_what_a_script_can_be_made_of_in_python() -> None:
    whole = Answer(Assistant("Whole."), Usage(input=1))
    steps = ["Text.", whole, ModelError(ModelErrorKind.SERVER, "boom"), lambda v: f"{len(v.messages)} messages"]
    text, answer, error, made = play(Scripted(steps), 4)
    assert (text.message.text, answer.answer, made.message.text) == ("Text.", whole, "1 messages")
    assert (error.error.kind, error.error.message) == (ModelErrorKind.SERVER, "boom")  # type: ignore[union-attr]


def test_delays_are_told_and_can_be_stopped() -> None:
    async def run() -> float:
        task = asyncio.create_task(hear(Scripted([{"text": "Late.", "delay": 30, "waiting": "sleeping"}])))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        return time.monotonic() - began

    assert asyncio.run(run()) < 5
    (heard,) = play(Scripted([{"text": "x" * 60, "delay": 0.01, "stream_delay": 0.01}]))
    assert heard.waits == [Waiting("thinking")]
    assert [len(e.text) for e in heard.events[1:]] == [24, 24, 12]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ('["One.", "Two."]', ["One.", "Two."]),
        ('{"window": 5000, "answers": ["One."]}', ["One."]),
        ('# a comment\n\n"One."\n', ["One."]),
        ('\ufeff"One."\r\n"Two."\r\n', ["One.", "Two."]),
        ('{"text": "One."}', ["One."]),
    ],
)
def test_forms_of_the_file(text: str, answers: list[str], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    assert [h.message.text for h in play(make_model(f"scripted:{path}"), len(answers))] == answers  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "word"), [("{oops", "line 1"), ('"a"\n{"txt": 1}', "answer 2"), (None, "cannot be read")]
)
def test_a_file_that_is_none_says_where_it_is_wrong(text: str | None, word: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelError) as caught:
        make_model(f"scripted:{path}")
    assert (caught.value.kind, word in caught.value.message) == (ModelErrorKind.CONFIG, True), caught.value.message
