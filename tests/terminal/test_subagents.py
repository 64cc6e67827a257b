"""Sub-agents in the chat: a quiet live line each, a block when one ends, a question that says whose it is."""

from __future__ import annotations

import os
from pathlib import Path

from tests.terminal.conftest import Chat


def bash(command: str, **more: object) -> dict[str, object]:
    return {"calls": [{"name": "bash", "arguments": {"command": command}}], **more}


def tasks(*names: str, kind: str = "explore") -> dict[str, object]:
    made = [{"description": n, "prompt": "Find it out.", "kind": kind} for n in names]
    return {"calls": [{"name": "task", "arguments": one} for one in made]}


def test_a_live_line_each_and_a_block_when_it_ends(chat: Chat) -> None:
    def part(n: int) -> list[object]:
        return [bash(f"ls; echo part {n}"), {"text": f"Report {n}.", "delay": 1.5}]

    head = {"tasks": {"look left": part(1), "look right": part(2)}}
    terminal = chat([head, tasks("look left", "look right"), "All seen."])
    terminal.type("go\r")
    terminal.wait(r"2 calls")
    terminal.wait(r"task: look left · \d.*s · 1 request · [\d,]+ tokens · thinking")
    terminal.wait(r"task: look right · \d.*s · 1 request · [\d,]+ tokens · thinking")
    terminal.wait("All seen.")
    screen = terminal.text()
    for n, name in ((1, "look left"), (2, "look right")):
        assert f"● task: {name}  " in screen
        assert f"  Report {n}.\n" in screen
    assert "2 requests, " in screen
    assert "2 calls" not in screen


def test_a_question_says_whose_it_is_and_esc_stops_all(chat: Chat, work: Path) -> None:
    head = {"tasks": {"make it": [bash("touch made.txt"), "Never said."]}}
    terminal = chat([head, tasks("make it", kind="work"), "Never said either."])
    terminal.type("go\r")
    terminal.wait(r"Run this command\? +sub-agent: make it")
    terminal.type("\x1b")
    terminal.wait("Stopped. Everything so far is kept")
    assert os.listdir(work) == []
