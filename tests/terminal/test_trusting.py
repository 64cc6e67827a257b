"""The question about what a folder brings along."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agent.terminal.trusting import _text
from agent.trust import Brought
from tests.terminal.conftest import Chat

QUESTION = "This folder brings along"


def _bring(work: Path, text: str = "Greet them.") -> None:
    (work / ".refold/commands").mkdir(parents=True, exist_ok=True)
    (work / ".refold/commands/greet.md").write_text(text)
    (work / ".mcp.json").write_text('{"mcpServers": {}}')


def test_it_says_what_there_is_and_not_now_is_quiet_until_it_changes(chat: Chat, work: Path, home: Path) -> None:
    _bring(work)
    terminal = chat()
    terminal.wait("This folder brings along 2 files that do nothing until you trust them.")
    terminal.wait(r"^  \.mcp\.json +MCP servers: programs that are started")
    terminal.wait(r"^  \.refold/commands/greet\.md +command: a prompt you can send")
    terminal.wait("^› n Not now")
    terminal.type("n")
    terminal.wait_gone(QUESTION)
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert not (home / "trust.json").exists()

    again = chat()
    again.settle(1.0)
    assert QUESTION not in again.scrollback()
    again.type("\x04")
    assert again.ended() == 0

    _bring(work, "Greet them louder.")
    third = chat()
    third.wait(QUESTION)


def test_view_shows_the_files_and_trust_wants_enter_and_counts_at_once(chat: Chat, work: Path, home: Path) -> None:
    _bring(work)
    terminal = chat()
    terminal.wait(QUESTION)
    terminal.type("v")
    terminal.wait("mcpServers")
    terminal.type("]")
    terminal.wait(r"Greet them\.")
    terminal.type("q")
    terminal.wait("^› n Not now")
    terminal.type("t\r")
    terminal.wait("› t Trust them")
    terminal.settle(0.3)
    assert not (home / "trust.json").exists()
    terminal.type("\r")
    terminal.wait("Trusted. A change asks again")
    (entry,) = json.loads((home / "trust.json").read_text()).values()
    assert sorted(entry["files"]) == [".mcp.json", ".refold/commands/greet.md"]
    terminal.type("/gre")
    terminal.wait("/greet")


def test_never_is_for_good(chat: Chat, work: Path) -> None:
    _bring(work)
    terminal = chat()
    terminal.wait(QUESTION)
    terminal.type("x")
    terminal.wait("› x Never")
    terminal.type("\r")
    terminal.wait("it is not asked again")
    terminal.type("\x04")
    assert terminal.ended() == 0
    _bring(work, "Something else.")
    again = chat()
    again.settle(1.0)
    assert QUESTION not in again.scrollback()


def test_what_is_typed_ahead_goes_first_and_answers_nothing(chat: Chat, work: Path, home: Path) -> None:
    _bring(work)
    terminal = chat([{"text": "the answer", "delay": 0.5}])
    terminal.type("t")
    terminal.settle(0.3)
    terminal.type("ell me\r")
    terminal.wait("the answer")
    terminal.wait(QUESTION)
    assert not (home / "trust.json").exists()
    above = terminal.scrollback()
    assert above.index("› tell me") < above.index("the answer")


def test_it_is_asked_once_where_the_session_is_changed_meanwhile(chat: Chat, work: Path) -> None:
    _bring(work)
    terminal = chat()
    terminal.type("/clear")
    terminal.wait("^› /clear")
    terminal.settle(1.0)
    terminal.type("\r")
    terminal.wait(QUESTION)
    terminal.type("n")
    terminal.wait_gone(QUESTION)
    terminal.settle(1.5)
    assert QUESTION not in terminal.text()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for_when_it_is_shown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    shown = _text(str(tmp_path), Brought(".mcp.json", "MCP servers", "0" * 64))
    assert shown == "It cannot be read: it is no file any more, or too large."
