"""A session that is gone back to."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.screen import Terminal
from tests.terminal.conftest import Chat
from transcripts.catalog import list_sessions

BASH = {"calls": [{"name": "bash", "arguments": {"command": "seq 20"}}]}
TALKS = {"calls": [{"name": "bash", "arguments": {"command": "echo begun; sleep 30"}}]}


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


def _said(terminal: Terminal) -> list[str]:
    """The conversation as it stands on the terminal: between the greeting and the live lines, without times."""
    text = terminal.scrollback()
    text = re.split(r"^\w+ · scripted:", text[text.index("/help\n") + 6 :], maxsplit=1, flags=re.M)[0]
    text = re.sub(r"\d+(\.\d+)? s( ago)?|just now", "SOON", text)
    return [line for line in text.split("\n") if line]


def test_a_resumed_conversation_looks_as_it_did(chat: Chat, work: Path) -> None:
    """Steered lines, stopped turns, thinking, diffs, evidence, commands of the person's, answers to questions."""
    (work / "x.py").write_text("def f():\n    return 1\n")
    edit = {"calls": [{"name": "edit", "arguments": {"path": "x.py", "old": "return 1", "new": "return 2"}}]}
    check = {"calls": [{"name": "bash", "arguments": {"command": "seq 30; sleep 1; make test; true"}}]}
    ask = {"calls": [{"name": "ask_user", "arguments": {"question": "Which?", "choices": ["red", "blue"]}}]}
    touch = [{"name": "bash", "arguments": {"command": f"touch {name}; true"}} for name in "ab"]
    answers = [
        {"text": "I look **first**.", "reasoning": "what is there?", **edit},
        check,
        {"text": "# Done\n\n- one\n- two\n\n```python\nx = 1\n```"},
        {"text": "word " * 300, "stream_delay": 0.05},
        ask,
        {"text": "Blue then."},
        TALKS,
        {"calls": touch},
        {"text": "The end."},
    ]
    terminal = chat(answers, "--permission-mode", "edits", rows=60)
    terminal.type("begin\r")
    terminal.wait("Run this command")
    terminal.type("y")
    terminal.wait("seq 30; sleep 1; make test; true ·")
    terminal.type("steer this\r")
    terminal.wait_above("^↳ steer this")
    terminal.wait("exit 0, just now, nothing edited since")
    terminal.type("tell me\r")
    terminal.wait("word word")
    terminal.type("\x1b")
    terminal.wait("Stopped. Everything")
    terminal.type("!echo by hand\r")
    terminal.wait("^  exit 0")
    terminal.type("ask me\r")
    terminal.wait("^Your answer")
    terminal.type("2")
    terminal.wait("Blue then")
    terminal.type("go\r")
    terminal.wait("^  begun")
    terminal.type("\x1b")
    terminal.wait(r"● \$ echo begun; sleep 30  stopped")
    terminal.type("both\r")
    terminal.wait("touch a; true\n")
    terminal.type("\x1b")
    terminal.wait("touch a; true  not run")
    terminal.type("over\r")
    terminal.wait("The end")
    terminal.settle()
    before = _said(terminal)
    terminal.type("\x04")
    assert terminal.ended() == 0
    again = chat([], "--continue", rows=60)
    again.wait("The end")
    again.settle()
    assert _said(again) == before
    again.type("\x0f")
    again.wait("touch a|q leaves")
