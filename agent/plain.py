"""A session for programs that are not async: the same events from a plain iterator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from agent.session import Session
from runtime.events import Event, TurnEnded


class Plain:
    """Drives one session from ordinary code, in this thread; it must not be used where an event loop runs already.

    A context manager; `close` closes the session too.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._loop = asyncio.new_event_loop()

    def send(self, text: str) -> Iterator[Event]:
        """The events of one turn as they come; the last is TurnEnded. A caller that stops early stops the turn, and
        what came is kept."""
        box: asyncio.Queue[Event | None] = asyncio.Queue(1)
        task = self._loop.create_task(_pump(self.session.send(text), box))
        try:
            while (event := self._loop.run_until_complete(box.get())) is not None:
                yield event
            self._loop.run_until_complete(task)
        finally:
            if not task.done():
                self.session.interrupt()
                self._loop.run_until_complete(_drained(task, box))

    def ask(self, text: str) -> TurnEnded:
        """Runs one turn to its end; the answer is its `text`."""
        ended = TurnEnded("interrupted")
        for event in self.send(text):
            if isinstance(event, TurnEnded):
                ended = event
        return ended

    def close(self) -> None:
        """Ends session, model and loop."""
        self._loop.run_until_complete(self.session.finish())
        self._loop.run_until_complete(self.session.servers.finish())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.session.close()

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _pump(events: AsyncIterator[Event], box: asyncio.Queue[Event | None]) -> None:
    """Hands over one event at a time: the turn goes no further than it is looked at."""
    try:
        async for event in events:
            await box.put(event)
    finally:
        await box.put(None)


async def _drained(task: asyncio.Task[None], box: asyncio.Queue[Event | None]) -> None:
    while not task.done():
        getter = asyncio.ensure_future(box.get())
        await asyncio.wait((task, getter), return_when=asyncio.FIRST_COMPLETED)
        getter.cancel()
