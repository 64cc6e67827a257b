"""Calls without a result: done, not started or unknown, told in plain words and never run again by themselves."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from runtime.context.engine import ContextEngine
from tests.support.lived import call, live, settings
from tests.support.strict import refusals
from tools.base import ToolContext, load_tools
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Note, Record, ToolCall, ToolResult, ToolStarted, User


def sha(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def fates(path: Path, *records: Record) -> list[ToolResult]:
    """The results that a later process gives to what a crash left open."""
    log = TranscriptLog.create(path)
    for record in records:
        log.append(record)
    log.close()
    log = TranscriptLog.open(path)
    engine = ContextEngine(log, system="system")
    results = [e.record for e in engine.close_open_calls()]
    assert engine.close_open_calls() == []
    assert refusals(engine.build_model_view().messages) == []
    log.close()
    return results


def writing(target: Path, before: str | None, after: str | None, known: bool = True) -> list[Record]:
    """A call that was to write a file and had begun."""
    hashes = {str(target): sha(before)}, {str(target): sha(after)} if known else {}
    return [
        User("go"),
        Assistant("", (ToolCall("c1", "write", "{}"),), finish="tool_calls"),
        ToolStarted("c1", "write", "write", *hashes),
    ]


@pytest.mark.parametrize(
    ("before", "now", "after", "known", "status", "words"),
    [
        (None, None, "new", True, "not_run", "is as it was before. Make it again if it is still needed.]"),
        ("old", "old", "new", True, "not_run", "is as it was before. Make it again if it is still needed.]"),
        ("old", "new", "new", True, "ok", "is as the call was to leave it. Do not repeat it.]"),
        (None, "new", "new", True, "ok", "is as the call was to leave it. Do not repeat it.]"),
        ("old", None, None, True, "ok", "is as the call was to leave it. Do not repeat it.]"),
        ("old", "else", "new", True, "unknown", "has changed. Look before you repeat it.]"),
        ("old", "new", "new", False, "unknown", "has changed. Look before you repeat it.]"),
    ],
)
def test_a_write_is_judged_by_its_file(tmp_path: Path, before, now, after, known, status, words) -> None:
    target = tmp_path / "f.txt"
    if now is not None:
        target.write_text(now)
    (result,) = fates(tmp_path / "s.jsonl", *writing(target, before, after, known))
    assert (result.call_id, result.status) == ("c1", status)
    assert result.text.endswith(f"{target} {words}")
    assert result.meta == ({"path": str(target), "sha": sha(after)} if status == "ok" else {})


def test_of_several_files_all_must_agree(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("new")
    hashes = {str(a): "", str(b): ""}, {str(a): sha("new"), str(b): sha("new")}
    start = [
        User("go"),
        Assistant("", (ToolCall("c1", "apply_patch"),)),
        ToolStarted("c1", "apply_patch", "write", *hashes),
    ]
    (result,) = fates(tmp_path / "1.jsonl", *start)
    assert (result.status, result.meta) == ("unknown", {})
    assert f"{a} is as the call was to leave it; {b} is as it was before" in result.text
    b.write_text("new")
    (result,) = fates(tmp_path / "2.jsonl", *start)
    assert (result.status, result.files) == ("ok", {str(a): sha("new"), str(b): sha("new")})


def test_a_pipe_in_the_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "f")
    (result,) = fates(tmp_path / "s.jsonl", *writing(tmp_path / "f", "old", "new"))
    assert (result.status, "cannot be read" in result.text) == ("unknown", True)


def test_a_command_that_had_begun_is_unknown_and_one_that_had_not_did_not_run(tmp_path: Path) -> None:
    calls = tuple(ToolCall(f"c{n}", "bash") for n in (1, 2, 3))
    first, second, third = fates(
        tmp_path / "s.jsonl", User("go"), Assistant("", calls), ToolStarted("c1", "bash", "execute"),
        ToolResult("c1", "bash", "done"), ToolStarted("c2", "bash", "execute"), ToolStarted("c3", "read", "read"),
    ) + [ToolResult("", "", "")]  # fmt: skip
    assert (first.call_id, first.status) == ("c2", "unknown")
    assert first.text.startswith("[refold ended while this call ran. It may have run in part, in whole or not at all")
    assert (second.call_id, second.status) == ("c3", "interrupted")
    assert second.text == "[Interrupted: no result came. It only reads, so it can simply be made again.]"
    assert third.call_id == ""
    (other,) = fates(tmp_path / "t.jsonl", User("go"), Assistant("", calls[:1]))
    assert (other.status, other.text) == (
        "not_run", "[Interrupted before this call had any effect. Make it again if it is still needed.]",
    )  # fmt: skip


def test_a_start_far_back_is_not_missed(tmp_path: Path) -> None:
    far: list[Record] = [Note("mode", "plan")] * 900
    records = [User("go"), Assistant("", (ToolCall("c1", "bash"),)), ToolStarted("c1", "bash", "execute"), *far]
    assert [r.status for r in fates(tmp_path / "s.jsonl", *records)] == ["unknown"]


def test_a_lost_record_behind_the_answer_is_not_taken_for_nothing(tmp_path: Path) -> None:
    """The start of the call is what was torn off: then the call may have run."""
    path = tmp_path / "s.jsonl"
    log = TranscriptLog.create(path)
    for record in [User("go"), Assistant("", (ToolCall("c1", "bash"),)), ToolStarted("c1", "bash", "execute")]:
        log.append(record)
    log.close()
    path.write_bytes(path.read_bytes()[:-9])
    for _ in range(2):  # the second process finds no torn line any more, but the note of it
        log = TranscriptLog.open(path)
        log.close()
    log = TranscriptLog.open(path)
    (entry,) = ContextEngine(log, system="").close_open_calls()
    log.close()
    assert (entry.record.status, entry.record.text[:55]) == (
        "unknown", "[The log was damaged here. This call may have run. Look",
    )  # fmt: skip


def test_a_call_whose_start_cannot_be_written_does_not_run(tmp_path: Path) -> None:
    """The session's file is deleted while the model speaks; what cannot be recorded is not done."""
    seen: list[Path] = []

    def answer(view):
        seen.append(next((tmp_path / "home" / "sessions").glob("*/*.jsonl")))
        seen[0].unlink()
        return {"calls": [call("write", path="a.txt", content="x\n")]}

    _, events = live(tmp_path, [answer, "Done."], ["Write a.txt"])
    ended = events[-1]
    assert (ended.reason, ended.kind, (tmp_path / "work" / "a.txt").exists()) == ("error", "log", False)
    assert "was deleted while the session was open" in ended.message


@pytest.mark.parametrize(
    ("name", "arguments", "before", "after"),
    [
        ("write", {"path": "f.txt", "content": "new\n"}, None, "new\n"),
        ("edit", {"path": "f.txt", "old": "old", "new": "new"}, "old\n", "new\n"),
        ("edit", {"file_path": "f.txt", "old_string": "old", "new_string": "new"}, "old\n", "new\n"),
    ],
)
def test_what_a_call_will_leave_is_written_down_before_it_begins(
    tmp_path: Path, name, arguments, before, after
) -> None:
    target = tmp_path / "work" / "f.txt"
    target.parent.mkdir()
    if before is not None:
        target.write_text(before)
    path, _ = live(tmp_path, [{"calls": [call(name, **arguments)]}, "Done."], ["Go."])
    log = TranscriptLog.open(path, readonly=True)
    started = next(e.record for e in log.entries if e.kind == "tool_started")
    log.close()
    assert target.read_text() == after
    assert (started.before, started.after) == ({str(target): sha(before)}, {str(target): sha(after)})


def test_a_patch_says_what_it_will_leave_of_each_file(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("old\n")
    (tmp_path / "gone.txt").write_text("x\n")
    patch = (
        "*** Begin Patch\n*** Update File: f.txt\n@@\n-old\n+new\n*** Delete File: gone.txt\n"
        "*** Add File: born.txt\n+y\n*** End Patch\n"
    )
    tool, ctx = load_tools(["apply_patch"])["apply_patch"], ToolContext(tmp_path, tmp_path)
    assert tool.after is not None
    left = {tmp_path / "f.txt": b"new\n", tmp_path / "gone.txt": None, tmp_path / "born.txt": b"y\n"}
    assert tool.after(ctx, {"patch": patch}) == left


def test_settings_for_these_tests_read_nothing_of_the_persons(tmp_path: Path) -> None:
    assert settings(tmp_path).home == tmp_path
