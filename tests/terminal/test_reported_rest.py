"""What went wrong in other terminal agents, by public reports, tried here: hostile and endless output, job control, the
end, hang-ups, small terminals, programs that want the terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.terminal.shell import wants_terminal
from tests.support.processes import ended, within
from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment, logged

HOSTILE_NAME = "we\x1b]0;x\x07ird\nname 日本"


def bash(command: str) -> dict[str, object]:
    return {"calls": [{"name": "bash", "arguments": {"command": command}}]}


# -- output -----------------------------------------------------------------------------------------------------------


def test_links_progress_bars_and_overstrikes_of_a_command(chat: Chat, work: Path) -> None:
    (work / "out.sh").write_text(
        r"printf '\033]8;;http://evil\007click\033]8;;\007 \033]8;;http://e\033\\me\033]8;;\033\\ ';"
        r"printf '\033[1;31mred\033[0m\n';"
        r"for n in 1 2 3; do printf '\r%d0%%' $n; sleep 0.3; done; printf '\rdone   \n';"
        r"printf 'a\fb\vc\r\n\033(0lqk\033(B \016shift\017 \033c\033[?1049halt\n';"
        r"printf '\033]1337;File=x\007\033_Gf=24;AA\033\\img\n'"
    )
    terminal = chat([bash("sh out.sh"), {"text": "[x](javascript:alert(1)) over"}], "--yolo")
    terminal.type("go\r")
    terminal.wait("^  [123]0%$")
    terminal.wait(" over")
    terminal.settle()
    terminal.wait("^  click me red\n  done\n  abc\n  lqk shift alt\n  img$")
    assert re.findall(rb"\x1b\]8|\x1bc|\x1b\(0|\x0e|\x1b\]1337|\x1b_|\x1b\[\?1049", bytes(terminal.raw)) == []


def test_one_line_of_a_hundred_thousand_letters(chat: Chat) -> None:
    command = bash("head -c 100000 /dev/zero | tr '\\0' x; echo; echo tail")
    terminal = chat([command, {"text": "y" * 100_000 + " over"}], "--yolo")
    terminal.type("go\r")
    terminal.wait("over", 30)
    terminal.type("k")
    terminal.wait("^› k$")
    terminal.settle()
    assert terminal.scrollback().count("y" * 70) >= 100_000 // 80


def test_an_address_is_whole_however_narrow(chat: Chat) -> None:
    url = "https://example.com/" + "abcdefghij" * 20
    terminal = chat([{"text": f"See {url} now."}], columns=40)
    terminal.type("go\r")
    terminal.wait("now")
    terminal.settle()
    assert url in terminal.scrollback().replace("\n", "")


@pytest.mark.parametrize(
    "text", ["", "   \n\n ", "```", "```python\nno end", "# ", "\ud83d half", "[](y) ![i](x) [^1]"]
)
def test_odd_answers_end_the_turn(chat: Chat, text: str) -> None:
    terminal = chat([{"text": text}, {"text": "next"}])
    terminal.type("go\r")
    terminal.wait("^› go")
    terminal.wait_gone("Esc stops")
    terminal.type("more\r")
    terminal.wait("^next")
    assert "A bug in refold" not in terminal.scrollback()


def test_a_folder_whose_name_gives_orders(home: Path, tmp_path: Path, words) -> None:
    folder = tmp_path / HOSTILE_NAME
    folder.mkdir()
    with Terminal(words([{"text": "hello"}]), env=environment(home), cwd=folder) as terminal:
        terminal.wait("of 128k")
        terminal.type("hi\r")
        terminal.wait("^hello")
        terminal.type("/doctor\r")
        terminal.wait("Everything that has to work works")
        assert b"\x1b]0;x" not in terminal.raw


# -- job control and the end ------------------------------------------------------------------------------------------


@pytest.fixture
def shell(home: Path, work: Path, words) -> Iterator[Terminal]:
    """A shell with a chat in front, in which `dr` was typed."""
    env = environment(home, PS1="$ ", HISTFILE="/dev/null")
    with Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env=env, cwd=work) as terminal:
        terminal.wait(r"^\$")
        terminal.type(" ".join(words([{"text": "still here"}])) + "\r")
        terminal.wait("of 128k")
        terminal.type("dr")
        terminal.wait("^› dr$")
        yield terminal


def _child(shell: Terminal) -> int:
    found = subprocess.run(["pgrep", "-P", str(shell.process.pid)], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


def _comes_back(shell: Terminal) -> None:
    shell.type("fg\r")
    shell.wait(r"of 128k.*\n› dr")
    shell.type("aft")
    shell.wait("^› draft$")
    shell.type("\r")
    shell.wait("^still here")


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_stopped_from_outside_it_comes_back_with_its_keys(shell: Terminal, number: signal.Signals) -> None:
    os.kill(_child(shell), number)
    shell.wait("Stopped")
    shell.type("clear; stty -a | grep -o ' icanon'\r")
    shell.wait("^ icanon")
    _comes_back(shell)


def test_continued_in_the_background_it_leaves_the_terminal_alone(shell: Terminal) -> None:
    shell.type("\x1a")
    shell.wait("Stopped")
    shell.type("clear; bg\r")
    shell.settle(0.5)
    shell.type("echo he''re\r")
    shell.wait("^here")
    shell.wait("Stopped")
    _comes_back(shell)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_every_mode_is_off_at_the_end(chat: Chat, number: signal.Signals) -> None:
    terminal = chat([{"text": "word " * 900, "stream_delay": 0.05}], env={"KITTY_WINDOW_ID": "1"})
    terminal.type("go\r")
    terminal.wait("word word")
    terminal.process.kill(number)
    assert terminal.ended() == 128 + number
    raw = bytes(terminal.raw)
    modes = {
        b"\x1b[?25l": b"\x1b[?25h", b"\x1b[?2004h": b"\x1b[?2004l", b"\x1b[?7l": b"\x1b[?7h", b"\x1b[>1u": b"\x1b[<u",
        b"\x1b[22;2t": b"\x1b[23;2t", b"\x1b[?2026h": b"\x1b[?2026l",
    }  # fmt: skip
    assert [on for on, off in modes.items() if raw.rfind(off) < raw.rfind(on)] == []


@pytest.mark.parametrize("busy", [False, True])
def test_a_terminal_that_is_gone_ends_the_chat_and_what_it_runs(home: Path, work: Path, words, busy: bool) -> None:
    """Whoever closes the window leaves nothing behind that runs on, or spins."""
    master, slave = os.openpty()
    command = words([bash("echo $$ > pid; exec sleep 300")], "--yolo")
    chat = subprocess.Popen(
        command, cwd=work, env=environment(home), preexec_fn=lambda: os.login_tty(slave), pass_fds=[slave]
    )
    os.close(slave)
    _read_until(master, b"of 128k")
    if busy:
        os.write(master, b"go\r")
        _read_until(master, b"Esc stops")
        assert within(20, lambda: (work / "pid").exists() and (work / "pid").read_text().endswith("\n"))
    os.close(master)
    assert chat.wait(30) == 128 + signal.SIGHUP
    if busy:
        assert ended(int((work / "pid").read_text()), 20)
        assert [end["reason"] for end in logged(home, "turn_end")] == ["interrupted"]


def _read_until(master: int, words: bytes) -> None:
    seen = b""
    while words not in seen:
        seen += os.read(master, 65536)


# -- small terminals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (10, 3), (80, 1), (5, 24), (1, 1)])
def test_a_question_can_be_answered_on_any_terminal(home: Path, work: Path, words, columns: int, rows: int) -> None:
    command = words([bash("touch ran"), {"text": "over"}])
    with Terminal(command, columns=columns, rows=rows, env=environment(home), cwd=work) as terminal:
        terminal.settle(1.0)
        terminal.type("go\r")
        end = time.monotonic() + 20
        while not (work / "ran").exists() and time.monotonic() < end:
            terminal.settle(1.0)
            terminal.type("y")
        assert (work / "ran").exists()
        terminal.settle(1.0)
        terminal.type("\x15\x04")
        assert terminal.ended() == 0


def test_the_input_may_be_higher_than_the_screen(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "long"}], rows=12)
    terminal.type("\n".join(f"l{n}" for n in range(40)))
    terminal.wait("l39$")
    terminal.type("\x1b[A" * 30)
    terminal.wait("l9$")
    terminal.type("\r")
    terminal.wait("^long")
    assert logged(home, "user")[0]["text"].split("\n") == [f"l{n}" for n in range(40)]


# -- commands of the person's -----------------------------------------------------------------------------------------


def test_a_command_that_reads_gets_no_key(chat: Chat) -> None:
    terminal = chat()
    terminal.type("!cat; read x; echo got $x; python3 -i\r")
    terminal.wait("^  exit")
    terminal.type("k")
    terminal.wait("^› k$")


def test_a_program_that_wants_the_terminal_has_it(chat: Chat, home: Path, work: Path) -> None:
    """Named like an editor, it reads keys of the terminal, also Ctrl-C, and the chat comes back."""
    (work / "vi").write_text(
        "#!/bin/bash\ntrap 'echo caught' INT\nread -p 'name? ' name </dev/tty\nsleep 20\necho \"hello $name\"\n"
        "read -p 'more? ' x\nexit 3\n"
    )
    (work / "vi").chmod(0o755)
    terminal = chat()
    terminal.type("!./vi\r")
    terminal.wait(r"name\?")
    terminal.type("anna\r")
    terminal.settle(0.5)
    terminal.type("\x03")
    terminal.wait(r"caught\s+hello anna\s+more\?")
    terminal.type("\r")
    terminal.wait("^  exit 3")
    assert re.search(r"^› !\./vi$.*name\?.*more\?", terminal.text(), re.M | re.S)
    terminal.type("k")
    terminal.wait("^› k$")
    (told,) = logged(home, "user")
    assert told["text"].split("\n")[1:] == [
        "$ ./vi",
        "[It had the terminal: what it said was not kept.]",
        "[exit code 3]",
    ]


@pytest.mark.parametrize(
    ("command", "wants"),
    [
        ("vi a.txt", True),
        ("EDITOR=x /usr/bin/vim", True),
        ("cd src && nvim .", True),
        ("git diff | vim -", True),
        ("ssh host; ", True),
        ("top -b -n1 | head", False),
        ("echo vi", False),
        ("ls", False),
        ("", False),
    ],
)
def test_which_commands_want_the_terminal(command: str, wants: bool) -> None:
    assert wants_terminal(command) is wants
