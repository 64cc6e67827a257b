"""A session that is gone back to."""

from __future__ import annotations

from pathlib import Path

from tests.terminal.conftest import Chat
from transcripts.catalog import list_sessions

BASH = {"calls": [{"name": "bash", "arguments": {"command": "seq 20"}}]}


def test_the_outputs_of_a_resumed_session_are_a_key_away(chat: Chat) -> None:
    terminal = chat([BASH, {"text": "counted"}], "--yolo")
    terminal.type("count\r")
    terminal.wait("^counted")
    terminal.type("\x04")
    assert terminal.ended() == 0
    again = chat([BASH, {"text": "counted"}], "--continue")
    again.wait("^counted")
    again.type("\x0f")
    again.wait(r"seq 20 · 20/20")
    again.wait("^13$")


def test_what_was_said_with_a_no_is_drawn_again(chat: Chat) -> None:
    touch = {"calls": [{"name": "bash", "arguments": {"command": "touch it"}}]}
    terminal = chat([touch, {"text": "Then not."}])
    terminal.type("count\r")
    terminal.wait("Run this command")
    terminal.type("d")
    terminal.wait("Tell it ›")
    terminal.type("only to three\r")
    terminal.wait("^Then not")
    terminal.type("\x04")
    assert terminal.ended() == 0
    drawn = r"^↳ only to three\n\n● \$ touch it  denied\n\nThen not\.$"
    terminal.wait(drawn)
    chat([touch, {"text": "Then not."}], "--continue").wait(drawn)


def test_control_o_says_where_there_is_nothing(chat: Chat) -> None:
    terminal = chat()
    terminal.type("\x0f")
    terminal.wait("There is no output yet")


def test_a_session_that_begins_with_a_command_of_the_persons_is_listed_by_it(chat: Chat, home: Path) -> None:
    terminal = chat()
    terminal.type("!gti status\r")
    terminal.wait("exit 127")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert [s.first for s in list_sessions(home)] == ["! gti status"]
    terminal = chat([{"text": "hello"}], "--continue")
    terminal.type("hi\r")
    terminal.wait("^hello")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert [s.first for s in list_sessions(home)] == ["hi"]
