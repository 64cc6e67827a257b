"""Sub-agents in whole runs: what comes back, what it costs, what is kept, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from agent import sessions
from agent.commands.base import load_commands
from agent.export import forms as export
from agent.models.scripted import Scripted
from agent.replay import verify
from runtime.events import TaskEvent, ToolFinished, ToolStarted
from tests.support.command import lines, refold, script
from tests.support.plain_face import PlainFace
from tests.support.processes import gone
from tests.support.tasked import Desk, bash, call, calls, results_of, task
from transcripts.catalog import find_session, list_sessions, tasks_folder
from transcripts.log import TranscriptLog

USAGE = {"input": 100, "output": 10}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("ws", "home"):
        (tmp_path / folder).mkdir()
    (tmp_path / "ws" / "a.txt").write_text("alpha\nbeta\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_only_the_report_comes_back(base: Path) -> None:
    look = [calls(call("read", path="a.txt"), call("grep", pattern="beta")), "beta stands in a.txt:2"]
    with Desk(base, [calls(task("find beta", prompt="Where is beta?"))], {"find beta": look}) as desk:
        (result,) = desk.send()
        (log,) = desk.logs()
        ident = sessions.id_of(log)
        view = desk.model.views[-1]
    assert result.status == "ok"
    assert result.text.startswith(f"beta stands in a.txt:2\n[sub-agent {ident}: 2 requests, ")
    assert {k: v for k, v in result.meta.items() if k in ("task", "steps")} == {"task": ident, "steps": 2}
    assert [m["role"] for m in view.messages] == ["user", "assistant", "tool"]
    child = TranscriptLog.open(log, readonly=True)
    kinds = [e.kind for e in child.entries if e.kind not in ("note", "request", "usage")]
    start, prompt = child.entries[0].record, next(e.record for e in child.entries if e.kind == "user")
    assert (verify(child).requests, verify(child).differences) == (2, ())
    child.close()
    assert kinds == ["session", "user", "assistant", "tool_result", "tool_result", "assistant", "turn_end"]
    assert (start.name, start.parent, prompt.text, prompt.source) == (
        "find beta", desk.session.id, "Where is beta?", "task",
    )  # fmt: skip


def test_the_system_prompt_of_the_session_and_the_bytes_before_stay_the_same(base: Path) -> None:
    answers = [calls(call("read", path="a.txt")), calls(task("look")), "one", "two"]
    with Desk(base, answers, {"look": ["Seen."]}) as desk:
        desk.send("one")
        desk.send("two")
        views = list(desk.model.views)
    assert {(v.system, json.dumps(list(v.tools))) for v in views} == {
        (views[0].system, json.dumps(list(views[0].tools)))
    }
    for before, after in zip(views, views[1:], strict=False):
        assert list(after.messages)[: len(before.messages)] == list(before.messages)


def test_those_that_explore_run_side_by_side_and_those_that_work_do_not(base: Path) -> None:
    slow = {"text": "Seen.", "delay": 2}
    with Desk(base, [calls(*(task(f"n{n}") for n in range(3)))], {f"n{n}": [slow] for n in range(3)}) as desk:
        began = time.monotonic()
        assert [r.text.partition("\n")[0] for r in desk.send()] == ["Seen."] * 3
        assert time.monotonic() - began < 5.5
    work = calls(*(task(f"n{n}", "work") for n in range(2)))
    with Desk(base, [work], {f"n{n}": [bash(f"echo {n} >> order.txt; sleep 0.1"), "Done."] for n in range(2)}) as desk:
        desk.send()
        order = [type(e).__name__ for e in desk.events if isinstance(e, (ToolStarted, ToolFinished))]
    assert order == ["ToolStarted", "ToolFinished"] * 2
    assert (base / "ws" / "order.txt").read_text() == "0\n1\n"


def test_what_it_does_is_told_while_it_does_it(base: Path) -> None:
    with Desk(base, [calls(task("look"))], {"look": [bash("ls"), "Seen."]}) as desk:
        desk.send()
        told = [e for e in desk.events if isinstance(e, TaskEvent)]
    assert {(e.call.id, e.reads) for e in told} == {("call_1_1", True)}
    shown = [type(e.event).__name__ for e in told]
    assert shown == [
        "TurnStarted", "RequestSent", "AnswerRecorded", "ToolStarted", "ToolFinished", "RequestSent", "AnswerRecorded",
        "TurnEnded",
    ]  # fmt: skip
    assert next(e.doing for e in told if isinstance(e.event, ToolStarted)).endswith(" tokens · $ ls")


def test_what_it_costs_counts_for_the_session(base: Path) -> None:
    own = [{**calls(task("look")), "usage": USAGE}, {"text": "done", "usage": USAGE}]
    tasks = {"look": [{**bash("ls"), "usage": USAGE}, {"text": "Seen.", "usage": USAGE}]}
    with Desk(base, own, tasks) as desk:
        (result,) = desk.send()
        assert (desk.ended.usage.input, desk.ended.usage.output, desk.ended.steps) == (400, 40, 2)
        assert (desk.session.usage.input, result.meta["tokens"]) == (400, 220)
        face = PlainFace(desk.session)
        asyncio.run(load_commands()["usage"].run(face, ""))
        rows = {line.split(" | ")[0]: line.split(" | ")[1:3] for line in face.lines}
        assert rows["sub-agents"] == ["2", "200"]
    with Desk(base, [], {}, resume=desk.session.id) as again:
        assert again.session.usage.input == 400


@pytest.mark.parametrize(
    ("flags", "why", "code"),
    [
        (["--max-turns", "4"], "the limit of 4 requests (--max-turns) was reached", 4),
        (["--max-tokens", "400"], "the limit of 400 tokens (--max-tokens) was reached: 440 used", 4),
        (["--set", "subagent_steps=2"], "", 0),
        (["--set", "subagent_tokens=150"], "", 0),
    ],
)
def test_limits(base: Path, home: Path, flags: list[str], why: str, code: int) -> None:
    head = {
        "defaults": {"usage": USAGE},
        "tasks": {"look": [{**bash(f"ls {n}"), "text": f"I saw {n}."} for n in range(9)]},
    }
    model = script(base / "script.jsonl", head, calls(task("look")), "done")
    done = refold("-p", "go", "-m", model, "-o", "json", "--yolo", *flags, cwd=base / "ws")
    result = json.loads(done.stdout)
    assert (done.returncode, result["meta"]["why"]) == (code, why)
    log = TranscriptLog.open(list_sessions(home)[0].path, readonly=True)
    text = next(e.record.text for e in log.entries if e.kind == "tool_result")
    status = next(e.record.status for e in log.entries if e.kind == "tool_result")
    log.close()
    ends = text.partition("\n")[0]
    assert (status, ends.startswith("[The sub-agent did not come to an end: the limit of ")) == ("error", True)
    assert "\nWhat it had said last:\nI saw " in text
    assert result["num_turns"] == 4


def test_one_that_fails_says_what_it_had_found(base: Path) -> None:
    tasks = {
        "look": [{**bash("ls"), "text": "It begins with a."}, {"error": "auth", "message": "the key was refused"}],
        "mute": [{"text": " "}],
    }
    with Desk(base, [calls(task("look"), task("mute"), task("odd", "other"))], tasks) as desk:
        results = desk.send()
    assert [r.status for r in results] == ["error"] * 3
    assert results[0].text.startswith(
        "[The sub-agent did not come to an end: the key was refused.]\nWhat it had said last:\nIt begins with a.\n"
    )
    assert results[1].text.startswith("(it ended without a report)\n")
    assert results[2].text == "There is no kind 'other' of sub-agent; there are explore, work."


def test_the_model_can_look_at_what_one_did(base: Path) -> None:
    with Desk(base, [calls(task("look")), "one"], {"look": [bash("cat a.txt"), "Seen."]}) as desk:
        (result,) = desk.send()
        found = desk.session.toolbox.ctx.recall(id=result.meta["task"], start=1, count=50)
        page = desk.session.toolbox.ctx.recall(id=result.meta["task"], start=2, count=1)
        with pytest.raises(ValueError, match="There is no message #999"):
            desk.session.toolbox.ctx.recall(id="#999")
    assert found == (
        'task: Find it out.\nsaid: \n  -> bash({"command": "cat a.txt"})\nbash ok: alpha\nbeta\nsaid: Seen.'
    )
    assert page.startswith("said: \n[lines 2 to 2 of 6; ")


def test_undo_takes_back_what_one_did(base: Path) -> None:
    work = [calls(call("write", path="n.txt", content="n")), bash("echo more >> a.txt; rm -f gone; mkdir d"), "Done."]
    with Desk(base, [calls(task("do it", "work"))], {"do it": work}, mode="yolo") as desk:
        desk.send()
        assert sorted(os.listdir(base / "ws")) == ["a.txt", "d", "n.txt"]
        titles = [e.record.value["title"] for e in desk.session.log.entries if e.key == "snapshot"]
        assert titles[0] == "sub-agent: do it: write n.txt"
        face = PlainFace(desk.session, [True])
        asyncio.run(load_commands()["undo"].run(face, ""))
        left = {p.name: p.read_text() for p in (base / "ws").iterdir()}
        ident = desk.session.id
    assert left == {"a.txt": "alpha\nbeta\n"}
    with Desk(base, [], {}, resume=ident, mode="yolo") as again:
        asyncio.run(load_commands()["redo"].run(PlainFace(again.session, [True]), ""))
    assert sorted(os.listdir(base / "ws")) == ["a.txt", "d", "n.txt"]


def test_it_goes_where_the_session_goes(base: Path, home: Path) -> None:
    folder = base / "ws"
    model = script(base / "s.jsonl", {"tasks": {"look": [bash("ls"), "Seen."]}}, calls(task("look")), "done")
    refold("-p", "go", "-m", model, "--yolo", cwd=folder)
    (info,) = list_sessions(home, folder)
    child = next(s for s in list_sessions(home, folder, tasks=True) if s.task_of)
    assert (child.name, child.task_of, find_session(home, folder, "latest")) == ("look", info.id, info.path)
    assert find_session(home, folder, child.id) == child.path
    assert len(refold("sessions", cwd=folder).stdout.splitlines()) == 1
    assert f"sub-agent of {info.id}: look" in refold("sessions", "--tasks", cwd=folder).stdout
    assert refold("replay", "--verify", child.id, cwd=folder).stdout == "2 of 2 requests come out as they were sent\n"
    checked = refold("sessions", "verify", info.id, cwd=folder).stdout.splitlines()
    assert [line.rpartition("; ")[2] for line in checked] == ["all is well"] * 2
    (base / "out.json").write_text(export.export(info.path, "json"))
    copies = [export.read(home, folder, base / "out.json"), sessions.fork(home, folder, info.path)[0].path]
    for copy in copies:
        assert copy is not None
        assert results_of(tasks_folder(copy) / child.path.name) == results_of(child.path)
    assert refold("sessions", "rm", info.id, "--yes", cwd=folder).returncode == 0
    left = sorted(p.name for p in info.path.parent.iterdir() if p.name.startswith(info.path.stem))
    assert left == []


def test_the_lines_for_scripts_name_the_call(base: Path, home: Path) -> None:
    tasks = {"look": [{**bash("cat a.txt"), "text": "I look."}, "Seen."]}
    model = script(base / "s.jsonl", {"tasks": tasks}, calls(task("look")), "done")
    done = refold("-p", "go", "-m", model, "-o", "stream-json", "--yolo", cwd=base / "ws")
    said = [v for v in lines(done.stdout) if v["type"] in ("assistant", "user")]
    shown = [(v["type"], v["parent_tool_use_id"], v["message"]["content"][0]["type"]) for v in said]
    assert shown == [
        ("assistant", None, "tool_use"),
        ("assistant", "call_1_1", "text"),
        ("user", "call_1_1", "tool_result"),
        ("assistant", "call_1_1", "text"),
        ("user", None, "tool_result"),
        ("assistant", None, "text"),
    ]
    result = lines(done.stdout)[-1]
    assert (result["num_turns"], result["result"], done.returncode) == (4, "done", 0)
    done = refold("-p", "go", "-m", model, "--yolo", cwd=base / "ws")
    assert done.stderr.splitlines()[1:] == ["> task: look", "  > $ cat a.txt"]


def test_it_is_not_offered_where_it_makes_no_sense(base: Path) -> None:
    def tools(window: int | None = None, **flags: object) -> list[str]:
        with Desk(base, [], {}, model=Scripted([], window=window), **flags) as desk:
            return list(desk.session.toolbox.tools)

    assert "task" in tools(40_000)
    assert "task" not in tools(39_999)
    assert "task" not in tools(subagents="false")


def test_its_jobs_end_with_it(base: Path) -> None:
    work = [bash("sleep 4791", background=True), "Started."]
    with Desk(base, [calls(task("serve", "work"))], {"serve": work}, mode="yolo") as desk:
        desk.send()
        assert gone("sleep 4791")


def test_where_nothing_is_kept_it_keeps_nothing_either(base: Path) -> None:
    with Desk(base, [calls(task("look"))], {"look": [bash("cat a.txt"), "Seen."]}, persist=False) as desk:
        (result,) = desk.send()
        found = desk.session.toolbox.ctx.recall(id=result.meta["task"])
    assert "bash ok: alpha" in found
    assert [p.name for p in (base / "home").rglob("*.jsonl")] == []


def test_its_folds_are_its_own(base: Path) -> None:
    """A long task folds in its own conversation, and the session's does not grow."""
    (base / "ws" / "long.txt").write_text("".join(f"line {n} of a long file with many words\n" for n in range(1500)))
    reads = [calls(call("read", path="long.txt", offset=1 + 100 * n, limit=900)) for n in range(14)]
    model = Scripted([calls(task("look")), "done"], window=40_000, head={"tasks": {"look": [*reads, "Seen."]}})
    with Desk(base, [], {}, model=model, summarise="false") as desk:
        (result,) = desk.send()
        child = TranscriptLog.open(desk.logs()[0], readonly=True)
        folds = sum(e.kind == "checkpoint" for e in child.entries)
        assert verify(child).differences == ()
        child.close()
    assert (result.status, folds > 0) == ("ok", True)
    assert not any(e.kind == "checkpoint" for e in desk.session.log.entries)


def test_redaction_and_keys_hold_in_its_log(base: Path) -> None:
    token = "ghp_" + "aB3" * 12
    (base / "ws" / "conf.txt").write_text(f"token = {token}\n")
    look = [calls(call("read", path="conf.txt")), f"It is {token}"]
    with Desk(base, [calls(task("look"))], {"look": look}, api_key="sk-own-key-of-the-person") as desk:
        desk.send()
        assert results_of(desk.logs()[0])[0].count("[redacted") == 1
        (parent,) = [e.record.text for e in desk.session.log.entries if e.kind == "tool_result"]
        assert token not in parent
