"""Whole sessions at random over a strict server with whims; requests and folds are reckoned apart from the code."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.whimsical import whimsical
from tests.support.whole_sessions import Life, faults_of

FIRST, COUNT = (int(n) for n in os.environ.get("TEST_LIVES", "0:20").split(":"))
"""The first seed and how many sessions; set it to 1000:500 for a long run."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_session_of_everything(seed, tmp_path: Path):
    life = Life(seed, tmp_path)
    with whimsical(life.server):
        asyncio.run(life.live(14))
    assert faults_of(life) == []
