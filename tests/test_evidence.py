"""The evidence line says what was run, how it ended and what changed since."""

from __future__ import annotations

import json

from agent.evidence import Evidence
from runtime.events import ToolFinished, ToolStarted
from transcripts.records import ToolCall, ToolResult


def ran(evidence: Evidence, command: str, code: int) -> None:
    call = ToolCall(command, "bash", json.dumps({"command": command}))
    evidence.see(ToolStarted(call, "execute", command))
    meta = {"command": command, "exit_code": code}
    evidence.see(ToolFinished(call, ToolResult(call.id, "bash", "", "ok" if not code else "error", meta=meta), 1))


def edited(evidence: Evidence, path: str, status: str = "ok") -> None:
    call = ToolCall(f"edit {path}", "edit")
    evidence.see(ToolStarted(call, "write", path))
    evidence.see(ToolFinished(call, ToolResult(call.id, "edit", "", status, meta={"path": path, "sha": "0" * 64}), 1))


def test_a_check_after_the_last_edit_holds() -> None:
    moment = [100.0]
    evidence = Evidence(lambda: moment[0])
    edited(evidence, "/w/x.py")
    ran(evidence, "pytest  -q", 0)
    moment[0] += 12
    assert evidence.holds()
    assert evidence.line() == "pytest -q: exit 0, 12 s ago, nothing edited since"


def test_a_check_before_the_last_edit_does_not() -> None:
    evidence = Evidence(lambda: 5.0)
    ran(evidence, "pytest -q", 0)
    edited(evidence, "/w/y.py")
    edited(evidence, "/w/x.py")
    assert not evidence.holds()
    assert evidence.line() == "pytest -q: exit 0, just now, before the last edit of x.py"


def test_a_failed_check_is_said() -> None:
    evidence = Evidence(lambda: 5.0)
    ran(evidence, "make test", 2)
    assert (evidence.holds(), evidence.line()) == (False, "make test: exit 2, just now, nothing edited since")


def test_looking_around_does_not_replace_a_check() -> None:
    evidence = Evidence(lambda: 5.0)
    ran(evidence, "pytest -q", 1)
    ran(evidence, "ls -l", 0)
    assert evidence.line() == "pytest -q: exit 1, just now, nothing edited since"


def test_looking_around_before_an_edit_is_no_evidence() -> None:
    evidence = Evidence(lambda: 5.0)
    ran(evidence, "ls -l", 0)
    edited(evidence, "/w/x.py")
    assert evidence.line() == "x.py edited, nothing was run since"
    ran(evidence, "python x.py", 0)
    assert evidence.line() == "python x.py: exit 0, just now, nothing edited since"


def test_edits_alone_are_said_to_be_unchecked() -> None:
    evidence = Evidence(lambda: 5.0)
    edited(evidence, "/w/a.py")
    edited(evidence, "/w/b.py")
    edited(evidence, "/w/c.py", status="error")
    assert evidence.line() == "2 files edited, nothing was run"


def test_a_turn_that_only_talked_says_nothing() -> None:
    evidence = Evidence(lambda: 5.0)
    ran(evidence, "pytest -q", 0)
    assert evidence.line() != ""
    assert evidence.line() == ""


def test_a_check_that_failed_in_a_pipe_has_failed() -> None:
    evidence = Evidence(lambda: 5.0)
    call = ToolCall("c", "bash", json.dumps({"command": "pytest -q | tail -3"}))
    meta = {"command": "pytest -q | tail -3", "exit_code": 0, "pipe": [1, 0]}
    evidence.see(ToolFinished(call, ToolResult(call.id, "bash", "1 failed", meta=meta), 1))
    said = "pytest -q | tail -3: exit 1, just now, nothing edited since"
    assert (evidence.holds(), evidence.line()) == (False, said)
