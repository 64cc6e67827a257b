"""Runs the real command as a process of its own; what it prints as JSON is checked against the shipped schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.stream import valid_lines

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder of main.py."""
MAIN = CHECKOUT / "main.py"


def argv(*words: str) -> list[str]:
    """The command line of the real command, as `python main.py WORDS`."""
    return [sys.executable, str(MAIN), *words]


def refold(
    *words: str,
    cwd: Path,
    input: str | bytes | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 100,
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
    out = done.stdout.decode()
    if out.startswith('{"type": '):
        valid_lines(out)
    return subprocess.CompletedProcess(done.args, done.returncode, out, done.stderr.decode())


def script(path: Path, *answers: Any) -> str:
    """Writes a script for the scripted model; gives its --model value."""
    path.write_text("".join(json.dumps(a) + "\n" for a in answers), encoding="utf-8")
    return f"scripted:{path}"


def lines(text: str) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in text.splitlines()]
