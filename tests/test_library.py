"""refold embedded in another program: async, and as a plain iterator."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.plain import Plain
from agent.session import Session
from agent.settings import Settings
from runtime.events import AnswerRecorded, TextDelta, ToolFinished, TurnEnded
from tests.support.command import CHECKOUT, script

CALL = {"text": "I write.", "calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "a\n"}}]}


@pytest.fixture
def session(tmp_path: Path, home: Path) -> Session:
    """A session in an empty folder whose model writes a file and is done."""
    model = script(tmp_path / "script.jsonl", CALL, {"text": "Done."}, {"text": "Again."})
    work = tmp_path / "work"
    work.mkdir()
    return Session.start(Settings.load({"model": model, "permission_mode": "yolo"}), cwd=work)


def test_as_a_plain_iterator(session: Session) -> None:
    with Plain(session) as talk:
        found = [
            type(e).__name__ for e in talk.send("Write it") if isinstance(e, (AnswerRecorded, ToolFinished, TurnEnded))
        ]
        again = talk.ask("More")
    assert found == ["AnswerRecorded", "ToolFinished", "AnswerRecorded", "TurnEnded"]
    assert (again.reason, again.text) == ("done", "Again.")
    assert (session.cwd / "a.txt").read_text() == "a\n"


def test_a_caller_that_stops_early_stops_the_turn(session: Session) -> None:
    with Plain(session) as talk:
        for event in talk.send("Write it"):
            if isinstance(event, TextDelta):
                break
        assert not (session.cwd / "a.txt").exists()
        assert talk.ask("Go on").reason == "done"


def test_async(session: Session) -> None:
    async def body() -> list[str]:
        return [e.reason async for e in session.send("Write it") if isinstance(e, TurnEnded)]

    with session:
        assert asyncio.run(body()) == ["done"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder from which `import refold` finds the checkout, as an installation would be found."""
    path = tmp_path / "site"
    path.mkdir()
    (path / "refold").symlink_to(CHECKOUT)
    return path


def python(code: str, place: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


def test_from_refold_import(place: Path, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Done."})
    code = (
        "from pathlib import Path\nfrom refold import Plain, Session, Settings, events\n"
        f"with Plain(Session.start(Settings.load({{'model': {model!r}}}), cwd=Path('.'))) as talk:\n"
        "    print([e.text for e in talk.send('x') if isinstance(e, events.TurnEnded)])\n"
    )
    done = python(code, place, tmp_path)
    assert (done.stdout, done.returncode) == ("['Done.']\n", 0), done.stderr


def test_importing_the_package_costs_nothing(place: Path, tmp_path: Path) -> None:
    code = "import refold, sys; print([m for m in ('agent', 'asyncio', 'openai', 'dataclasses') if m in sys.modules])"
    assert python(code, place, tmp_path).stdout == "[]\n"


def test_a_program_with_a_package_of_our_name_is_told(place: Path, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("")
    code = "import tools\ntry:\n    from refold import Session\nexcept ImportError as error:\n    print(error)"
    assert "a package named 'tools', and so has this program" in python(code, place, tmp_path).stdout
