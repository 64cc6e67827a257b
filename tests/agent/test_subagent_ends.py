"""A sub-agent that is stopped, or that a crash takes along: what the model is told is true, and nothing runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.events import TaskEvent, ToolStarted, TurnEnded
from tests.support.processes import gone
from tests.support.tasked import Desk, bash, call, calls, results_of, task
from transcripts.log import TranscriptLog

CHILD = Path(__file__).resolve().parents[1] / "support" / "tasked_child.py"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("ws", "home"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


async def stopped(desk: Desk, commands: int) -> float:
    """Interrupts a turn when its sub-agents have begun that many commands; gives the seconds until it was over."""
    began = 0
    at = 0.0
    async for event in desk.session.send("go"):
        began += isinstance(event, TaskEvent) and isinstance(event.event, ToolStarted)
        if began == commands and not at:
            await asyncio.sleep(0.1)
            at = time.monotonic()
            desk.session.interrupt()
        desk.events.append(event)
    return time.monotonic() - at


def texts(desk: Desk) -> list[tuple[str, str]]:
    """(status, text) of the results in the session's log."""
    return [(e.record.status, e.record.text) for e in desk.session.log.entries if e.kind == "tool_result"]


def test_an_interrupt_stops_it_at_once(base: Path) -> None:
    work = [{**calls(call("write", path="n.txt", content="n")), "text": "I begin."}, bash("sleep 4792"), "Never said."]
    with Desk(base, [calls(task("do it", "work"))], {"do it": work}, mode="yolo") as desk:
        seconds = asyncio.run(stopped(desk, 2))
        assert (desk.ended.reason, gone("sleep 4792")) == ("interrupted", True)
        ((status, text),) = texts(desk)
        assert [line.partition(":")[0] for line in results_of(desk.logs()[0])] == ["ok", "interrupted"]
        assert desk.session.usage.input is not None
        desk.send("and now?")
        assert texts(desk) == [(status, text)]
    assert seconds < 10
    assert status == "interrupted"
    assert text.startswith(
        "[This sub-agent did not come to an end. It made 2 requests.]\n"
        f"Its last calls: write {f'{base}/ws/n.txt'[:80]}: ok; bash sleep 4792: interrupted.\n"
        "What it had said last:\nI begin.\n"
        "[It may have done a part of its work or all of it. Look at what it did before you repeat it.]\n[recall(id="
    )


def test_an_interrupt_stops_all_that_run_side_by_side(base: Path) -> None:
    tasks = {"one": [bash("sleep 4793")], "two": [bash("sleep 4794")], "three": ["Three is done."]}
    with Desk(base, [calls(*(task(name) for name in tasks))], tasks, mode="yolo") as desk:
        seconds = asyncio.run(stopped(desk, 2))
        assert (seconds < 10, gone("sleep 4793"), gone("sleep 4794")) == (True, True, True)
        desk.send("and now?")
        found = texts(desk)
    assert [status for status, _ in found] == ["interrupted", "interrupted", "ok"]
    assert "[It only read. Give the task again if you still need it.]" in found[0][1]
    assert found[2][1].startswith("Three is done.\n[sub-agent ")


@pytest.mark.parametrize(("kind", "status"), [("work", "unknown"), ("explore", "interrupted")])
def test_kill_9_in_the_middle_of_it(base: Path, kind: str, status: str) -> None:
    process = subprocess.Popen([sys.executable, str(CHILD), str(base), kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = []
    begun = 2 if kind == "work" else 1  # one that explores has no tool to write with
    while sum(t["event"] == "ToolStarted" for t in told) < begun and (line := process.stdout.readline()):
        told.append(json.loads(line))
    deadline = time.monotonic() + 5
    while kind == "work" and not (base / "ledger").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    ident, session = told[0]["task"], told[0]["session"]
    with Desk(base, [], {}, resume=session, mode="yolo") as desk:
        assert desk.send("go on") == []
        assert isinstance(desk.ended, TurnEnded)
        ((said, text),) = texts(desk)
        seen = desk.session.toolbox.ctx.recall(id=ident)
        (log,) = desk.logs()
        used = desk.session.usage.input
    assert said == status
    assert text.startswith("[This sub-agent did not come to an end. It made 2 requests.]\nIts last calls: ")
    assert f'[recall(id="{ident}") shows all that it said and did]' in text
    assert "And now the long one." in text
    assert "-> bash(" in seen
    assert (base / "ledger").exists() == (kind == "work")
    assert kind == "explore" or (base / "ledger").read_text() == "once\n"
    child = TranscriptLog.open(log, readonly=True)
    counted = sum(e.record.input for e in child.entries if e.kind == "usage")
    child.close()
    assert used is not None and used > counted > 0
    with Desk(base, [], {}, resume=session, mode="yolo") as again:
        assert again.session.usage.input == used
        assert texts(again) == [(said, text)]
