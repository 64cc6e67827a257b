"""A turn with hooks around it: at the beginning of a session, and when the model thinks it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from agent.extend.hooking import Hooks
from runtime.crew import Crew, Limits
from runtime.events import Event, TurnEnded
from runtime.loop import run_turn
from transcripts.log import Entry, LogWriteError
from transcripts.records import User

MOST_STOPS = 3
"""How often hooks can make one turn go on."""


async def hooked_turn(hooks: Hooks, crew: Crew, prompt: Entry | User) -> AsyncGenerator[Event, None]:
    """One turn like `run_turn`, as hooks leave it: with more context, or longer. What a hook wants said to the model at
    the end of a turn is a message of the harness."""
    try:
        if context := await hooks.begin():
            crew.engine.append(User(context, "hook"))
        ended: TurnEnded | None = None
        limits: Limits | None = crew.limits
        stops = 0
        while limits is not None:
            inner = run_turn(replace(crew, limits=limits), prompt)
            try:
                async for event in inner:
                    if isinstance(event, TurnEnded):
                        ended = _joined(ended, event)
                        continue
                    try:
                        yield event
                    except asyncio.CancelledError as stop:  # it is for the turn, which writes down that it was stopped
                        await inner.athrow(stop)
                        raise
            finally:
                await inner.aclose()
            assert ended is not None
            more = await hooks.stop(stops > 0) if ended.reason == "done" and stops < MOST_STOPS else ""
            stops += 1
            limits = _left(crew.limits, ended) if more else None
            prompt = User(more, "harness")
        assert ended is not None
        yield ended
    except LogWriteError as error:
        yield TurnEnded("error", message=str(error), kind="log")


def _joined(before: TurnEnded | None, ended: TurnEnded) -> TurnEnded:
    """One end for several parts of a turn; `usage` is that of all of them already."""
    if before is None:
        return ended
    return replace(ended, steps=before.steps + ended.steps, denials=(*before.denials, *ended.denials))


def _left(limits: Limits, ended: TurnEnded) -> Limits | None:
    """The limits of the next part: what is left of the steps; all else is counted over the whole turn anyhow. None
    where no step is left."""
    if not limits.max_steps:
        return limits
    return replace(limits, max_steps=limits.max_steps - ended.steps) if ended.steps < limits.max_steps else None
