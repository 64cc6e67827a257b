"""Paths that nobody can have, wherever the command line takes one: one clear line, a true exit code, no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command import refold

TASK = ("-p", "x", "--model")
PLACES = {
    "script": (*TASK, "scripted:{}"),
    "cd": (*TASK, "local", "--cd", "{}"),
    "add-dir": (*TASK, "local", "--add-dir", "{}"),
    "mcp-config": (*TASK, "local", "--mcp-config", "{}"),
    "resume": ("-p", "x", "--resume", "{}"),
    "resume a file": ("-p", "x", "--resume", "{}.jsonl"),
    "json-schema": (*TASK, "local", "--json-schema", "{}"),
    "prompt-file": ("-p", "--model", "local", "--prompt-file", "{}"),
    "home": ("sessions", "--set", "home={}"),
    "show": ("sessions", "show", "{}.jsonl"),
    "import": ("sessions", "import", "{}"),
    "replay": ("replay", "{}.jsonl"),
    "audit": ("audit", "{}.jsonl"),
    "batch": ("batch", "{}"),
    "doctor": ("doctor", "--cd", "{}"),
    "trust": ("trust", "--cd", "{}"),
}


@pytest.mark.parametrize("place", PLACES)
def test_paths_that_nobody_can_have(place: str, tmp_path: Path) -> None:
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    for bad in ("a" * 300, "/" + "b/" * 3000, "~nosuchuser/x", str(tmp_path / "a")):
        done = refold(*(word.format(bad) for word in PLACES[place]), cwd=tmp_path)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (1, 2, 52), (bad[:20], done.returncode, done.stderr)
        assert len([line for line in done.stderr.splitlines() if line.strip()]) >= 1


@pytest.mark.parametrize("path", ["a" * 300, "/" + "b/" * 3000, "~nosuchuser/x"])
@pytest.mark.parametrize("command", ["cat {}", 'for f in {} b; do cat "$f"; done', "cd {} && echo x > {}", "rm -rf {}"])
def test_a_command_about_one_is_judged(command: str, path: str, tmp_path: Path) -> None:
    done = refold("permissions", "explain", command.format(path, path), cwd=tmp_path)
    assert (done.returncode, done.stderr) in ((0, ""), (3, ""))
