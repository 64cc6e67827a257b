"""A program that lives longer than a call (an MCP server, a hook) is confined as the mode says: it really tries."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from agent.safety import Safety
from agent.sandbox import RUNGS, Sandbox
from agent.settings import Settings

PRESENT = [rung.kind for rung in RUNGS if not rung.why_not()]

SERVER = """
import json, socket, sys
def attempt(what):
    try:
        if what[0] == "write": open(what[1], "w").write("x")
        if what[0] == "read": open(what[1]).read()
        if what[0] == "connect": socket.create_connection((what[1], what[2]), 1)
        return "done"
    except OSError as error:
        return type(error).__name__
for line in sys.stdin:
    print(json.dumps(attempt(json.loads(line))), flush=True)
"""


@pytest.mark.parametrize("mode", ["auto", "plan"] if PRESENT else [])
def test_a_server_started_for_a_session_reaches_nothing_it_should_not(tmp_path, mode, monkeypatch):
    work, home, outside = tmp_path / "ws", tmp_path / "home", tmp_path / "outside"
    for folder in (work, tmp_path / "temp", home / ".refold", home / ".ssh", outside):
        folder.mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("the private key")
    (home / ".refold" / ".env").write_text("SOME_API_KEY=x")
    monkeypatch.setenv("HOME", str(home))
    settings = Settings.load({"permission_mode": mode}, {"REFOLD_HOME": str(home / ".refold")}, work)
    safety = Safety(settings, work)
    safety.sandbox = Sandbox(work, home / ".refold", temporary=[tmp_path / "temp"])
    argv = safety.wrap_child([sys.executable, "-I", "-c", SERVER], work)
    attempts = [
        ["write", str(work / "mine.txt")],
        ["write", str(outside / "theirs.txt")],
        ["read", str(home / ".ssh" / "id_ed25519")],
        ["read", str(home / ".refold" / ".env")],
        ["connect", "192.0.2.1", 80],
    ]
    lines = "".join(json.dumps(a) + "\n" for a in attempts)
    done = subprocess.run(argv, cwd=work, input=lines, capture_output=True, text=True, timeout=30, env=safety.env)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(attempts), done.stderr
    assert results[0] == ("done" if mode == "auto" else results[0])
    assert "done" not in results[1:]
    assert (work / "mine.txt").exists() == (mode == "auto")
    assert not (outside / "theirs.txt").exists()
