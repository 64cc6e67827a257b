"""A question that comes up while keys are on their way must not take them for its answer."""

from __future__ import annotations

from pathlib import Path

from tests.terminal.conftest import Chat, logged

WRITE = {"calls": [{"name": "write", "arguments": {"path": "made.txt", "content": "made\n"}}]}
TOUCH = {"calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}


def test_a_line_typed_behind_undo_is_no_yes(chat: Chat, work: Path) -> None:
    terminal = chat([WRITE, {"text": "written"}, {"text": "second answer"}], "--permission-mode", "edits")
    terminal.type("write it\r")
    terminal.wait("^written")
    terminal.type("/undo\ryes and then tell me\r")
    terminal.wait("Do it")
    terminal.settle(0.5)
    assert (work / "made.txt").read_text() == "made\n"
    terminal.type("\x1b")
    terminal.wait("second answer")
    assert (work / "made.txt").read_text() == "made\n"


def test_yes_and_no_have_their_letters(chat: Chat, work: Path) -> None:
    terminal = chat([WRITE, {"text": "written"}], "--permission-mode", "edits")
    terminal.type("write it\r")
    terminal.wait("^written")
    terminal.type("/undo\r")
    terminal.wait("^› y Yes")
    terminal.type("n")
    terminal.wait_gone("Do it")
    assert (work / "made.txt").exists()
    terminal.type("/undo\r")
    terminal.wait("^› y Yes")
    terminal.type("y")
    terminal.wait(r"1 path deleted: made\.txt")
    assert not (work / "made.txt").exists()


def test_a_line_that_comes_in_one_piece_answers_nothing(chat: Chat, home: Path, work: Path) -> None:
    """Over a slow line a whole sentence may arrive at once; its first letter is a `y`."""
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("yes, but first look at the file\r")
    terminal.settle(0.5)
    terminal.wait("Run this command")
    assert not (work / "ran").exists()
    terminal.settle(1.0)
    terminal.type("n")
    terminal.wait("over")
    assert [r["status"] for r in logged(home, "tool_result")] == ["denied"]


def test_enter_over_a_draft_is_meant_for_the_draft(chat: Chat, work: Path) -> None:
    terminal = chat([{"text": "", **TOUCH, "delay": 1.5}, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Esc stops")
    terminal.type("half a line")
    terminal.wait("Run this command", 5)
    terminal.type("\r")
    terminal.settle(0.3)
    terminal.wait("Run this command")
    assert not (work / "ran").exists()
    terminal.settle(1.0)
    terminal.type("\r")
    terminal.wait("^over")
    assert (work / "ran").exists()
    terminal.wait("^› half a line")


def test_an_enter_behind_a_letter_is_no_yes_to_the_next_question(chat: Chat, work: Path) -> None:
    """Many press Enter after the letter, and the next question is there by then."""
    both = {"calls": [{"name": "bash", "arguments": {"command": f"touch {name}"}} for name in ("one", "two")]}
    terminal = chat([both, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("touch one\n")
    terminal.type("y")
    terminal.wait("touch two\n.*\n.*\n› y")
    terminal.type("\r")
    terminal.settle(0.5)
    assert ((work / "one").exists(), (work / "two").exists()) == (True, False)
    terminal.settle(1.2)
    terminal.type("\r")
    terminal.wait("^over")
    assert (work / "two").exists()


def test_a_quick_answer_counts(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("\r")
    terminal.wait("^over")
    assert (work / "ran").exists()
