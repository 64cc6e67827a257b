"""Isolation: no test reads or writes the person's own ~/.refold, keys or settings."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

KEPT = ("REFOLD_LOCAL_MODEL", "REFOLD_TEST_WEIGHTS")
for _name in [n for n in os.environ if n.startswith(("REFOLD_", "OPENAI_")) and n not in KEPT]:
    del os.environ[_name]
os.environ["REFOLD_ENV_FILE"] = ""
os.environ["REFOLD_PERMISSION_MODE"] = "ask"  # the default depends on whether the machine has a sandbox
os.environ["REFOLD_HOME"] = tempfile.mkdtemp(prefix="refold-tests-")


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
