"""One connection to a server: opened, its tools listed, calls made, closed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from agent.mcp.child import Child
from agent.version import VERSION

MOST_PAGES = 50
MOST_TOOLS = 200
"""Tools of one server that are offered; more would leave no room in the window."""


class LinkError(Exception):
    """A server that cannot be reached, or does not answer as it should; the text says what happened."""


class Link:
    """A connection that is kept by a task of its own, for what opens it must also close it. `child` is the process of a
    server that is a program; `confinement` how that is confined."""

    def __init__(
        self, streams: Callable[[], AbstractAsyncContextManager[Any]], child: Child | None, confinement: str
    ) -> None:
        self._streams, self.child, self.confinement = streams, child, confinement
        self._keeper: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._over = asyncio.Event()
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._session: Any = None
        self.tools: list[Any] = []
        self.stopped = False

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        gone = self.child is not None and self.child.ended.is_set()
        return self._session is not None and not gone and not self._over.is_set()

    async def open(self, seconds: float) -> None:
        """Connects and lists the tools. Raises LinkError; nothing is left behind then."""
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self._keeper = loop.create_task(self._keep(self._ready))
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), seconds)
        except TimeoutError:
            raise LinkError(f"it did not start within {seconds:g} s{self._complaint()}") from None
        finally:
            if self._session is None:
                self.close()

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        from mcp import ClientSession
        from mcp.types import Implementation

        try:
            async with (
                self._streams() as (read, write),
                ClientSession(read, write, client_info=Implementation(name="refold", version=VERSION)) as session,
            ):
                await _greet(session)
                self.tools = await _list(session)
                self._session = session
                if not ready.done():
                    ready.set_result(None)
                await self._until_over()
                self._session = None
        except Exception as error:  # noqa: BLE001 - whatever a server does wrong is told, and ends nothing but its link
            _fail(ready, self._words(error))
        finally:
            self._session = None
            _fail(ready, "it was stopped")

    async def _until_over(self) -> None:
        """Waits until the connection is closed from either side."""
        ends = [self._over, *([self.child.ended] if self.child else [])]
        waits = [asyncio.ensure_future(end.wait()) for end in ends]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def call(self, tool: str, args: Mapping[str, Any], seconds: float, say: Callable[[str], None]) -> Any:
        """The server's CallToolResult. Raises LinkError; where the caller is cancelled, the server is told so and not
        waited for."""
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        async def progress(done: float, total: float | None, message: str | None) -> None:
            share = f"{done:g} of {total:g}" if total else f"{done:g}"
            say(f"{message or ''} ({share})\n".lstrip())

        # Not session.call_tool: that runs patterns of the server's own schema over its answer, which can take for ever.
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(args)))
        if not self.alive:
            raise LinkError("the connection was closed")
        task = asyncio.ensure_future(self._session.send_request(request, CallToolResult, progress_callback=progress))
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            if not task.done():
                self._abandon(task)
        if not task.done():
            raise LinkError(f"it did not answer within {seconds:g} s")
        try:
            return task.result()
        except asyncio.CancelledError:
            raise LinkError("the connection was closed") from None
        except Exception as error:
            await asyncio.sleep(0)
            if self.child is None and _is_gone(error):
                self.close()
            raise LinkError(self._words(error)) from error

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        """Cancels a request beside what goes on: the word to the server may take its time."""
        self._abandoned.add(task)
        task.add_done_callback(self._forget)
        task.cancel()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # nobody waits for it any more

    def close(self, *, at_once: bool = False) -> None:
        """Ends the connection, and the process behind it; does not wait, and needs no loop. `at_once`: it is stopped in
        the middle of what it does, and `stopped` says so."""
        self.stopped = self.stopped or at_once
        if self.child is not None:
            self.child.let_go(at_once=at_once)
        keeper = self._keeper
        if keeper is not None and not keeper.done() and not keeper.get_loop().is_closed():
            self._over.set()
            if self._session is None:
                keeper.cancel()

    async def finish(self) -> None:
        """Ends the connection and waits until that is done."""
        self.close()
        if self._keeper is not None:
            await asyncio.wait([self._keeper])

    def _words(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OSError) and error.strerror:
            words = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        else:
            words = str(error).strip() or type(error).__name__
        gone = self.child is not None and self.child.gone
        return f"it has ended{self._complaint()}" if gone else words[:500]

    def _complaint(self) -> str:
        said = self.child.complaint if self.child else ""
        return f" ({said})" if said else ""


def _fail(ready: asyncio.Future[None], words: str) -> None:
    """The start has failed, if it is not over; nobody may be waiting for it any more."""
    if not ready.done():
        ready.set_exception(LinkError(words))
        ready.exception()


async def _greet(session: Any) -> None:
    """The handshake that every server knows, or, for one that knows only the newer way, that."""
    from mcp import MCPError

    try:
        await session.initialize()
    except MCPError as error:
        try:
            await session.discover()
        except Exception:  # noqa: BLE001 - the first refusal tells more
            raise error from None


async def _list(session: Any) -> list[Any]:
    from mcp.types import PaginatedRequestParams

    found: list[Any] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found += page.tools
        cursor = page.next_cursor
        if not cursor or len(found) >= MOST_TOOLS:
            break
    return found[:MOST_TOOLS]


def _is_gone(error: BaseException) -> bool:
    """Whether a service does not know this connection any more, so that the next call needs a new one."""
    code = getattr(error, "code", 0)
    return code in (-32000, -32001) or "session" in str(error).lower() or not hasattr(error, "code")


@asynccontextmanager
async def service(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server that is reached by its URL (streamable HTTP)."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers=dict(headers)) as client,
        streamable_http_client(url, http_client=client) as (read, write),
    ):
        yield read, write


def load_sdk() -> str:
    """Imports the SDK, which takes most of a second; gives one line where it is not installed, else ""."""
    with contextlib.suppress(ImportError):
        for name in ("mcp", "mcp.client.streamable_http"):
            importlib.import_module(name)
        # What it logs would be written across the chat's screen; what matters of it is in the errors.
        logging.getLogger("mcp").propagate = False
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        return ""
    return "MCP servers need what the extra `mcp` brings: pip install 'refold[mcp]'"
