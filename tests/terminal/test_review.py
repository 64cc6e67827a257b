"""Hunk review in a real terminal."""

from __future__ import annotations

from pathlib import Path

from tests.terminal.conftest import Chat, logged

OLD = "".join(f"line {n}\n" for n in range(30))
NEW = OLD.replace("line 3\n", "LINE 3\n").replace("line 20\n", "line 20\nmore\n")
SCRIPT = [
    {"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]},
    {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": NEW}}]},
    {"text": "all right"},
]


def test_hunks_are_left_out_and_taken(chat: Chat, work: Path, home: Path) -> None:
    (work / "a.txt").write_text(OLD)
    terminal = chat(SCRIPT, rows=40)
    terminal.type("change it\r")
    terminal.wait(r"Make this change\?")
    terminal.type("h")
    terminal.wait(r"Hunk 1 of 2 in a\.txt")
    terminal.type("n")
    terminal.wait(r"Hunk 2 of 2 in a\.txt")
    terminal.type("y")
    terminal.wait("Why")
    terminal.type("not that one\r")
    terminal.wait("all right")
    terminal.wait(r"^↳ not that one")
    terminal.wait(r"Of 2 hunks 1 left out\.")
    assert (work / "a.txt").read_text() == OLD.replace("line 20\n", "line 20\nmore\n")
    assert logged(home, "tool_result")[1]["text"].endswith("They said: not that one")


def test_leaving_the_review_asks_again(chat: Chat, work: Path) -> None:
    (work / "a.txt").write_text(OLD)
    terminal = chat(SCRIPT, rows=40)
    terminal.type("change it\r")
    terminal.wait(r"Make this change\?")
    terminal.type("h")
    terminal.wait("Hunk 1 of 2")
    terminal.type("\x1b")
    terminal.wait(r"Make this change\?")
    terminal.type("y")
    terminal.wait("all right")
    assert (work / "a.txt").read_text() == NEW


def test_a_hunk_is_edited_in_the_persons_editor(chat: Chat, work: Path, tmp_path: Path) -> None:
    (work / "a.txt").write_text(OLD)
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nprintf 'Three\\n' > \"$1\"\n")
    editor.chmod(0o755)
    terminal = chat(SCRIPT, rows=40, env={"EDITOR": str(editor)})
    terminal.type("change it\r")
    terminal.wait(r"Make this change\?")
    terminal.type("h")
    terminal.wait("Hunk 1 of 2")
    terminal.type("e")
    terminal.wait("Hunk 2 of 2")
    terminal.type("y")
    terminal.wait("all right")
    assert (work / "a.txt").read_text() == NEW.replace("LINE 3\n", "Three\n")


def test_a_hunk_that_is_too_long_is_shown_whole_by_a_key(chat: Chat, work: Path) -> None:
    (work / "a.txt").write_text("")
    long = "".join(f"row {n}\n" for n in range(60))
    write = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": long}}]}
    terminal = chat([SCRIPT[0], write, {"text": "all right"}])
    terminal.type("change it\r")
    terminal.wait(r"Make this change\?")
    terminal.type("h")
    terminal.wait(r"more lines \(Ctrl-E shows all\)")
    terminal.type("\x05")
    terminal.wait("a.txt · 23/")
    assert (terminal.style("+row 3").fg, terminal.style("/ searches").fg) == ("green", "brightblack")
