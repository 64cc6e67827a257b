"""`refold demo`: first for real, with a real model; then the recorded tour. Both check their result by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent.cli.common import told
from agent.demo.show import Show
from agent.demo.tour import tests, tour
from agent.edges import interruptible
from agent.exits import Exit, Stop
from agent.settings import CHECKOUT, Settings
from transcripts.catalog import list_sessions

TASK = (
    "Write the file leap.py with a function is_leap(year) that returns True for leap years and False for others. "
    "A year is a leap year if it is divisible by 4, but not by 100, unless it is divisible by 400. "
    "Then run: python3 -m unittest"
)
TEST = """import unittest

from leap import is_leap


class LeapTest(unittest.TestCase):
    def test_years(self):
        found = [year for year in (1900, 1996, 1999, 2000, 2023, 2024, 2100, 2400) if is_leap(year)]
        self.assertEqual(found, [1996, 2000, 2024, 2400])


if __name__ == "__main__":
    unittest.main()
"""
PATIENCE = 900
"""Seconds the real model gets; on two cores the built-in one needs about ten, and its first start some more."""


def demo(values: dict[str, Any]) -> int:
    """Runs the demo; 0 where everything it promises was seen."""
    with interruptible():
        return told(lambda: _demo(values))


def _demo(values: dict[str, Any]) -> int:
    show = Show()
    scratch = Path(tempfile.mkdtemp(prefix="refold-demo-"))
    if not values["recorded"]:
        _real(scratch, values["model"], show)
    if not tour(scratch, show):
        raise Stop(Exit.FAILED, f"the tour did not show everything it promises; look at {scratch}")
    return 0


def _real(scratch: Path, model: str | None, show: Show) -> None:
    settings = Settings.load({"model": model}, os.environ)
    spec = settings.model or "local"
    folder = scratch / "project"
    folder.mkdir()
    (folder / "test_leap.py").write_text(TEST, encoding="utf-8")
    show.heading("For real: a model writes a module that a test is waiting for")
    show.fact("model", spec if settings.model else "local (none is configured): small, for small and clear jobs")
    show.fact("folder", str(folder))
    show.fact("test before", _verdict(tests(folder)))
    show.line(f"you: {TASK}")
    argv = [sys.executable, str(CHECKOUT / "main.py"), "-p", "--model", spec, "--yolo", "--bare"]
    argv += ["--require-check", f"{sys.executable} -m unittest", "--timeout", str(PATIENCE), "--max-turns", "24", TASK]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL)
    after = tests(folder)
    show.heading("Checked by this command, not by the model")
    show.fact("test after", _verdict(after))
    show.fact(
        "transcript", next((str(s.path) for s in list_sessions(settings.home, Path(os.path.realpath(folder)))), "none")
    )
    if done.returncode == Exit.NO_MODEL or done.returncode == Exit.CONFIG:
        raise Stop(Exit(done.returncode), "the model could not be started; `refold demo --recorded` needs none")
    if done.returncode or not after[0]:
        raise Stop(Exit.FAILED, f"the model did not do the job (exit code {done.returncode}); look at {folder}")
    show.fact("leap.py", f"{len((folder / 'leap.py').read_text().splitlines())} lines, written by the model")


def _verdict(result: tuple[bool, str]) -> str:
    return f"{'pass' if result[0] else 'FAIL'}: {result[1]}"
