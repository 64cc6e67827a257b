"""What a one-shot run is asked: one prompt, or the lines of a conversation on standard input.

A conversation is read as it comes, also while a turn runs: messages wait for their turn, a request to stop is obeyed at
once. Its lines have the shape in wide use.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from agent.exits import Exit, Stop
from agent.headless.pipes import OutputClosed

Line = dict[str, Any]
_MOST_WAITING = 1000
"""Messages that wait; more are left in the pipe."""


@dataclass
class Said:
    """One message. `cut`: whoever said it has taken it back before its turn began."""

    text: str
    cut: bool = False


class Prompts(Protocol):
    """Where a run has its messages from."""

    def attend(self, cut_short: Callable[[], bool], answer: Callable[[Line], Awaitable[None]]) -> None:
        """Begins to listen. `cut_short` stops the message that is worked on, False where there is none; `answer`
        sends a line back."""
        ...

    async def next(self) -> Said | None:
        """The next message; None at the end. Raises Stop for a line that is none."""
        ...

    async def leave(self) -> None:
        """Listens no more."""
        ...


class Single:
    """One prompt."""

    def __init__(self, text: str) -> None:
        self._text: str | None = text

    def attend(self, cut_short: Callable[[], bool], answer: Callable[[Line], Awaitable[None]]) -> None:
        """Nothing else will be said."""

    async def next(self) -> Said | None:
        """The prompt, once."""
        text, self._text = self._text, None
        return None if text is None else Said(text)

    async def leave(self) -> None:
        """There is nothing to leave."""


class Conversation:
    """The lines of standard input, until it ends."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Said | Stop | None] = asyncio.Queue(_MOST_WAITING)
        self._unread: list[Said] = []
        self._reading: asyncio.Task[None] | None = None
        self._ended = False

    def attend(self, cut_short: Callable[[], bool], answer: Callable[[Line], Awaitable[None]]) -> None:
        """See Prompts."""
        self._reading = asyncio.create_task(self._read(cut_short, answer))

    async def next(self) -> Said | None:
        """See Prompts."""
        if self._ended:
            return None
        said = await self._waiting.get()
        if isinstance(said, Said):
            self._unread.remove(said)
            return said
        self._ended = True
        if said is not None:
            raise said
        return None

    async def leave(self) -> None:
        """See Prompts."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def _read(self, cut_short: Callable[[], bool], answer: Callable[[Line], Awaitable[None]]) -> None:
        end: Stop | None = None
        try:
            rest = b""
            while data := await _more_input():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    await self._take(line, cut_short, answer)
            await self._take(rest, cut_short, answer)
        except Stop as stop:
            end = stop
        except OutputClosed:
            pass  # the turn that runs, or the next, finds out as well and says so
        except OSError as error:
            end = Stop(Exit.USAGE, f"standard input cannot be read: {error.strerror or error}")
        await self._waiting.put(end)

    async def _take(
        self, line: bytes, cut_short: Callable[[], bool], answer: Callable[[Line], Awaitable[None]]
    ) -> None:
        if not line.strip():
            return
        value = _value(line)
        if isinstance(value, dict) and value.get("type") == "control_request":
            await answer(self._obey(value, cut_short))
        elif not isinstance(value, dict) or value.get("type") not in ("keep_alive", "control_cancel_request"):
            said = Said(user_text(line))
            self._unread.append(said)
            await self._waiting.put(said)

    def _obey(self, value: Line, cut_short: Callable[[], bool]) -> Line:
        """Does what a control request asks for; gives the response. It stops what was said before it, and no more."""
        request, ident = value.get("request"), value.get("request_id")
        kind = request.get("subtype") if isinstance(request, dict) else None
        if kind != "interrupt":
            problem = f"refold knows no control request {kind!r} here; it knows 'interrupt'"
            return _response({"subtype": "error", "request_id": ident, "error": problem})
        if not cut_short() and (waiting := next((s for s in self._unread if not s.cut), None)):
            waiting.cut = True
        return _response({"subtype": "success", "request_id": ident})


def _response(response: Line) -> Line:
    return {"type": "control_response", "response": response}


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def user_text(line: bytes) -> str:
    """The text of one line {"type": "user", "message": {"content": ...}}. Raises Stop(USAGE)."""
    try:
        content = json.loads(line)["message"]["content"]
        text = content if isinstance(content, str) else "\n".join(b["text"] for b in content if b["type"] == "text")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Stop(Exit.USAGE, f"a line of stream-json input is no user message: {line[:200]!r} ({error})") from None
    if not text.strip():
        raise Stop(Exit.USAGE, f"a line of stream-json input has no text: {line[:200]!r}")
    return text


async def _more_input() -> bytes:
    """Bytes of standard input as soon as there are some, b"" at its end; the loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    try:
        loop.add_reader(0, lambda: ready.done() or ready.set_result(None))
    except PermissionError:  # a regular file is always ready, and epoll does not take it
        return os.read(0, 1 << 16)
    try:
        await ready
    finally:
        loop.remove_reader(0)
    return os.read(0, 1 << 16)
