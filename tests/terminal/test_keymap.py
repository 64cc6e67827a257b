"""Keys of the person's own, the input put aside, and what help says of both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.exits import Exit
from agent.terminal.keymap import DEFAULT, KeysError, of_table
from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment, logged


def test_keys_of_the_persons_own_take_the_place_of_the_usual_ones(chat: Chat, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[keys]\nmode = "f2"\noutput = "ctrl-x o"\nhistory = []\n')
    terminal = chat([{"calls": [{"name": "bash", "arguments": {"command": "seq 30"}}]}, {"text": "over"}], "--yolo")
    terminal.type("go\r")
    terminal.wait(r"24 more lines \(Ctrl-X O\)")
    terminal.wait("^over")
    terminal.type("\x1bOQ")
    terminal.wait("^plan ·")
    terminal.type("\x1b[Z\x12\x0f")
    terminal.settle(0.5)
    terminal.wait("^plan ·")
    assert "What was typed before" not in terminal.text()
    terminal.type("\x18o")
    terminal.wait("seq 30 · 23/30")


def test_enter_can_be_a_new_line_and_alt_enter_sends(chat: Chat, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[keys]\nsend = "alt-enter"\nnewline = "enter"\n')
    terminal = chat([{"text": "read"}])
    terminal.type("one\rtwo\x1b\r")
    terminal.wait("^read")
    terminal.type("/hel\r")
    terminal.wait("› /help")
    assert [r["text"] for r in logged(home, "user")] == ["one\ntwo"]


def test_keys_shows_them_with_their_names(chat: Chat, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[keys]\nmode = ["f2", "alt-m"]\n')
    terminal = chat(columns=100, rows=40)
    terminal.type("/keys\r")
    terminal.wait(r"^F2, Alt-M +mode +what runs unasked")
    terminal.wait(r"^Ctrl-S +stash +put the input aside")
    terminal.wait(r"Others: a table \[keys\] in")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"mdoe": "f2"}, "[keys] in x: there is no action 'mdoe'; did you mean 'mode'? they are send, newline"),
        ({"mode": "hyper-x"}, "[keys] in x: mode: there is no key 'hyper-x'; keys are written ctrl-x, alt-x"),
        ({"mode": "m"}, "[keys] in x: mode: 'm' is a letter that is typed; take ctrl-m, alt-m or a key such as f5"),
        ({"mode": 3}, "[keys] in x: mode takes a key or a list of keys, not 3"),
        ({"mode": "f2", "output": "f2"}, "[keys] in x: f2 is given to mode and to output"),
        ({"mode": "ctrl-c"}, "[keys] in x: mode: ctrl-c stays as it is"),
        ({"send": []}, "[keys] in x: send needs a key"),
        ({"mode": "enter"}, "[keys] in x: send has lost its key to another action; give it one"),
    ],
)
def test_a_table_that_cannot_be_used_says_what_would_do(table: dict[str, object], words: str) -> None:
    with pytest.raises(KeysError) as caught:
        of_table(table, "x")
    assert str(caught.value).startswith(words)


def test_a_usual_key_gives_way() -> None:
    keymap = of_table({"mode": "ctrl-o"}, "x")
    assert (keymap.written["mode"], keymap.written["output"]) == (("ctrl-o",), ())
    assert of_table({}, "x") == DEFAULT


def test_an_error_in_the_table_ends_the_start_with_its_place(
    home: Path, work: Path, words: Callable[..., list[str]]
) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[keys]\nmdoe = "f2"\n')
    with Terminal(words([]), columns=200, env=environment(home), cwd=work) as terminal:
        assert terminal.ended() == Exit.CONFIG
        assert "there is no action 'mdoe'; did you mean 'mode'?" in terminal.text()


def test_the_input_is_put_aside_and_comes_back(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "quick answer"}])
    terminal.type("a long thought")
    terminal.wait("^› a long thought")
    terminal.type("\x13")
    terminal.wait("^  put aside: a long thought")
    terminal.wait("^  Ctrl-S brings it back")
    terminal.type("first this\r")
    terminal.wait("quick answer")
    terminal.type("\x13")
    terminal.wait("^› a long thought")
    terminal.wait_gone("put aside")
    assert [r["text"] for r in logged(home, "user")] == ["first this"]
    terminal.type("\x03\x13")
    terminal.wait("nothing to put aside")
