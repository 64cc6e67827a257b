"""A log that has lost something, or holds what no provider takes back, still gives a request any provider takes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.models.scripted import Scripted
from agent.session import Session
from runtime.context.engine import ContextEngine
from tests.support.lived import call, settings
from tests.support.strict import refusals
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Note, Record, ToolCall, ToolResult, User

NOT_SHOWN = {"role": "user", "content": "[What stood here is not shown.]"}


def shown(*records: Record) -> list[dict[str, Any]]:
    """What the next request shows of these records and "Go on."; any provider has to take it."""
    log = TranscriptLog.memory()
    engine = ContextEngine(log, system="system")
    for record in records:
        log_entry = log.append(record)
        engine.take(log_entry)
    engine.close_open_calls()
    engine.append(User("Go on."))
    view = engine.build_model_view()
    engine.record_request(view, "m")
    assert refusals(view.messages) == []
    assert [e for e in log.entries if e.key == "shape"] == []
    return [dict(m) for m in view.messages]


def a_call(ident: str, name: str = "read") -> dict[str, Any]:
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_an_answer_whose_question_is_lost() -> None:
    assert shown(Assistant("a"), User("b")) == [NOT_SHOWN, {"role": "assistant", "content": "a"}, *shown(User("b"))]


def test_two_answers_in_a_row() -> None:
    said = shown(User("q"), Assistant("a"), Assistant("b"))
    assert said[1:4] == [{"role": "assistant", "content": "a"}, NOT_SHOWN, {"role": "assistant", "content": "b"}]


def test_a_result_without_its_call_and_a_call_without_its_result() -> None:
    assert shown(ToolResult("x", "read", "lost"), User("q")) == shown(User("q"))
    said = shown(User("q"), Assistant("", (ToolCall("c1", "read"),)), Assistant("later"), User("more"))
    lost = "[The result of this call is not in the log. It may have run: verify before you repeat it.]"
    assert said[2:4] == [
        {"role": "tool", "tool_call_id": "c1", "content": lost},
        {"role": "assistant", "content": "later"},
    ]


def test_results_that_stand_apart_from_their_call_are_shown_behind_it() -> None:
    said = shown(
        User("q"), Assistant("", (ToolCall("c1", "read"), ToolCall("c2", "read"))), ToolResult("c2", "read", "2"),
        User("typed meanwhile"), ToolResult("c1", "read", "1"),
    )  # fmt: skip
    assert [m["content"] for m in said] == ["q", None, "1", "2", "typed meanwhile\n\nGo on."]


def test_an_id_that_is_there_twice_gets_another() -> None:
    answer = Assistant("", (ToolCall("c", "read"),))
    said = shown(User("q"), answer, ToolResult("c", "read", "1"), answer, ToolResult("c", "read", "2"))
    assert [m["tool_calls"] for m in said if "tool_calls" in m] == [[a_call("c")], [a_call("c_2")]]
    assert [(m["tool_call_id"], m["content"]) for m in said if m["role"] == "tool"] == [("c", "1"), ("c_2", "2")]
    both = Assistant("", (ToolCall("c", "read"), ToolCall("c", "read")))
    said = shown(User("q"), both, ToolResult("c", "read", "1"))
    assert [m["tool_call_id"] for m in said if m["role"] == "tool"] == ["c", "c_2"]
    assert [c["id"] for c in shown(User("q"), Assistant("", (ToolCall("", "read"),)))[1]["tool_calls"]] == ["call_2"]


@pytest.mark.parametrize(
    ("name", "wire"), [("read", "read"), ("a b.c", "a_b_c"), ("", "unknown"), ("x" * 90, "x" * 64), ("工具", "__")]
)
def test_names_that_no_provider_takes_back(name: str, wire: str) -> None:
    said = shown(User("q"), Assistant("", (ToolCall("c", name),)), ToolResult("c", name, "no such tool"))
    assert said[1]["tool_calls"][0]["function"]["name"] == wire


@pytest.mark.parametrize("blank", ["", " \n\t", "\u2028"])
def test_nobody_says_nothing(blank: str) -> None:
    said = shown(
        User(blank),
        Assistant(blank),
        User("x"),
        Assistant(blank, (ToolCall("c", "read"),)),
        ToolResult("c", "read", blank),
    )
    assert [m["content"] for m in said] == ["(empty message)", "(no answer)", "x", None, "(no output)", "Go on."]


def test_half_characters() -> None:
    said = shown(User("\ud83e x"), Assistant("\udc00"), User("y"))
    assert [m["content"] for m in said] == ["\ufffd x", "\ufffd", "y\n\nGo on."]


def test_what_a_session_knew_is_known_again(tmp_path: Path) -> None:
    """Name, model, usage, todo list, folder and files seen: from the note that sums up a turn, and what came after."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "a.txt").write_text("a\n")
    steps = [
        {"calls": [call("todo", items=[{"text": "one", "status": "pending"}]), call("read", path="a.txt")]},
        {"calls": [call("bash", command="cd sub")]},
        "First.",
        {"calls": [call("bash", command="pwd")]},
        "Second.",
    ]

    def play(resume: str, texts: list[str], name: str = "") -> tuple[Session, list[str]]:
        model = Scripted(steps, start=3 if resume else 0)
        session = Session.start(settings(tmp_path / "home"), cwd=work, model=model, resume=resume, name=name)

        async def run() -> None:
            for text in texts:
                async for _ in session.send(text):
                    pass

        asyncio.run(run())
        return session, [e.record.text for e in session.log.entries if e.kind == "tool_result"]

    first, _ = play("", ["go"], "cart")
    usage = first.usage
    first.close()
    # A crash in the middle of the next turn: the note of that turn is missing, its records are there.
    second, results = play("latest", ["where are you?"])
    assert results[-1].strip() == str(work / "sub")
    assert (second.name, second.usage.input or 0) == ("cart", (second.usage.input or 0))
    path = second.path
    spent = second.usage
    second.close()
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines[:-2]))
    third, _ = play("cart", [])
    ctx = third.toolbox.ctx
    assert (third.name, third.usage.input, third.usage.output) == ("cart", spent.input, spent.output)
    assert (usage.input or 0) < (spent.input or 0)
    assert (ctx.cwd, ctx.state["todo"], str(work / "a.txt") in ctx.seen) == (
        work / "sub", [{"text": "one", "status": "pending"}], True,
    )  # fmt: skip
    third.close()
    log = TranscriptLog.open(path, readonly=True)
    assert [e.key for e in log.entries if e.kind == "note"].count("state") >= 1
    assert not any(isinstance(e.record, Note) and e.record.key == "shape" for e in log.entries)
    log.close()
