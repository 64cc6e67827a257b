"""The loop, told by its events: what happens, in which order, and what is on disk when it is told."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Annotated

import pytest

from agent.models.scripted import Scripted
from runtime import events as ev
from runtime.context.engine import ContextEngine
from runtime.context.shape import problems
from runtime.crew import Crew, Limits, Permit
from runtime.loop import run_turn
from runtime.model import ModelError, ModelErrorKind
from runtime.retry import RetryPolicy
from tools.base import Toolbox, ToolContext, ToolFailure, ToolOutput, tool
from transcripts.log import TranscriptLog
from transcripts.records import User

QUICK = RetryPolicy(attempts=3, base=0.0, jitter=0.0)


@tool(effect="read")
async def look(ctx: ToolContext, at: Annotated[str, "What"], wait: float = 0.0) -> ToolOutput:
    """Looks at something."""
    ctx.state.setdefault("started", []).append(at)
    await asyncio.sleep(wait)
    if at == "nothing":
        raise ToolFailure("There is nothing.")
    if at == "bug":
        raise RuntimeError("a bug")
    ctx.state.setdefault("ended", []).append(at)
    return ToolOutput(f"saw {at}")


@tool(effect="execute")
async def act(ctx: ToolContext, what: str) -> str:
    """Does something and says so while it does."""
    ctx.progress(f"doing {what}")
    await asyncio.sleep(0.01)
    if what == "for ever":
        await asyncio.sleep(60)
    return f"did {what}"


class Rig:
    """A crew over a scripted model, and what one turn gave."""

    def __init__(self, steps, tmp_path: Path, **more):
        self.model = Scripted(steps)
        ctx = ToolContext(root=tmp_path, cwd=tmp_path)
        self.toolbox = Toolbox({"look": look, "act": act}, ctx)
        self.engine = ContextEngine(TranscriptLog.memory(), system="You help.", specs=self.toolbox.specs())
        self.lines: list[str] = []
        self.crew = Crew(
            self.engine, self.model, self.toolbox, steered=self._steered, retry=QUICK, **{"limits": Limits(), **more}
        )

    def _steered(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    async def turn(self, text: str = "go", stop_at: type | None = None) -> list:
        out = []
        async for event in run_turn(self.crew, User(text)):
            out.append(event)
            if stop_at and isinstance(event, stop_at):
                break
        return out

    def run(self, text: str = "go") -> list:
        events = asyncio.run(self.turn(text))
        for view in self.model.views:
            assert problems(view.messages) == []
        return events

    def said(self) -> list[tuple]:
        """The history as (kind, text or status)."""
        return [(e.kind, getattr(e.record, "status", e.record.text)) for e in self.engine.history.messages]


def call(name: str, **arguments) -> dict:
    return {"name": name, "arguments": arguments}


def names(events: list) -> list[str]:
    return [type(e).__name__ for e in events if not isinstance(e, (ev.TextDelta, ev.ToolCallDelta))]


def test_a_turn_is_told_in_order(tmp_path):
    rig = Rig([{"text": "I act.", "calls": [call("act", what="it")]}, "Done."], tmp_path)
    events = rig.run()
    assert names(events) == [
        "TurnStarted", "RequestSent", "AnswerRecorded", "ToolStarted", "ToolProgress", "ToolFinished", "RequestSent",
        "AnswerRecorded", "TurnEnded",
    ]  # fmt: skip
    assert (events[-1].reason, events[-1].text, events[-1].steps) == ("done", "Done.", 2)
    assert [e.kind for e in rig.engine.log.entries] == [
        "user", "request", "assistant", "usage", "tool_started", "tool_result", "request", "assistant", "usage",
        "turn_end",
    ]  # fmt: skip


def test_reading_calls_that_are_stopped_leave_nobody_to_complain(tmp_path, caplog):
    calls = [call("look", at="slow", wait=60.0), call("look", at="slower", wait=60.0)]
    rig = Rig([{"calls": calls}, "Done."], tmp_path)

    async def stopped() -> None:
        task = asyncio.ensure_future(rig.turn())
        while not rig.toolbox.ctx.state.get("started"):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(stopped())
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    assert rig.run("again")[-1].reason == "done"


def test_reading_calls_run_side_by_side_and_answer_in_order(tmp_path):
    calls = [call("look", at="slow", wait=0.1), call("look", at="nothing"), call("look", at="quick")]
    rig = Rig([{"calls": calls}, "Done."], tmp_path)
    events = rig.run()
    state = rig.toolbox.ctx.state
    assert state["started"] == ["slow", "nothing", "quick"]
    assert state["ended"] == ["quick", "slow"]
    results = [(e.result.text, e.result.status) for e in events if isinstance(e, ev.ToolFinished)]
    assert results == [("saw slow", "ok"), ("There is nothing.", "error"), ("saw quick", "ok")]


def test_a_bug_in_a_tool_raises_and_loses_nothing(tmp_path):
    calls = [call("look", at="a"), call("look", at="bug"), call("look", at="b")]
    rig = Rig([{"calls": calls}, "Done."], tmp_path)
    with pytest.raises(RuntimeError, match="a bug"):
        rig.run()
    assert [s for k, s in rig.said() if k == "tool_result"] == ["ok", "ok"]
    rig.run("and now?")
    assert rig.said()[-2:] == [("user", "and now?"), ("assistant", "Done.")]


def test_a_denied_call_does_not_run_and_the_model_is_told_why(tmp_path):
    async def no(call):
        return Permit(False, "[The person did not allow this call. They said: use make]")

    rig = Rig([{"calls": [call("act", what="it")]}, "Fine."], tmp_path, approve=no)
    events = rig.run()
    finished = next(e for e in events if isinstance(e, ev.ToolFinished))
    assert (finished.result.status, finished.result.text[-9:]) == ("denied", "use make]")
    assert events[-1].denials == ("act it",)
    assert "tool_started" not in [e.kind for e in rig.engine.log.entries]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (call("fly", to="moon"), "There is no tool 'fly'. The tools are: look, act."),
        (call("look", where="here"), "look: missing at; unknown argument where. It takes: at, wait."),
        ({"name": "look", "arguments": '["a"]'}, "[Not run: "),
    ],
)
def test_the_models_mistakes_come_back_as_short_corrections(tmp_path, wrong, words):
    rig = Rig([{"calls": [wrong]}, "Sorry."], tmp_path)
    events = rig.run()
    finished = next(e for e in events if isinstance(e, ev.ToolFinished))
    assert finished.result.status == "error"
    assert finished.result.text.startswith(words)
    assert events[-1].reason == "done"


def test_an_answer_cut_by_the_output_limit_goes_on_and_its_calls_do_not_run(tmp_path):
    steps = [
        {"text": "First half", "finish": "length"},
        {"text": "and", "calls": [call("act", what="it")], "finish": "length"},
        "the end.",
    ]
    rig = Rig(steps, tmp_path)
    events = rig.run()
    kinds = [(k, s[:24]) for k, s in rig.said()]
    assert kinds == [
        ("user", "go"), ("assistant", "First half"), ("user", "[Your answer was cut off"), ("assistant", "and"),
        ("tool_result", "not_run"), ("assistant", "the end."),
    ]  # fmt: skip
    assert events[-1].reason == "done"


def test_what_may_pass_is_asked_again_and_told(tmp_path):
    busy = ModelError(ModelErrorKind.RATE_LIMIT, "busy")
    rig = Rig([busy, busy, "Done."], tmp_path)
    events = rig.run()
    assert [(e.reason, e.attempt, e.attempts) for e in events if isinstance(e, ev.Retrying)] == [
        ("busy", 2, 3),
        ("busy", 3, 3),
    ]
    assert events[-1].reason == "done"


@pytest.mark.parametrize("kind", [ModelErrorKind.AUTH, ModelErrorKind.QUOTA, ModelErrorKind.NOT_FOUND])
def test_what_cannot_help_is_not_asked_again(tmp_path, kind):
    rig = Rig([ModelError(kind, "no"), "Done."], tmp_path)
    events = rig.run()
    assert (events[-1].reason, events[-1].kind, events[-1].message) == ("error", kind, "no")
    assert len(rig.model.views) == 1
    assert rig.run("again")[-1].reason == "done"


def test_lines_typed_meanwhile_are_handed_over_at_the_next_step(tmp_path):
    rig = Rig([{"calls": [call("look", at="a")]}, "Done.", "Also done."], tmp_path)

    async def turn():
        out = []
        async for event in run_turn(rig.crew, User("go")):
            out.append(event)
            if isinstance(event, ev.ToolStarted):
                rig.lines.append("look at b too")
            if isinstance(event, ev.AnswerRecorded) and event.message.text == "Done.":
                rig.lines.append("and c")
        return out

    events = asyncio.run(turn())
    assert [e.text for e in events if isinstance(e, ev.Steered)] == ["look at b too", "and c"]
    assert rig.said() == [
        ("user", "go"), ("assistant", ""), ("tool_result", "ok"), ("user", "look at b too"), ("assistant", "Done."),
        ("user", "and c"), ("assistant", "Also done."),
    ]  # fmt: skip


def test_a_stopped_turn_keeps_what_came_and_the_next_one_is_well_formed(tmp_path):
    rig = Rig([{"text": "I act.", "calls": [call("act", what="for ever")]}, "I see."], tmp_path)

    async def stopped():
        task = asyncio.ensure_future(rig.turn())
        while not any(e.kind == "tool_started" for e in rig.engine.log.entries):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    assert rig.engine.log.entries[-1].record.reason == "interrupted"
    rig.run("what happened?")
    assert rig.said() == [
        ("user", "go"), ("assistant", "I act."), ("tool_result", "interrupted"), ("user", "what happened?"),
        ("assistant", "I see."),
    ]  # fmt: skip


def test_text_that_was_streaming_when_it_was_stopped_is_kept(tmp_path):
    rig = Rig(
        [{"text": "one two three four five six seven eight nine ten " * 20, "stream_delay": 0.05}, "ok"], tmp_path
    )

    async def stopped():
        async def until_text():
            async for event in run_turn(rig.crew, User("go")):
                if isinstance(event, ev.TextDelta):
                    seen.append(event.text)

        seen: list[str] = []
        task = asyncio.ensure_future(until_text())
        while len(seen) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return "".join(seen)

    seen = asyncio.run(stopped())
    kept = rig.engine.history.messages[-1].record
    assert (kept.finish, kept.text[: len(seen)]) == ("interrupted", seen)


def test_the_third_same_call_with_the_same_result_gets_a_nudge(tmp_path):
    same = {"calls": [call("look", at="a")]}
    rig = Rig([same, same, same, "Done."], tmp_path)
    events = rig.run()
    texts = [e.result.text for e in events if isinstance(e, ev.ToolFinished)]
    assert texts[:2] == ["saw a", "saw a"]
    assert texts[2].startswith("[This is time 3 that this call gave this very result.")
    assert events[-1].reason == "done"


def test_a_small_model_that_repeats_itself_is_stopped_with_an_honest_word(tmp_path):
    same = {"calls": [call("look", at="a")]}
    rig = Rig([same] * 9, tmp_path, limits=Limits(nudge_at=2, stop_at=3))
    events = rig.run()
    assert (events[-1].reason, events[-1].steps) == ("stuck", 3)
    assert events[-1].message == "the same call gave the same result 3 times in a row"


def test_a_turn_stops_at_its_limit_of_requests(tmp_path):
    rig = Rig([{"calls": [call("look", at=str(n))]} for n in range(9)], tmp_path, limits=Limits(max_steps=3))
    events = rig.run()
    assert (events[-1].reason, events[-1].steps) == ("limit", 3)
    assert events[-1].message == "the limit of 3 requests is reached"
