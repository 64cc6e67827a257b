"""Keys that were on their way when a question came up: they answer nothing, and they are not lost."""

from __future__ import annotations

from pathlib import Path

from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, logged

TOUCH = {"calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}
COMING = "A question comes up"


def _typed(terminal: Terminal, words: str, gap: float = 0.1) -> None:
    """Types as a person does, letter by letter."""
    for letter in words:
        terminal.type(letter)
        terminal.settle(gap)


def test_a_letter_while_a_question_is_announced_goes_to_the_line(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait(COMING)
    terminal.type("y")
    terminal.wait("^› y$")
    terminal.wait("Run this command")
    terminal.settle(1.0)
    assert not (work / "ran").exists()
    terminal.type("n")
    terminal.wait("^over")
    terminal.wait("^› y$")
    assert not (work / "ran").exists()


def test_a_word_that_begins_as_the_question_is_drawn_goes_to_the_line(chat: Chat, work: Path, home: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    _typed(terminal, "yes wait\r")
    terminal.wait("This went to your line: yes wait")
    terminal.settle(1.0)
    assert not (work / "ran").exists()
    terminal.type("n")
    terminal.wait("^over")
    terminal.wait("^› yes wait$")
    assert [r["status"] for r in logged(home, "tool_result")] == ["denied"]


def test_one_letter_answers(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}, TOUCH, {"text": "again"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("y")
    terminal.wait("^over")
    assert (work / "ran").exists()
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.settle(0.8)
    terminal.type("y")
    terminal.wait("^again")
    terminal.wait("^›$")


def test_a_paste_answers_nothing_and_is_kept(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.paste("y\ny\n")
    terminal.wait("This went to your line: y")
    terminal.settle(1.0)
    assert not (work / "ran").exists()
    terminal.paste("z" * 2000)
    terminal.settle(1.0)
    terminal.type("n")
    terminal.wait("^over")
    terminal.wait(r"^› y\n  y\n  \[Pasted text #1, 2,000 characters\]$")
    assert not (work / "ran").exists()


def test_lines_without_the_marks_of_a_paste_answer_nothing(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("yes\rplease do\r")
    terminal.settle(1.0)
    assert not (work / "ran").exists()
    terminal.type("n")
    terminal.wait("^over")
    terminal.wait("^› yes\n  please do$")


def test_a_chord_of_the_line_editor_is_no_escape(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("\x1bb")
    terminal.settle(1.0)
    terminal.wait("Run this command")
    terminal.type("y")
    terminal.wait("^over")
    assert (work / "ran").exists()


def test_what_went_astray_can_be_taken_back(chat: Chat) -> None:
    terminal = chat([TOUCH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.settle(0.6)
    terminal.type("q")
    terminal.wait("This went to your line: q")
    terminal.type("\x7f")
    terminal.wait("Esc: no, and stop$")
    terminal.settle(1.0)
    terminal.type("n")
    terminal.wait("^over")
    terminal.wait("^›$")


def test_the_question_about_trust_takes_no_key_that_was_on_its_way(chat: Chat, work: Path, home: Path) -> None:
    (work / ".mcp.json").write_text('{"mcpServers": {}}')
    terminal = chat([{"text": "told"}])
    terminal.wait(COMING)
    _typed(terminal, "x\r")
    terminal.wait("^told")
    terminal.wait("This folder brings along")
    _typed(terminal, "never mind")
    terminal.wait("This went to your line: never mind")
    terminal.settle(1.0)
    terminal.type("n")
    terminal.wait("^› never mind$")
    assert not (home / "trust.json").exists()


def test_escape_while_a_question_is_announced_stops_the_turn(chat: Chat, work: Path) -> None:
    terminal = chat([TOUCH, {"text": "later"}])
    terminal.type("run it\r")
    terminal.wait(COMING)
    terminal.type("\x1b")
    terminal.wait("Stopped")
    terminal.wait_gone(COMING)
    terminal.type("go on\r")
    terminal.wait("^later")
    assert not (work / "ran").exists()


def test_leaving_while_a_question_is_announced(chat: Chat, work: Path) -> None:
    (work / ".mcp.json").write_text('{"mcpServers": {}}')
    terminal = chat()
    terminal.wait(COMING)
    terminal.type("\x04")
    assert terminal.ended() == 0
