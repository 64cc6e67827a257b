"""The terminal is asked for its background: one that answers, answers late, in pieces, never, or not at all."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from agent.terminal.background import Answers, answers, is_light
from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment

LIGHT, DARK, FENCE = "\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\", "\x1b]11;rgb:0000/2b2b/3636\x07", "\x1b[?62;4c"
CODE = {"text": "```python\nx = 1\n```\n\nover"}
ASKED = b"\x1b]11;?\x1b\\\x1b[c"


def _asked(terminal: Terminal) -> None:
    end = time.monotonic() + 10
    while ASKED not in terminal.raw and time.monotonic() < end:
        terminal.read()
    assert ASKED in terminal.raw


def _open(words: list[str], home: Path, work: Path, **env: str) -> Terminal:
    return Terminal(words, env=environment(home, COLORTERM="truecolor", **env), cwd=work)


@pytest.mark.parametrize(("answer", "accent"), [(LIGHT, "00658f"), (DARK, "7dcfff")])
def test_the_theme_is_that_of_the_background(home: Path, work: Path, words, answer: str, accent: str) -> None:
    with _open(words([CODE]), home, work) as terminal:
        _asked(terminal)
        terminal.type(f"{answer}{FENCE}")
        terminal.wait("^ask")
        terminal.wait("^›$")
        assert terminal.style("›").fg == accent
        terminal.type("go\r")
        terminal.wait("^over")
        assert terminal.style("› go").fg == accent


def test_keys_typed_ahead_and_an_answer_in_pieces_are_told_apart(home: Path, work: Path, words) -> None:
    with _open(words([CODE]), home, work) as terminal:
        terminal.type("abc")
        _asked(terminal)
        terminal.type("d")
        for piece in ("e\x1b", "]1", "1;rgb:ffff/ff", "ff/ffff\x1b", "\\f\x1b[", "?62;4", "cg"):
            terminal.type(piece)
            terminal.settle(0.03, 0.03)
        terminal.wait("^› abcdefg$")
        terminal.wait("^ask")
        assert terminal.style("›").fg == "00658f"


def test_an_answer_that_comes_late_still_counts_and_is_no_key(chat: Chat) -> None:
    terminal = chat([CODE], env={"COLORTERM": "truecolor"})
    terminal.settle(1.5)
    terminal.type(f"dra{LIGHT}{FENCE}ft")
    terminal.wait("^› draft$")
    assert terminal.style("›").fg == "00658f"
    terminal.type(f"{DARK}\x7f")
    terminal.wait("^› draf$")
    assert terminal.style("›").fg == "00658f"


def test_a_terminal_that_never_answers_loses_nothing(chat: Chat) -> None:
    terminal = chat([{"text": "word " * 400, "stream_delay": 0.05}], env={"COLORTERM": "truecolor"})
    terminal.type("go\r")
    terminal.wait("word word")
    terminal.type("\x1b")
    terminal.wait("Stopped")
    assert terminal.style("›").fg == "cyan"
    terminal.type("\x04")
    assert terminal.ended() == 0


def test_one_that_knows_only_the_fence_keeps_its_colours(chat: Chat) -> None:
    terminal = chat(env={"COLORTERM": "truecolor"})
    terminal.type(f"{FENCE}a")
    terminal.wait("^› a$")
    assert terminal.style("›").fg == "cyan"


def test_an_answer_does_not_reach_the_shell(home: Path, work: Path, words) -> None:
    """Who leaves at once leaves no answer behind for the next reader of the terminal."""
    with Terminal(["/bin/bash", "--norc", "-i"], env=environment(home, PS1="$ "), cwd=work) as terminal:
        terminal.wait(r"^\$")
        terminal.type(" ".join(words([])) + "; head -c 3 | od -c\r")
        _asked(terminal)
        terminal.type("\x04")
        terminal.settle(0.1, 0.1)
        terminal.type(f"{LIGHT}{FENCE}")
        terminal.settle(1.5)
        terminal.type("ab\r")
        terminal.wait(r"a +b +\\n")


@pytest.mark.parametrize(
    "env",
    [
        {"REFOLD_THEME": "dark"},
        {"COLORFGBG": "0;15"},
        {"NO_COLOR": "1"},
        {"TERM": "screen-256color"},
        {"TERM": "linux"},
        {"TERM": "vt100"},
        {"INSIDE_EMACS": "29.1,term:0.96"},
        {"STY": "1.pts-0"},
    ],
)
def test_who_cannot_answer_or_need_not_is_not_asked(chat: Chat, env: dict[str, str]) -> None:
    terminal = chat(env=env)
    terminal.settle(0.3)
    assert b"\x1b]11;" not in terminal.raw


def test_a_theme_that_is_chosen_is_not_taken_back(chat: Chat) -> None:
    terminal = chat(env={"COLORTERM": "truecolor"})
    terminal.type("/theme dark\r")
    terminal.wait("Colours: dark")
    terminal.type(f"{LIGHT}{FENCE}a")
    terminal.wait("^› a$")
    assert terminal.style("› a").fg == "7dcfff"


@pytest.mark.parametrize(
    ("colour", "light"),
    [
        ("rgb:ffff/ffff/ffff", True),
        ("rgb:fd/f6/e3", True),
        ("rgba:0000/2b2b/3636/ffff", False),
        ("#1e1e2e", False),
        ("#eff1f5", True),
        ("rgb:f/f/f", True),
        ("none", None),
        ("rgb:ffff/ffff", None),
        ("", None),
    ],
)
def test_light_is_what_black_stands_out_on(colour: str, light: bool | None) -> None:
    assert is_light(colour) is light


def test_terminals_that_would_print_the_question_are_known() -> None:
    asked = {"xterm-256color", "tmux-256color", "xterm-kitty", "alacritty", "foot", "st-256color", "rxvt-unicode"}
    silent = {"", "dumb", "linux", "vt100", "screen", "eterm-color", "sun", "cygwin", "ansi"}
    assert {t for t in asked | silent if answers({"TERM": t})} == asked
    assert answers({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"})


def test_whatever_the_pieces_keys_stay_keys() -> None:
    """Every way to cut the same bytes in two gives the same keys and the same colour."""
    whole = f"a{LIGHT}b{FENCE}c\x1b[Ad"
    for cut in range(len(whole) + 1):
        heard: list[str] = []
        taker = Answers(heard.append)
        taker.ask()
        keys = taker.take(whole[:cut]) + taker.take(whole[cut:])
        assert (keys, heard) == ("abc\x1b[Ad", ["rgb:fdfd/f6f6/e3e3"]), cut
    assert re.fullmatch("[a-z]*", "".join(Answers(lambda c: None).take(x) for x in ("a", "b")))


def test_the_esc_key_is_only_held_for_the_usual_moment() -> None:
    taker = Answers(lambda colour: None)
    taker.ask()
    assert (taker.take("\x1b"), taker.give_up(), taker.take("x")) == ("", "\x1b", "x")
    assert (taker.take("\x1b"), taker.take("b")) == ("", "\x1bb")
