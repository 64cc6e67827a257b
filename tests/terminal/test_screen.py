"""What the screen shows, whatever comes: resizes, pastes, wide letters, hostile output, small and dumb terminals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.screen import Terminal
from tests.terminal.conftest import MAIN, Chat, environment, logged

NUMBERED = {"text": "".join(f"row {n} of the answer\n\n" for n in range(1, 61)), "stream_delay": 0.02}
HOSTILE = "a\\033]52;c;eA==\\007b\\033]0;owned\\007\\033[3A\\033P+q\\033\\\\c\\302\\2332Jd\\033[6ne"


def rows(terminal: Terminal) -> list[int]:
    return [int(n) for n in re.findall(r"row (\d+) of the answer", terminal.scrollback())]


def test_a_resize_while_it_writes_loses_and_doubles_nothing(chat: Chat) -> None:
    terminal = chat([NUMBERED], columns=120, rows=40)
    terminal.type("go\r")
    terminal.wait("row 30 of the answer")
    terminal.resize(40, 12)
    drawn = max(rows(terminal), default=30)
    terminal.wait("row 60 of the answer")
    terminal.wait(r"%\n›")
    terminal.settle()
    seen = rows(terminal)
    # The emulator forgets the lines that a lower screen pushes out at its top; what came later must be there, once.
    assert len(seen) == len(set(seen))
    assert [n for n in seen if n > drawn] == list(range(drawn + 1, 61))
    assert len(re.findall("^›", terminal.text(), re.M)) == 1


def test_the_first_line_is_erased_by_itself(chat: Chat) -> None:
    """tmux moves the screen into the scrollback where one order, given in the first cell, erases all of it: what was
    live would stand there for good. On a low screen the live lines begin in the first cell."""
    terminal = chat([NUMBERED], columns=60, rows=8)
    terminal.type("go\r")
    terminal.wait("row 20 of the answer")
    terminal.resize(40, 6)
    terminal.wait("row 60 of the answer")
    terminal.settle()
    assert b"\x1b[J" in terminal.raw
    assert not re.search(rb"(?<!\x1b\[K\x1b\[B)\x1b\[J", terminal.raw)


def test_a_resize_while_idle_draws_the_prompt_once(chat: Chat) -> None:
    terminal = chat(columns=100, rows=30)
    terminal.type("a draft that stays")
    terminal.wait("a draft that stays")
    for columns, lines in ((60, 30), (120, 30), (40, 20)):
        terminal.resize(columns, lines)
        terminal.settle()
    assert terminal.text().count("a draft that stays") == 1
    assert len(re.findall("^›", terminal.text(), re.M)) == 1


def test_a_paste_of_two_lines_is_one_message(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "got it"}])
    terminal.paste("line1\nline2")
    terminal.wait("› line1\n  line2")
    terminal.type("\r")
    terminal.wait("got it")
    assert [r["text"] for r in logged(home, "user")] == ["line1\nline2"]


def test_a_paste_whose_marks_come_in_pieces(chat: Chat) -> None:
    terminal = chat()
    for piece in ("\x1b[20", "0~hel", "lo\x1b[20", "1~"):
        terminal.type(piece)
        terminal.settle(0.03)
    terminal.wait("^› hello$")


def test_a_paste_of_ten_thousand_lines_is_a_chip(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "read"}])
    text = "\n".join(f"line {n}" for n in range(10_000))
    began = time.monotonic()
    terminal.paste(text)
    terminal.wait(r"› \[Pasted text #1, 10,000 lines\]")
    assert time.monotonic() - began < 5
    terminal.type(" sum it up\r")
    terminal.wait("read")
    assert logged(home, "user")[0]["text"] == f"{text} sum it up"


def test_a_chip_is_deleted_whole(chat: Chat) -> None:
    terminal = chat()
    terminal.paste("x" * 3000)
    terminal.wait(r"\[Pasted text #1, 3,000 characters\]")
    terminal.type("\x7f")
    terminal.wait_gone("Pasted")


def test_a_paste_with_orders_to_the_terminal_is_only_text(chat: Chat) -> None:
    terminal = chat()
    terminal.paste("a\x1b]52;c;eA==\x07b")
    terminal.wait("^› ab$")
    assert b"\x1b]52" not in terminal.raw


def test_output_cannot_give_orders_to_the_terminal(chat: Chat) -> None:
    call = {"calls": [{"name": "bash", "arguments": {"command": f"printf '{HOSTILE}'"}}]}
    terminal = chat([call, {"text": "said \x1b]52;c;eA==\x07 and \x1b[2J and \x9b2J this"}], "--yolo")
    terminal.type("go\r")
    terminal.wait("said  and  and  this")
    terminal.wait("abcde")
    terminal.settle()
    assert re.findall(rb"\x1b\]52;[^\x07\x1b]*|\x1b\[6n|\x1bP|\x1b\]0;owned", bytes(terminal.raw)) == []


def test_half_a_fence_is_never_shown_as_text(chat: Chat) -> None:
    answer = "Here:\n\n```python\nx = 1\nprint(x)\n```\n\nThat was it."
    terminal = chat([{"text": piece, "stream_delay": 0.02} for piece in (answer,)])
    terminal.type("go\r")
    terminal.wait("That was it")
    terminal.settle()
    assert b"``" not in terminal.raw
    assert terminal.style("print").fg != "default"


def test_wide_letters_keep_the_cursor_right(chat: Chat) -> None:
    terminal = chat()
    terminal.type("你好🏳️‍🌈🇩🇪é")
    terminal.settle()
    assert terminal.screen.cursor.x == 2 + 9
    terminal.type("\x7f\x7f")
    terminal.settle()
    assert terminal.screen.cursor.x == 2 + 6
    terminal.type("\x7f")
    terminal.settle()
    assert terminal.screen.cursor.x == 2 + 4
    terminal.wait("^› 你好$")


def test_twenty_columns_are_enough(chat: Chat) -> None:
    call = {"calls": [{"name": "bash", "arguments": {"command": "touch x; echo a rather long line of output"}}]}
    terminal = chat([call, {"text": "A sentence that is longer than the terminal is wide."}], columns=20, rows=10)
    terminal.type("a line that wraps around\r")
    terminal.wait("y Yes")
    terminal.type("y")
    terminal.wait("terminal is wide")
    terminal.settle()
    assert "Traceback" not in terminal.scrollback()


def test_a_dumb_terminal_gets_lines_and_no_codes(home: Path, work: Path, words) -> None:
    answers = [{"calls": [{"name": "bash", "arguments": {"command": "echo ok-$((1+1))"}}]}, {"text": "All *done*."}]
    env = environment(home, TERM="dumb", NO_COLOR="1")
    with Terminal(words(answers), env=env, cwd=work, rows=40) as terminal:
        terminal.wait("^>")
        terminal.type("run it\n")
        terminal.wait("y = yes, once")
        terminal.type("d\n")  # a key of the other chat; no word to the model
        terminal.wait("There is no d here")
        terminal.type("y\n")
        terminal.wait(r"ok-2")
        terminal.wait(r"All \*done\*\.")
        terminal.type("/quit\n")
        assert terminal.ended() == 0
        assert b"\x1b" not in terminal.raw


def test_no_color_means_no_colour(chat: Chat) -> None:
    terminal = chat([{"text": "# Title\n\nsome `code`\n\n```python\nx = 1\n```"}], env={"NO_COLOR": "1"})
    terminal.type("go\r")
    terminal.wait("x = 1")
    terminal.settle()
    colours = re.findall(rb"\x1b\[[0-9;]*?(?:3[0-7]|9[0-7]|4[0-7]|[34]8;[25])[0-9;]*m", bytes(terminal.raw))
    assert colours == []
    assert terminal.style("Title").bold


def test_a_resumed_conversation_is_drawn_again_without_what_refold_said(chat: Chat, home: Path, work: Path) -> None:
    first = chat([{"text": "cut off he", "finish": "length"}, {"text": "re. **Bold** end."}])
    first.type("tell me\r")
    first.wait("Bold end")
    first.type("\x04")
    assert first.ended() == 0
    (ident,) = re.findall("--resume ([0-9a-f]+)", first.text())
    second = chat([{"text": "x"}], "--resume", ident)
    second.wait("^› tell me")
    second.wait("Bold end")
    harness = [r["text"] for r in logged(home, "user") if r.get("source") == "harness"]
    assert harness
    assert harness[0][:30] not in second.scrollback()


def test_a_call_that_a_kill_cut_short_is_drawn_again_as_unknown(chat: Chat, home: Path) -> None:
    first = chat([{"calls": [{"name": "bash", "arguments": {"command": "sleep 2"}}]}], "--yolo")
    first.type("wait\r")
    first.wait("sleep 2 · ")
    first.process.kill(9)
    assert first.ended() != 0
    second = chat([{"text": "x"}], "--continue")
    second.wait(r"^● \$ sleep 2  no result: refold ended before this was over$")


@pytest.fixture
def shell(home: Path, work: Path):
    """An interactive shell on a terminal, for what happens between it and the chat."""
    env = environment(home, PS1="$ ", HISTFILE="/dev/null")
    with Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env=env, cwd=work) as terminal:
        terminal.wait(r"^\$")
        yield terminal


def line_of(words: list[str]) -> str:
    return " ".join(words)


def test_the_terminal_is_as_before_after_two_ctrl_c(shell: Terminal, words) -> None:
    shell.type("stty -a > before\r")
    shell.type(f"{line_of(words([]))}; stty -a > after\r")
    shell.wait("of 128k")
    shell.type("\x03")
    shell.wait("Ctrl-C again")
    shell.type("\x03")
    shell.wait(r"^\$\s*\Z")
    shell.type("cmp before after && echo the same\r")
    shell.wait("^the same")
    assert b"\x1b[?2004l" in shell.raw


def test_suspend_and_come_back(shell: Terminal, words) -> None:
    shell.type(f"{line_of(words([{'text': 'still here'}]))}\r")
    shell.wait("of 128k")
    shell.type("dra")
    shell.wait("^› dra")
    shell.type("\x1a")
    shell.wait("Stopped")
    shell.type("stty -a | grep -o ' icanon'\r")
    shell.wait("^ icanon")
    shell.type("fg\r")
    shell.wait("of 128k")
    shell.type("ft\r")
    shell.wait("^› draft")
    shell.wait("still here")


def test_a_kill_leaves_no_raw_mode(shell: Terminal, words) -> None:
    shell.type(f"{line_of(words([]))}\r")
    shell.wait("of 128k")
    child = subprocess.run(["pgrep", "-P", str(shell.process.pid)], capture_output=True, text=True).stdout.split()[0]
    os.kill(int(child), 9)
    shell.wait("Killed")
    shell.type("stty -a | grep -o ' icanon'\r")
    shell.wait("^ icanon")


def test_no_terminal_means_plain_text(home: Path, work: Path, words) -> None:
    ran = subprocess.run(
        [*words([{"text": "Hello **you**."}]), "-p", "hi"],
        cwd=work, env=environment(home), capture_output=True, stdin=subprocess.DEVNULL, timeout=30,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, b"Hello **you**.\n")
    assert b"\x1b" not in ran.stderr
    assert sys.executable and MAIN.exists()


def test_a_termination_restores_the_terminal_and_keeps_the_session(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "word " * 500, "stream_delay": 0.05}])
    terminal.type("go\r")
    terminal.wait("word word")
    terminal.process.kill(15)
    assert terminal.ended() == 143
    assert re.search(r"Go on with: refold --resume [0-9a-f]+", terminal.text())
    (answer,) = logged(home, "assistant")
    assert (answer["finish"], answer["text"][:9]) == ("interrupted", "word word")
    raw = bytes(terminal.raw)
    assert raw.rfind(b"\x1b[?25h") > raw.rfind(b"\x1b[?25l")
    assert raw.rfind(b"\x1b[?2004l") > raw.rfind(b"\x1b[?2004h")
    assert raw.rfind(b"\x1b[?7h") > raw.rfind(b"\x1b[?7l")


def test_no_alternate_screen_and_no_mouse(chat: Chat) -> None:
    terminal = chat([{"text": "hello"}])
    terminal.type("hi\r")
    terminal.wait("^hello")
    terminal.type("/\x1b\x15/mode\r")
    terminal.wait("What may run unasked")
    terminal.type("\x1b")
    terminal.settle()
    assert re.findall(rb"\x1b\[\?(?:1049|47|1000|1002|1003|1006)h", bytes(terminal.raw)) == []


def test_the_usual_keys_of_a_line_editor(chat: Chat) -> None:
    terminal = chat()
    terminal.type("one two three")
    terminal.type("\x17")  # Ctrl-W: the word before
    terminal.wait("^› one two$")
    terminal.type("\x01zero \x05")  # Ctrl-A, Ctrl-E
    terminal.wait("^› zero one two$")
    terminal.type("\x1bb\x0b")  # Alt-B, Ctrl-K
    terminal.wait("^› zero one$")
    terminal.type("\x15")  # Ctrl-U
    terminal.wait("^›$")
    terminal.type("\x19")  # Ctrl-Y brings it back
    terminal.wait("^› zero one")
    terminal.type("\x1f\x1f")  # Ctrl-_ undoes
    terminal.settle()
    terminal.type("\x1b[H!\x1b[F?")  # Home, End
    terminal.wait(r"^› !.*\?$")


def test_a_long_line_wraps_and_stays_one_message(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "noted"}], columns=40)
    text = " ".join(f"word{n}" for n in range(60))
    terminal.type(text)
    terminal.wait("word59")
    terminal.type("\r")
    terminal.wait("^noted")
    assert logged(home, "user")[0]["text"] == text
