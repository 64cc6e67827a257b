"""The person's own line above the status."""

from __future__ import annotations

import json
from pathlib import Path

from tests.terminal.conftest import Chat


def _command(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    script = home / "line.sh"
    script.write_text(text)
    (home / "config.toml").write_text(f'status_command = "sh {script}"\n')


def test_the_first_line_of_the_command_is_shown_and_kept_up(chat: Chat, home: Path, work: Path) -> None:
    count = home / "count"
    print_it = 'printf "mine: \\033[31m%s\\nsecond\\n"'
    _command(home, f'cat > {home}/told.json\n{print_it} "$(wc -l < {count})"\necho >> {count}')
    count.write_text("")
    terminal = chat([{"text": "hello"}])
    terminal.wait("^mine: 0")
    assert "second" not in terminal.text()
    told = json.loads((home / "told.json").read_text())
    assert (told["mode"], told["cwd"], told["window"]["size"]) == ("ask", str(work), 128_000)
    terminal.type("hi\r")
    terminal.wait("^hello")
    terminal.wait(r"^mine: [1-9]")


def test_a_command_that_hangs_or_fails_is_told_once_and_keeps_nothing_waiting(chat: Chat, home: Path) -> None:
    _command(home, "sleep 30")
    terminal = chat([{"text": "hello"}])
    terminal.type("hi\r")
    terminal.wait("^hello", 1.5)
    terminal.wait("status_command: it took longer than 2 s and was ended")
    terminal.type("\x04")
    assert terminal.ended() == 0
    _command(home, "echo no such thing >&2; exit 3")
    again = chat()
    again.wait("status_command: exit 3: no such thing")
    again.type("\x1b[Z\x1b[Z")
    again.settle(1.5)
    assert again.scrollback().count("no such thing") == 1


def test_a_folder_cannot_set_it(chat: Chat, home: Path, work: Path) -> None:
    (work / ".refold").mkdir()
    (work / ".refold/config.toml").write_text('status_command = "echo from-the-folder"\n')
    terminal = chat()
    terminal.settle(1.0)
    assert "from-the-folder" not in terminal.scrollback()
