"""/context, /compact, /pin, /unpin, /unfold, /history against a real session."""

from __future__ import annotations

import asyncio

import pytest

from agent.commands.base import load_commands
from agent.models.scripted import Scripted
from agent.session import Session
from agent.settings import Settings
from runtime.events import Compacted, CompactFailed
from tests.support.histories import put
from tests.support.plain_face import PlainFace
from transcripts.records import Assistant, ToolCall, ToolResult, User

COMMANDS = load_commands()


@pytest.fixture
def face(tmp_path):
    settings = Settings.load({"permission_mode": "yolo"}, {"REFOLD_HOME": str(tmp_path / "home")}, tmp_path)
    model = Scripted(["x"], window=8_000, head={"notes": "Notes: thirty files were read, nothing else was done."})
    with Session.start(settings, cwd=tmp_path, model=model) as session:
        put(session.engine, [User("Look at every file. Never delete one.")])
        for n in range(30):
            call = ToolCall(f"c{n}", "read", f'{{"path": "f{n}"}}')
            put(session.engine, [Assistant(f"File {n}.", (call,)), ToolResult(f"c{n}", "read", f"content {n} " * 60)])
        yield PlainFace(session)


def do(face, name, words=""):
    face.lines.clear()
    asyncio.run(COMMANDS[name].run(face, words))
    return face.lines


def test_a_dry_run_lists_what_would_go_and_changes_nothing(face):
    before = face.session.engine.build_model_view()
    lines = do(face, "compact", "--dry-run")
    assert lines[0] == "id | message | tokens of its step | what becomes of it"
    assert lines[1].split(" | ")[1::2] == ["answer: File 0.", "left out by sliding_window"]
    assert lines[2].split(" | ")[1:] == ["read result", "", "left out by sliding_window"]
    assert lines[-1].endswith("Nothing was changed.")
    assert face.session.engine.build_model_view() == before


def test_a_fold_is_told_undone_and_told_again(face):
    before = face.session.engine.build_model_view().sha
    do(face, "compact", "the names of the files")
    fold = next(e for e in face.events if isinstance(e, Compacted))
    assert fold.line.startswith("folded ")
    assert "kept" in fold.line
    shown = do(face, "context")
    assert any(line.startswith(f"Last fold {fold.checkpoint.id}") for line in shown)
    assert do(face, "compact", "--undo")[0].startswith(f"The fold {fold.checkpoint.id} is taken back")
    assert face.session.engine.build_model_view().sha == before
    assert do(face, "compact", "--undo") == ["There is no fold to take back."]


def test_what_is_out_of_view_is_told_with_its_numbers(face):
    do(face, "compact")
    face.session.engine.pin(31)
    lines = do(face, "context")
    gone = next(line for line in lines if line.startswith("Not in view"))
    assert gone == (
        "Not in view as it was said, all of it in the log and within reach of recall: "
        "48 only in the notes (#5 to #52); 4 shortened (#54, #56, #58, #60)."
    )
    assert "Pinned: #31." in lines


def test_what_is_pinned_comes_back_if_a_fold_has_taken_it_out(face):
    do(face, "compact")
    number = do(face, "history", "content 3")[-1].split(" | ")[0]
    assert do(face, "pin", number) == [f"{number} is in the view again, and stays there."]
    assert face.session.engine.fates()[int(number[1:])] == "shown"
    face.session.engine.set_window(3_000, "test")
    other = do(face, "history", "content 4")[-1].split(" | ")[0]
    told = do(face, "pin", other)[0]
    assert told.startswith(f"{other} is pinned, but a fold has taken it out of the view, and it cannot come back now: ")
    assert do(face, "unfold", "#999") == ["error: There is no message #999."]


def test_a_fold_that_is_no_use_says_what_cannot_leave(tmp_path):
    settings = Settings.load({"permission_mode": "yolo"}, {"REFOLD_HOME": str(tmp_path / "home")}, tmp_path)
    with Session.start(settings, cwd=tmp_path, model=Scripted(["x"], window=8_000)) as session:
        put(session.engine, [User("Hello."), Assistant("Hi.")])
        face = PlainFace(session)
        said = do(face, "compact", "--dry-run")[0]
        do(face, "compact")
    failed = next(e for e in face.events if isinstance(e, CompactFailed))
    floor = session.engine.floor()
    assert failed.floor == {"system and tools": floor, "what has to stay": failed.floor["what has to stay"]}
    assert said.startswith("A fold would be no use: ")
    assert f"; what cannot leave: system and tools {floor:,}, what has to stay " in said


def test_search_unfold_and_pin_by_number(face):
    do(face, "compact")
    hits = do(face, "history", "content 3")
    number = hits[-1].split(" | ")[0]
    assert hits[-1].endswith("only in the notes")
    assert do(face, "unfold", number)[0].startswith(f"{number} is in the view again")
    assert do(face, "unfold", number) == [f"error: {number} is not folded."]
    assert do(face, "pin", number) == [f"{number} stays in the view from now on."]
    assert do(face, "pin")[1].startswith(number)
    assert do(face, "unpin", number) == [f"{number} may be folded again."]
    assert do(face, "pin") == ["Nothing is pinned."]
    assert do(face, "pin", "zwölf") == ["error: Name a message by its number, such as #12, not 'zwölf'."]
    assert do(face, "history", "nobody said this") == ["Nobody has said that here."]
