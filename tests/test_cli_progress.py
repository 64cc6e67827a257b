"""What a person sees on stderr while something takes time."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from agent.headless.output import bar
from tests.support.command import argv, refold, script


def test_a_bar() -> None:
    assert [bar(0, 10, 4), bar(5, 10, 4), bar(10, 10, 4), bar(99, 10, 4)] == [
        "[    ]   0 %",
        "[##  ]  50 %",
        "[####] 100 %",
        "[####] 100 %",
    ]


def test_in_a_terminal_it_is_drawn_and_taken_away(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "Done.", "delay": 0.3, "waiting": "thinking"})
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        argv("-p", "x", "--model", model), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        shown += piece
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"Done.\n")
    assert b"  thinking ...\r\x1b[K" in shown


def test_elsewhere_it_is_a_line(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"text": "Done.", "delay": 0.3, "waiting": "thinking"})
    done = refold("-p", "x", "--model", model, cwd=tmp_path)
    assert "  thinking" in done.stderr.splitlines()
    assert "\x1b" not in done.stderr


def test_what_went_wrong_is_one_line_that_says_why(tmp_path: Path, home: Path) -> None:
    calls = [
        {"name": "bash", "arguments": {"command": "echo it begins; printf '\\033[31mfatal: no remote\\n\\n'; exit 3"}},
        {"name": "bash", "arguments": {"command": "sh -c 'exit 4'"}},
        {"name": "read", "arguments": {"path": "none.py"}},
        {"name": "bash", "arguments": {"command": f"curl {'a' * 400} && git push"}},
    ]
    model = script(tmp_path / "s.jsonl", {"calls": calls}, "Over.")
    options = (
        "--permission-mode",
        "ask",
        "--allow",
        "bash(echo *)",
        "--allow",
        "bash(printf *)",
        "--allow",
        "bash(sh *)",
    )
    done = refold("-p", "x", "--model", model, *options, "--allow", "bash(exit *)", cwd=tmp_path)
    said = done.stderr.splitlines()
    assert "\x1b" not in done.stderr
    assert said[2:6] == [
        "  exit 3: fatal: no remote",
        "> $ sh -c 'exit 4'",
        "  exit 4: (no output)",
        "> read none.py",
    ]
    assert said[6] == f"  error: none.py does not exist (looked at {tmp_path}/none.py)."
    assert said[7].startswith("  denied: [Not allowed, and nobody is here to ask: ")
    assert (len(said[7]), said[7][-1]) == (310, "…")
