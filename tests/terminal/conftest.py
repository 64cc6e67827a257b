"""A chat on a real pseudo-terminal, with a scripted model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.screen import Terminal

MAIN = Path(__file__).resolve().parents[2] / "main.py"
Chat = Callable[..., Terminal]


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a person's terminal says of itself, and nothing of the machine that runs the tests."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")}
    base = {
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "SHELL": "/bin/bash",
        "REFOLD_ENV_FILE": "",
        "EDITOR": "true",
        "REFOLD_PERMISSION_MODE": "ask",
    }
    return {**kept, **base, "REFOLD_HOME": str(home), **more}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder the agent works in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def words(tmp_path: Path) -> Callable[..., list[str]]:
    """The command line of a chat whose model plays these answers."""

    def make(answers: Sequence[Any], *flags: str) -> list[str]:
        script = tmp_path / "script.jsonl"
        script.write_text("\n".join(json.dumps(a) for a in answers), encoding="utf-8")
        return [sys.executable, str(MAIN), "--model", f"scripted:{script}", *flags]

    return make


@pytest.fixture
def chat(home: Path, work: Path, words: Callable[..., list[str]]) -> Iterator[Chat]:
    """Starts a chat and waits for its prompt."""
    with ExitStack() as stack:

        def start(
            answers: Sequence[Any] = (), *flags: str, columns: int = 80, rows: int = 24, env: Mapping[str, str] = {}
        ) -> Terminal:
            terminal = Terminal(
                words(answers, *flags), columns=columns, rows=rows, env=environment(home, **env), cwd=work
            )
            stack.callback(terminal.close)
            terminal.wait(r"^›|^>")
            terminal.wait("^(plan|ask|edits|auto|yolo)")
            return terminal

        yield start


def logged(home: Path, kind: str) -> list[dict[str, Any]]:
    """All records of a kind in the only session there is."""
    (path,) = (home / "sessions").glob("*/*.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == kind]
