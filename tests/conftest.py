"""Isolation: no test reads or writes the person's own ~/.refold, keys or settings."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.replay import verify
from transcripts.log import TranscriptLog, VersionError

KEPT = ("REFOLD_LOCAL_MODEL", "REFOLD_TEST_WEIGHTS")
for _name in [n for n in os.environ if n.startswith(("REFOLD_", "OPENAI_")) and n not in KEPT]:
    del os.environ[_name]
os.environ["REFOLD_ENV_FILE"] = ""
os.environ["REFOLD_PERMISSION_MODE"] = "ask"  # the default depends on whether the machine has a sandbox
os.environ["REFOLD_HOME"] = tempfile.mkdtemp(prefix="refold-tests-")
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
    if signal.getsignal(_number) is signal.SIG_IGN:  # as nohup and a shell's & have it; commands would inherit it
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def no_litter() -> Iterator[None]:
    """Removes the home of the run at its end."""
    yield
    shutil.rmtree(os.environ["REFOLD_HOME"], ignore_errors=True)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh REFOLD_HOME for this test and every process it starts."""
    path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("REFOLD_HOME", str(path))
    return path


@pytest.fixture(autouse=True)
def every_request_comes_out_as_it_was_sent(request: pytest.FixtureRequest) -> Iterator[None]:
    """Builds every request of every session that a test made again, and compares. A module whose tests make sessions by
    hand, or damage them, says REPLAYED = False."""
    wanted = [n for n in ("tmp_path", "home") if n in request.fixturenames]
    places: list[Path] = [request.getfixturevalue(name) for name in wanted]
    yield
    if getattr(request.module, "REPLAYED", True):
        found = (path for place in places for deep in SESSIONS for path in place.glob(deep))
        assert [difference for path in found for difference in differences(path)] == []


SESSIONS = tuple(f"{'*/' * depth}sessions/*/{part}*.jsonl" for depth in range(3) for part in ("", "*.tasks/"))
"""Where a test's sessions, and their sub-agents', lie below its own folder."""


def differences(path: Path) -> list[str]:
    """What is not as it was sent in a session; [] also where its log cannot be read to the end."""
    try:
        log = TranscriptLog.open(path, readonly=True)
    except (OSError, VersionError):
        return []
    try:
        return [] if log.problems else [f"{path.name}: {found}" for found in verify(log).differences]
    finally:
        log.close()


def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: three for two processors, for half of the time a test waits for a process or a clock."""
    return max(2, 3 * (os.cpu_count() or 1) // 2)
