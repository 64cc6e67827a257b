"""Small programming tasks, where they lie beside the checkout: a model that knows the answer gets every one right
through the real loop and the real tools, and one that leaves the stub as it is gets none."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.models.scripted import Scripted
from agent.session import Session
from agent.settings import Settings
from runtime.events import ToolFinished, TurnEnded

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "exercism.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.is_file() else []


def script(row: dict[str, Any], files: dict[str, str]) -> list[dict[str, Any]]:
    """Reads all files, writes them, runs the tests."""
    tests = row["expected"]["test_cmd"].replace("python ", f"{sys.executable} ", 1)
    return [
        {"calls": [{"name": "read", "arguments": {"path": name}} for name in files]},
        {"calls": [{"name": "write", "arguments": {"path": n, "content": c}} for n, c in files.items()]},
        {"calls": [{"name": "bash", "arguments": {"command": tests}}]},
        {"text": "Done."},
    ]


async def played(session: Session, prompt: str) -> list[tuple[str, str]]:
    """(tool, status) of every call, and how the turn ended."""
    said: list[tuple[str, str]] = []
    async for event in session.send(prompt):
        if isinstance(event, ToolFinished):
            said.append((event.result.name, event.result.status))
        if isinstance(event, TurnEnded):
            said.append(("end", event.reason))
    return said


@pytest.mark.parametrize("which", ["reference", "stub"])
@pytest.mark.parametrize("row", ROWS, ids=[r["id"] for r in ROWS])
def test_task(tmp_path, home, row, which):
    given, expected = row["input"], row["expected"]
    for name, text in {**given["stub"], **given.get("extra", {}), **expected["tests"]}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    files = expected["reference"] if which == "reference" else given["stub"]
    settings = Settings.load({"permission_mode": "yolo"})
    with Session.start(settings, cwd=tmp_path, model=Scripted(script(row, files))) as session:
        said = asyncio.run(played(session, given["prompt"]))
    passed = "ok" if which == "reference" else "error"
    assert [s for s in said if s[0] != "read"] == [("write", "ok")] * len(files) + [("bash", passed), ("end", "done")]
