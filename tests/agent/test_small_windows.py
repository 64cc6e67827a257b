"""Small windows: what instructions and tools take is told, warned about, and refused with the figures."""

from __future__ import annotations

import asyncio

import pytest

from agent.models.scripted import Scripted
from agent.session import Session
from agent.settings import Settings


def opened(tmp_path, window):
    settings = Settings.load({"permission_mode": "yolo"}, {"REFOLD_HOME": str(tmp_path / "home")}, tmp_path)
    return Session.start(settings, cwd=tmp_path, model=Scripted(["hello"], window=window))


@pytest.mark.parametrize(
    ("window", "words"),
    [(200_000, None), (30_000, None), (8_000, "Instructions and tools take"), (4_000, "little is left")],
)
def test_the_floor_is_told_where_it_matters(tmp_path, window, words):
    with opened(tmp_path, window) as session:
        told = [n for n in session.notices if "Instructions and tools" in n]
    assert (told == []) if words is None else (words in told[0] and f"{window:,}" in told[0])


def test_a_window_that_has_no_room_is_refused_with_the_figures(tmp_path):
    async def turn():
        with opened(tmp_path, 1_500) as session:
            events = [e async for e in session.send("hi")]
            return events, session.engine.floor(), [e.kind for e in session.log.entries]

    events, floor, kinds = asyncio.run(turn())
    assert len(events) == 1
    assert events[0].reason == "error"
    assert events[0].kind == "config"
    assert "The window of 1,500 tokens" in events[0].message
    assert floor > 1_125
    assert [k for k in kinds if k in ("user", "request", "assistant")] == ["user"]
