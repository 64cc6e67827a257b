"""The built-in model itself, ten times each: `make test-model`. It needs its weights and some minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import argv, refold

RUNS = int(os.environ.get("REFOLD_TEST_RUNS", "10"))
GOOD = RUNS - RUNS // 10
"""Of ten runs nine have to succeed."""
GREETINGS = ("hello", "hello, world", "hello world")


@pytest.mark.real_model
@pytest.mark.timeout(3600)
def test_hello(tmp_path: Path) -> None:
    good = 0
    for n in range(RUNS):
        folder = tmp_path / str(n)
        folder.mkdir()
        task = "Create hello.py that prints hello, then run it"
        done = refold("-p", task, "--model", "local", "--yolo", cwd=folder, timeout=600)
        said = subprocess.run([sys.executable, "hello.py"], cwd=folder, capture_output=True, text=True)
        good += done.returncode == 0 and said.stdout.strip().lower().rstrip("!.") in (
            "hello",
            "hello, world",
            "hello world",
        )
        print(n, done.returncode, said.stdout.strip(), done.stderr.strip().splitlines()[-1:], flush=True)
    assert good >= GOOD


@pytest.mark.real_model
@pytest.mark.timeout(3600)
def test_the_demo(tmp_path: Path) -> None:
    good = 0
    for n in range(RUNS):
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run(
            argv("demo"), cwd=tmp_path, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        good += done.returncode == 0
        print(n, done.returncode, done.stderr.strip().splitlines()[-1:], flush=True)
    assert good >= GOOD
