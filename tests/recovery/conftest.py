"""One real session for all tests that damage one: it reads, writes, runs, folds; some 270 KB."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.events import Compacted
from tests.support.damage import Victim
from tests.support.lived import FAST, live, work_of


@pytest.fixture(scope="session")
def lived() -> Iterator[Path]:
    """The log of that session, in a folder where writing is quick."""
    folder = Path(tempfile.mkdtemp(prefix="refold-lived-", dir=FAST))
    steps, prompts = work_of(30)
    path, events = live(folder, steps, prompts, window=16_000, summarise="false")
    assert sum(isinstance(e, Compacted) for e in events) >= 2
    assert path.stat().st_size > 200_000
    yield path
    shutil.rmtree(folder)


@pytest.fixture
def victim(lived: Path) -> Iterator[Victim]:
    """That session, to be damaged in a scratch file."""
    folder = Path(tempfile.mkdtemp(prefix="refold-victim-", dir=FAST))
    yield Victim(lived, folder / lived.name)
    shutil.rmtree(folder)
