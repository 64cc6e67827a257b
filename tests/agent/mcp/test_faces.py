"""MCP servers behind the faces: the chat on a real terminal, and a session for programs that are not async."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

from agent.models.scripted import Scripted
from agent.plain import Plain
from agent.session import Session
from agent.settings import Settings
from runtime.events import ToolFinished
from tests.support.mcp_desk import HELPER, call, entry
from tests.support.processes import gone
from tests.support.screen import Terminal
from tests.terminal.conftest import MAIN, environment, logged


def configured(home: Path, **servers: object) -> None:
    home.mkdir(exist_ok=True)
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_the_chat_starts_servers_stops_a_call_and_ends_them_with_itself(tmp_path: Path) -> None:
    work, home, mark = tmp_path / "work", tmp_path / "home", str(tmp_path / "mark")
    work.mkdir()
    configured(home, helper=entry("mcp_server", mark), gone={"command": "no-such-program"})
    script = tmp_path / "s.jsonl"
    wait = call("helper__wait", seconds=60, mark=str(work / "late"))
    script.write_text("\n".join(map(json.dumps, [call("helper__add", a=20, b=3), {"text": "it is 23"}, wait])))
    words = [sys.executable, str(MAIN), "--model", f"scripted:{script}", "--permission-mode", "yolo"]
    with Terminal(words, env=environment(home), cwd=work, rows=40, columns=110) as terminal:
        terminal.wait("^›|^>")
        terminal.type("/mcp\r")
        terminal.wait("helper +starts with your first message")
        terminal.type("go\r")
        terminal.wait("Starting MCP servers: helper, gone")
        terminal.wait("The MCP server gone is left out: it has ended")
        terminal.wait("helper/add a: 20, b: 3")
        terminal.wait("it is 23")
        terminal.type("/mcp\r")
        terminal.wait("helper +connected +9")
        terminal.type("wait\r")
        terminal.wait("half")
        terminal.type("\x1b")
        terminal.wait("stopped")
        terminal.type("\x04")
        assert terminal.ended() == 0
    assert "Traceback" not in bytes(terminal.raw).decode("utf-8", "replace")
    assert [r["text"] for r in logged(home, "tool_result")] == ["23"]
    assert gone(mark)


def test_a_plain_session_ends_its_servers_with_itself(tmp_path: Path) -> None:
    home, mark = tmp_path / "home", str(tmp_path / "mark")
    configured(home, helper={**HELPER, "args": [*HELPER["args"], mark]})
    settings = Settings.load({"permission_mode": "yolo"}, {"REFOLD_HOME": str(home)}, tmp_path)
    model = Scripted([call("helper__add", a=1, b=2), "three", call("helper__add", a=1, b=3), "four"])
    with Plain(Session.start(settings, cwd=tmp_path, model=model)) as talk:
        events = [*talk.send("go"), *talk.send("go on")]
    gc.collect()
    assert [e.result.text for e in events if isinstance(e, ToolFinished)] == ["3", "4"]
    assert gone(mark)
