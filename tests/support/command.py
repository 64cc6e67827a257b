"""Runs the real command as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
MAIN = CHECKOUT / "main.py"


def argv(*words: str) -> list[str]:
    """The command line of the real command, as `python main.py WORDS`."""
    return [sys.executable, str(MAIN), *words]


def refold(
    *words: str,
    cwd: Path,
    input: str | bytes | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end; without `input` standard input is closed at once. Output is decoded as UTF-8."""
    data = input.encode() if isinstance(input, str) else input
    done = subprocess.run(
        argv(*words),
        cwd=cwd,
        input=data or b"",
        capture_output=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def script(path: Path, *answers: Any) -> str:
    """Writes a script for the scripted model; gives its --model value."""
    path.write_text("".join(json.dumps(a) + "\n" for a in answers), encoding="utf-8")
    return f"scripted:{path}"


def lines(text: str) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


def says(answers: Sequence[Any]) -> list[Any]:
    """The answers as a list (for tests that build them)."""
    return list(answers)
