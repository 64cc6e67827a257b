"""Who closes a session closes its model: with an event loop, without one, and when the model is changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent.models.scripted import Scripted
from agent.session import Session
from tests.support.command import script
from tests.support.lived import settings


class Counted(Scripted):
    """Counts how often it was closed; closing takes a while, as a connection's does."""

    closed = 0

    async def close(self) -> None:
        await asyncio.sleep(0.01)
        self.closed += 1


def started(folder: Path, model: Counted) -> Session:
    return Session.start(settings(folder / "home"), cwd=folder, model=model)


def test_without_an_event_loop(tmp_path: Path) -> None:
    model = Counted([])
    started(tmp_path, model).close()
    assert model.closed == 1


def test_in_an_event_loop_it_is_closed_beside_what_goes_on(tmp_path: Path) -> None:
    model = Counted([])

    async def run() -> int:
        started(tmp_path, model).close()
        at_once = model.closed
        await asyncio.sleep(0.1)
        return at_once

    assert (asyncio.run(run()), model.closed) == (0, 1)


def test_finish_waits_for_it_and_for_those_that_were_left(tmp_path: Path) -> None:
    model = Counted([])

    async def run() -> None:
        session = started(tmp_path, model)
        session.use_model(script(tmp_path / "other.jsonl", {"text": "hi"}))
        assert session.model is not model
        await session.finish()
        assert model.closed == 1
        session.close()

    asyncio.run(run())


def test_changing_the_model_without_an_event_loop_closes_the_old_one(tmp_path: Path) -> None:
    model = Counted([])
    with started(tmp_path, model) as session:
        session.use_model(script(tmp_path / "other.jsonl", {"text": "hi"}))
        assert model.closed == 1
