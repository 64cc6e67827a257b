"""The commands, in a real chat: each says what it did, and each has help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.commands.base import load_commands
from agent.commands.copy import last_code
from agent.commands.resume import ago
from agent.commands.usage import by_model
from tests.terminal.conftest import Chat
from transcripts.records import Usage

EDIT = {"calls": [{"name": "write", "arguments": {"path": "new.py", "content": "x = 1\n"}}]}


@pytest.mark.parametrize("name", sorted(load_commands()))
def test_every_command_says_what_it_does(name: str) -> None:
    command = load_commands()[name]
    assert command.summary.endswith((".", ":")) or command.summary
    assert len(command.summary) < 130
    assert name == name.lower()


def test_commands_about_the_session(chat: Chat, work: Path, home: Path) -> None:
    terminal = chat([EDIT, {"text": "Written.\n\n```python\nx = 1\n```\n"}], "--yolo", rows=40)
    terminal.type("write it\r")
    terminal.wait(r"write new.py  \+1$")
    terminal.wait("Written.")
    terminal.type("/usage\r")
    terminal.wait("requests.*tokens in.*cost")
    terminal.type("/diff\r")
    terminal.wait(r"1 \+ x = 1")
    terminal.type("/name every night\r")
    terminal.wait("refold --resume 'every night'")
    terminal.type("/mode plan\r")
    terminal.wait("plan: reads only")
    terminal.wait("^plan ·")
    terminal.type("/theme dark\r")
    terminal.wait("Colours: dark")
    terminal.type("/export story.md\r")
    terminal.wait("Written: .*story.md")
    assert "write it" in (work / "story.md").read_text()
    terminal.type("/doctor\r")
    terminal.wait("sandbox: ")
    terminal.type("/status\r")
    terminal.wait("mode +plan")
    terminal.type("/quit\r")
    assert terminal.ended() == 0


def test_the_model_can_be_changed_and_the_conversation_stays(chat: Chat, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"text": "never"}) + "\n" + json.dumps({"text": "the other one speaks"}))
    terminal = chat([{"text": "first"}])
    terminal.type("hi\r")
    terminal.wait("^first")
    terminal.type(f"/model scripted:{other}\r")
    terminal.wait("From now on scripted:other.jsonl")
    terminal.type("hi\r")
    terminal.wait("the other one speaks")
    terminal.type("/model nosuch:thing\r")
    terminal.wait("There is no provider 'nosuch'")


def test_compact_folds_and_says_so(chat: Chat) -> None:
    big = {"calls": [{"name": "bash", "arguments": {"command": "seq 1 4000"}}]}
    terminal = chat([big, big, big, {"text": "counted"}], "--yolo")
    terminal.type("count\r")
    terminal.wait("^counted")
    terminal.type("/compact keep the numbers\r")
    terminal.wait("^› /compact keep the numbers$")
    terminal.wait("◇ ")
    terminal.type("/compact --undo\r")
    terminal.wait("^› /compact --undo$")


def test_commands_wait_while_it_works(chat: Chat) -> None:
    slow = {"calls": [{"name": "bash", "arguments": {"command": "sleep 20"}}]}
    terminal = chat([slow], "--yolo")
    terminal.type("go\r")
    terminal.wait("sleep 20 ·")
    terminal.type("/status\r")
    terminal.wait("mode +yolo")
    terminal.type("/clear\r")
    terminal.wait("/clear has to wait until this is over")


def test_escape_twice_goes_back_to_a_message(chat: Chat) -> None:
    terminal = chat([{"text": "an answer"}])
    terminal.type("a question\r")
    terminal.wait("an answer")
    terminal.type("\x1b")
    terminal.settle(0.4)
    terminal.type("\x1b")
    terminal.wait("Go back to before which message")
    terminal.wait("› a question")


def test_the_help_can_be_read_in_eighty_columns(chat: Chat) -> None:
    terminal = chat([{"text": "x"}], rows=100, columns=80)
    terminal.type("/help\r")
    terminal.wait(r"^/undo +Takes back what was done to the files")
    terminal.wait(r"^/permissions \[explain CMD \| ")


def test_parts_of_commands() -> None:
    assert last_code("a\n```py\none\n```\nb\n~~~\ntwo\nlines\n~~~\n") == "two\nlines"
    assert last_code("none") == ""
    assert ago("not a time") == ""
    sums = by_model(
        [Usage(input=10, output=2, model="m"), Usage(input=5, cost=0.5, model="m"), Usage(purpose="summary")]
    )
    assert [(name, n, u.input, u.cost) for name, (n, u) in sums.items()] == [
        ("m", 2, 15, 0.5),
        ("unknown (summary)", 1, None, None),
    ]
