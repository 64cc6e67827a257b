"""What went wrong in other terminal agents and line editors, by public reports, tried here: keys of other protocols,
pastes, wide letters, names and lines."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from agent.clean import pasted, plain
from agent.terminal.input import known
from agent.terminal.keyboard import know_more_keys
from tests.support.processes import within
from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment, logged

# -- keys and sequences -----------------------------------------------------------------------------------------------


def test_what_no_key_writes_is_no_text_and_no_escape(chat: Chat) -> None:
    """Focus, mouse, answers nobody asked for: typed in, each would be an Esc and letters; two Esc clear the line."""
    terminal = chat()
    for noise in (
        "\x1b[I", "\x1b[O", "\x1b[<0;10;10M", "\x1b[<35;10;10m", "\x1b[M !!", "\x1bOP", "\x1b[24~", "\x1b[?1;2c",
        "\x1b[12;40R", "\x1b]10;rgb:0/0/0\x07", "\x1bP>|xterm(1)\x1b\\", "\x1b[?2026;2$y", "\x1b[200;5~", "\x1b[201~",
    ):  # fmt: skip
        terminal.type(f"a{noise}")
    for piece in ("\x1b", "[", "1;", "2", "R", "b"):
        terminal.type(piece)
        terminal.settle(0.02, 0.02)
    terminal.wait(f"^› {'a' * 14}b$")


def test_keys_of_kittys_protocol_are_what_they_write(chat: Chat) -> None:
    terminal = chat(env={"KITTY_WINDOW_ID": "1"})
    terminal.type("a\x1b[98;2u\x1b[57358u\x1b[57441;2u\x1b[99;1:3uc\x1b[13;2u\x1b[228;2u\x1b[49:33;2u\x1b[57400u")
    terminal.wait("^› aBc\n  Ä!1$")
    terminal.type("\x1b[97;129u\x1b[127;129u")
    terminal.wait("^› aBc\n  Ä!1$")
    terminal.type("\x1b[99;5u")
    terminal.wait("^›$")


@pytest.mark.parametrize(
    ("sequence", "meaning"),
    [
        ("\x1b[A", "\x1b[A"),
        ("\x1b[27;2;66~", "B"),
        ("\x1b[27;2;33~", "!"),
        ("\x1b[27;5;46~", ""),
        ("\x1b[97;65u", "A"),
        ("\x1b[97;66u", "a"),
        ("\x1b[97;9u", ""),
        ("\x1b[97;1:1u", "a"),
        ("\x1b[13;1:1u", "\x1b[13;1u"),
        ("\x1b[57414u", "\r"),
        ("\x1b[1114112u", ""),
        ("\x1b[7u", ""),
    ],
)
def test_a_sequence_means_a_key_or_nothing(sequence: str, meaning: str) -> None:
    know_more_keys()
    assert known(sequence) == meaning


def test_alt_keys_and_two_escapes(chat: Chat) -> None:
    terminal = chat()
    terminal.type("one two three four")
    terminal.type("\x1b\x7f")
    terminal.wait("^› one two three$")
    terminal.type("\x1bb\x1bd\x1bbX\x1bf!")
    terminal.wait("^› one Xtwo!")
    terminal.type("\x1b\x1b")
    terminal.wait("^›$")


def test_bytes_that_are_no_text_can_be_sent(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "noted"}])
    terminal.process.send(b"a\xff\xfe\xc3(b")
    terminal.wait("^› a")
    terminal.type("\r")
    terminal.wait("^noted")
    assert [u["text"] for u in logged(home, "user")] == ["a\ufffd\ufffd\ufffd(b"]


# -- pastes -----------------------------------------------------------------------------------------------------------


def test_a_paste_of_ten_megabytes_is_a_chip_at_once(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "read"}])
    data = b"\x1b[200~" + (b"x" * 99 + b"\n") * 100_000 + b"\x1b[201~!"
    pieces = [data[n : n + 4096] for n in range(0, len(data), 4096)]
    writer = threading.Thread(target=lambda: [os.write(terminal.process.child_fd, piece) for piece in pieces])
    began = time.monotonic()
    writer.start()
    terminal.wait(r"\[Pasted text #1, 100,001 lines\]!", 30)
    writer.join()
    assert time.monotonic() - began < 10
    terminal.type("\r")
    terminal.wait("^read", 30)
    assert len(logged(home, "user")[0]["text"]) == 10_000_001


def test_line_ends_and_tabs_of_a_paste(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "noted"}])
    terminal.paste("one\r\ntwo\rthree\r\n\r\n\tfour\tfive")
    terminal.wait("› one\n  two\n  three\n\n      four    five")
    terminal.type("Z\r")
    terminal.wait("^noted")
    assert logged(home, "user")[0]["text"] == "one\ntwo\nthree\n\n\tfour\tfiveZ"


def test_lines_that_were_pasted_are_no_command(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "A stylesheet."}])
    terminal.paste("!important { color: red }\ntouch made")
    terminal.type("\r")
    terminal.wait("^A stylesheet")
    terminal.type("!echo h''i\r")
    terminal.wait("^  hi")
    assert within(10, lambda: [u.get("source", "typed") for u in logged(home, "user")] == ["typed", "shell"])


def test_a_chip_that_was_only_typed_is_text(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "first"}])
    terminal.type("[Pasted text #1, 3 lines] hi\r")
    terminal.wait("^first")
    assert logged(home, "user")[0]["text"] == "[Pasted text #1, 3 lines] hi"


# -- letters ----------------------------------------------------------------------------------------------------------


def test_wide_letters_at_the_end_of_a_line(chat: Chat, home: Path) -> None:
    said = "你好世界" * 12
    terminal = chat([{"text": "答案" * 30 + " end"}], columns=21)
    terminal.type(f"{said}x")
    terminal.settle()
    assert "".join(terminal.text().split("›")[1].split()) == f"{said}x"
    terminal.type("\r")
    terminal.wait("end$")
    assert "".join(terminal.scrollback().split()).count("答案") == 30
    assert logged(home, "user")[0]["text"] == f"{said}x"


def test_letters_of_several_code_points_and_from_right_to_left(chat: Chat, home: Path) -> None:
    family = "👨‍👩‍👧‍👦"
    terminal = chat([{"text": "one"}, {"text": "שלום עולם مرحبا"}, {"text": "three"}], columns=20)
    terminal.type(f"{family * 13}\x7f\x7f!\r")
    terminal.wait("^one")
    terminal.type("cafe\u0301s \x7f\x7f\x7f\x1b[Dx\r")
    terminal.wait("مرحبا")
    terminal.type("שלום مرحبا\r")
    terminal.wait("^three")
    assert [u["text"] for u in logged(home, "user")] == [f"{family * 11}!", "caxf", "שלום مرحبا"]


def test_separators_of_lines_are_line_ends() -> None:
    assert (plain("a\u2028b\u2029c"), pasted("a\u2028b\r\nc")) == ("a\nb\nc", "a\nb\nc")


def test_a_locale_without_unicode(home: Path, work: Path, words) -> None:
    env = {k: v for k, v in environment(home, LC_ALL="C").items() if k != "LANG"}
    with Terminal(words([{"text": "naïve 你好 😀 done"}]), env=env, cwd=work) as terminal:
        terminal.wait("of 128k")
        terminal.type("café 日本\r")
        terminal.wait("naïve 你好 😀 done")
    assert logged(home, "user")[0]["text"] == "café 日本"


# -- lines ------------------------------------------------------------------------------------------------------------


def test_entries_of_several_lines_come_back_whole(chat: Chat) -> None:
    terminal = chat([{"text": "one"}, {"text": "two"}])
    terminal.type("first\nsecond line\r")
    terminal.wait("^one")
    terminal.type("third\r")
    terminal.wait("^two")
    terminal.type("\x1b[A\x1b[A")
    terminal.wait("› first\n  second line$")
    terminal.type("\x1b[B" * 6)
    terminal.wait("^›$")


def test_a_command_that_is_nearly_right(chat: Chat) -> None:
    terminal = chat()
    terminal.type("/hlep\r")
    terminal.wait("There is no command /hlep. Is it /help?")
    terminal.type("\x15/zzzz\r")
    terminal.wait("There is no command /zzzz. /help lists them.")


def test_a_line_that_begins_with_a_path_is_a_line(chat: Chat, home: Path) -> None:
    lines = ["/home/nobody/x.py:12: error", "/no/such/dir why", "//comment", "/usr"]
    terminal = chat([{"text": f"answer {n}"} for n in range(len(lines))])
    for n, line in enumerate(lines):
        terminal.type(line)
        terminal.wait(re.escape(line) + "$")
        terminal.type("\r")
        terminal.wait(f"^answer {n}")
    assert [u["text"] for u in logged(home, "user")] == lines


def test_files_with_odd_names_are_named(chat: Chat, work: Path) -> None:
    for name in ("ünï cödé.txt", "日本語.md", "esc\x1b[31m.txt"):
        (work / name).touch()
    terminal = chat()
    for word, taken in (("@ün", r'@"ünï cödé\.txt"'), ("@日", r"@日本語\.md")):
        terminal.type(word)
        terminal.wait("^› [ü日]")
        terminal.type("\t")
        terminal.wait(f"^› {taken}$")
        terminal.type("\x15")
    terminal.type("@esc")
    terminal.wait(r"^› esc\.txt$")
    assert b"\x1b[31m.txt" not in terminal.raw


@pytest.mark.parametrize("editor", ["/no/such/editor", "'unclosed"])
def test_an_editor_that_cannot_be_started_is_told(chat: Chat, editor: str) -> None:
    terminal = chat(env={"EDITOR": editor})
    terminal.type("draft\x07")
    terminal.wait("The editor cannot be started")
    terminal.wait("^› draft$")
