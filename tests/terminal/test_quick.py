"""What makes the chat quick, as facts that do not depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.terminal.conftest import Chat

ROOT = Path(__file__).resolve().parents[2]


def test_the_prompt_needs_neither_engine_nor_renderer_nor_sdk() -> None:
    """What is imported before the first frame: measured, the rest costs twice as much."""
    code = "import sys, agent.cli.chat, agent.terminal.app; print('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    late = {
        "openai",
        "rich",
        "markdown_it",
        "pygments",
        "agent.session",
        "agent.models",
        "runtime.events",
        "tools.base",
    }
    assert loaded & late == set()


def test_the_live_lines_stay_few_whatever_streams(chat: Chat) -> None:
    """A paragraph without end is live at its end only, and is printed whole when it is over."""
    terminal = chat([{"text": "word " * 900, "stream_delay": 0.001}], columns=60, rows=30)
    terminal.type("go\r")
    terminal.wait("Esc stops")
    terminal.wait("word word")
    above = terminal.scrollback().partition("› go")[2]
    assert above.count("\n") < 22
    terminal.wait_gone("Esc stops", 60)
    terminal.settle()
    assert terminal.scrollback().count("word") == 900


def test_what_is_idle_writes_nothing(chat: Chat) -> None:
    terminal = chat()
    terminal.settle(0.3)
    before = len(terminal.raw)
    terminal.settle(1.0)
    assert len(terminal.raw) == before


def test_while_it_waits_only_the_spinner_moves(chat: Chat) -> None:
    """A model that says nothing for a second costs a few hundred bytes, which matters over ssh."""
    terminal = chat([{"text": "late", "delay": 1.5}])
    terminal.type("go\r")
    terminal.wait("Esc stops")
    before = len(terminal.raw)
    terminal.wait("^late")
    assert len(terminal.raw) - before < 3000
