"""Replay: every request that was ever sent can be built again, byte for byte, and a difference is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent.models.scripted import Scripted
from agent.replay import rebuild, verify
from agent.session import Session
from runtime.events import Event
from runtime.model import ModelView
from tests.support.command import refold, script
from tests.support.lived import call, live, settings
from transcripts.log import TranscriptLog
from transcripts.records import Note, Rewind, User

REPLAYED = False  # sessions are damaged and made by hand here

NOTES = "The first part was found and is well; the next step is to look at the part behind it."


def checked(path: Path) -> tuple[int, int, tuple[str, ...]]:
    """(requests, of which the same, differences) of a log."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        found = verify(log)
        return found.requests, found.same, found.differences
    finally:
        log.close()


def works(view):
    """An answer that goes on working, every eighth message without a call."""
    n = len(view.messages)
    return {"text": f"Step {n}", "calls": [call("bash", command=f"seq {n} {n + 300}")]} if n % 8 else "Enough."


def turn(session: Session, text: str) -> list[Event]:
    """All events of one turn."""

    async def run() -> list[Event]:
        return [event async for event in session.send(text)]

    return asyncio.run(run())


def test_requests_are_rebuilt_across_folds_notes_and_resumes(tmp_path: Path) -> None:
    sent: list[ModelView] = []
    work = tmp_path / "work"
    work.mkdir()
    for n in range(3):
        model = Scripted([works] * 1000, window=7_000, head={"notes": NOTES})
        resume = "latest" if n else ""
        with Session.start(settings(tmp_path / "home", max_steps=20), cwd=work, model=model, resume=resume) as session:
            turn(session, f"Turn {n}")
            path = session.path
        sent += model.views
    assert path is not None
    log = TranscriptLog.open(path, readonly=True)
    rebuilt = list(rebuild(log))
    folds = [e.record.notes_status for e in log.entries if e.kind == "checkpoint"]
    log.close()
    assert "ok" in folds and {one.request.purpose for one in rebuilt} == {"step", "summary"}
    assert [one.problem for one in rebuilt] == [""] * len(sent)
    assert [one.body["messages"][1:] for one in rebuilt] == [list(view.messages) for view in sent]
    assert [one.body["tools"] for one in rebuilt] == [list(view.tools) for view in sent]
    assert [one.body["messages"][0]["content"] for one in rebuilt] == [view.system for view in sent]
    assert [dict(one.request.params) for one in rebuilt] == [dict(view.params) for view in sent]


def test_it_holds_over_undone_folds_pins_and_other_models(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    model = Scripted([works] * 1000, window=7_000)
    other = script(tmp_path / "other.jsonl", *[{"text": f"Other {n}."} for n in range(400)])
    with Session.start(settings(tmp_path / "home", max_steps=12), cwd=work, model=model) as session:
        turn(session, "one")
        session.engine.append(Note("pins", [session.engine.history.last("user")]))
        turn(session, "two")
        session.engine.undo_fold()
        turn(session, "three")
        session.engine.append(Rewind(session.engine.history.last("user") - 1))
        session.use_model(other)
        turn(session, "four")
        assert session.path is not None
        path = session.path
    requests, same, differences = checked(path)
    assert (same, differences) == (requests, ()) and requests > 15


def test_a_difference_is_named(tmp_path: Path) -> None:
    path, _ = live(tmp_path, ["One.", "Two.", "Three."], ["first", "second", "third"])
    assert checked(path) == (3, 3, ())
    path.write_bytes(path.read_bytes().replace(b'"text":"second"', b'"text":"zweite"'))
    log = TranscriptLog.open(path, readonly=True)
    seq = {e.record.text: e.seq for e in log.entries if e.kind == "user"}
    asked = [e.seq for e in log.entries if e.kind == "request"]
    log.close()
    requests, same, differences = checked(path)
    assert (requests, same) == (3, 1)
    assert differences == (
        f"request 2 (record #{asked[1]}): record #{seq['zweite']} was changed by hand "
        f"(new since the request before: records #{asked[0] + 1} to #{asked[1] - 1})",
        f"request 3 (record #{asked[2]}): it differs too",
    )


def test_a_lost_record_and_a_lost_prompt_are_named(tmp_path: Path) -> None:
    path, _ = live(tmp_path, ["One.", "Two."], ["first", "second"])
    whole = path.read_bytes()
    path.write_bytes(b"".join(line for line in whole.splitlines(keepends=True) if b'"text":"One."' not in line))
    (difference,) = checked(path)[2]
    assert "3 messages were sent, " not in difference or "are lost" in difference
    assert " are lost (new since" in difference or "; records " in difference
    path.write_bytes(whole)
    log = TranscriptLog.open(path, readonly=True)
    name = next(e.record.system for e in log.entries if e.kind == "request")
    log.close()
    (path.with_suffix(".blobs") / name).unlink()
    assert checked(path)[2][0].endswith("its system prompt is not among the session's blobs any more")


def test_the_command(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "I look.", "calls": [call("bash", command="echo hi")]}, "Done.")
    assert refold("-p", "Look", "--model", model, "--yolo", cwd=tmp_path).returncode == 0
    done = refold("replay", "--verify", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2 of 2 requests come out as they were sent\n")
    rows = refold("replay", cwd=tmp_path).stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["1", "2"] and all(row.endswith("as sent") for row in rows)
    body = json.loads(refold("replay", "latest", "--step", "2", cwd=tmp_path).stdout)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert (body["messages"][3]["content"], body["model"]) == ("hi", "scripted:s.jsonl")
    none = refold("replay", "--step", "9", cwd=tmp_path)
    assert (none.returncode, none.stderr) == (2, "refold: there is no request 9; this session made 2\n")
    path = next((home / "sessions").glob("*/*.jsonl"))
    path.write_bytes(path.read_bytes().replace(b'"text":"Look"', b'"text":"Luck"'))
    done = refold("replay", "--verify", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (5, "0 of 2 requests come out as they were sent")
    assert "first difference: request 1" in done.stdout
    told = refold("sessions", "verify", cwd=tmp_path)
    assert (told.returncode, "was changed by hand" in told.stdout) == (5, True)


@pytest.mark.parametrize("text", ["\ud83e half", "", "  \n", "\u2028", "🏷" * 3])
def test_odd_words_are_sent_and_rebuilt_alike(tmp_path: Path, text: str) -> None:
    path, _ = live(tmp_path, ["One.", "Two."], [text, "second"])
    assert checked(path) == (2, 2, ())
    log = TranscriptLog.open(path, readonly=True)
    assert next(e.record for e in log.entries if e.kind == "user") == User(text)
    log.close()
