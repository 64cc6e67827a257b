"""A small HTTP proxy that lets confined commands out to the hosts that rules allow. It looks names up itself and
connects to the very address it has judged, so that no name can lead elsewhere a moment later."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agent.permissions.reach import Address, Reach, Refusal, private_name
from agent.sandbox.http_heads import MOST_HEAD, BadRequestError, Request, parse_answer, parse_request
from agent.sandbox.upstream import Upstream, UpstreamError, upstream_of

MOST_CONNECTIONS = 64
"""Connections at once, those of all commands of a session together. Each takes two of the files that a process may have
open: 256 on macOS, 1,024 on most Linux."""
HEAD_SECONDS = 20.0
"""How long a program may take to say what it wants."""
CONNECT_SECONDS = 20.0
"""How long looking a name up and connecting to one address may take."""
IDLE_SECONDS = 900.0
"""After which a connection is ended on which nothing has come from either side."""
_LOOKUPS = 16
"""Names that are looked up at once."""
_MOST_TURNED_AWAY = 64
"""Connections beyond those that are still told why they are not served."""
_PIECE = 65_536
_LINGER_SECONDS, _MOST_LEFT = 2.0, 4 * 1024 * 1024
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_REASONS = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Request Header Fields Too Large"}
_REASONS |= {502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _NoAnswerError(Exception):
    """What was asked for is not done; the text says why, `status` is the code of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Proxy:
    """Serves connections, each for one request. `reach` judges each host anew; `environment` names the proxy that this
    machine itself needs, if it does; `head_seconds` as HEAD_SECONDS."""

    reach: Reach
    environment: Mapping[str, str] = field(default_factory=dict)
    head_seconds: float = HEAD_SECONDS
    most: int = MOST_CONNECTIONS
    open: int = 0
    _lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LOOKUPS))

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused: Callable[[Refusal], None]
    ) -> None:
        """Answers one connection and closes it. What is refused is told to `refused`, too."""
        if self.open >= self.most + _MOST_TURNED_AWAY:
            writer.transport.abort()
            return
        self.open += 1
        try:
            if self.open > self.most:
                raise _NoAnswerError(503, "there are too many connections at once")
            await self._answer(reader, writer, refused)
        except (_NoAnswerError, BadRequestError) as error:
            with contextlib.suppress(OSError):
                await _say(reader, writer, error.status, str(error))
        except (OSError, asyncio.IncompleteReadError):
            # One of the two sides is gone or has gone silent; no end of a page may be seen in that.
            writer.transport.abort()
        finally:
            await _shut(writer)
            self.open -= 1

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused: Callable[[Refusal], None]
    ) -> None:
        request = parse_request(await self._head(reader))
        refusal = self.reach.refusal(request.host)
        upstream = None if refusal is not None or private_name(request.name) else self._upstream(request)
        there = refusal or await (self._connect(request) if upstream is None else _through(upstream, request))
        if isinstance(there, Refusal):
            refused(there)
            raise _NoAnswerError(403, there.words)
        try:
            if request.head:
                passed = request if upstream is None else replace(request, head=upstream.head(request))
                await _pass_on(passed, (reader, writer), there)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _join((reader, writer), there)
        finally:
            await _shut(there[1])

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self.head_seconds):
                return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _NoAnswerError(431, f"the head of a request has {MOST_HEAD:,} bytes at most") from None
        except TimeoutError:
            raise _NoAnswerError(408, f"the head of a request has to come within {self.head_seconds:g} s") from None

    def _upstream(self, request: Request) -> Upstream | None:
        try:
            return upstream_of(request, self.environment)
        except UpstreamError as error:
            raise _NoAnswerError(502, str(error)) from None

    async def _connect(self, request: Request) -> Streams | Refusal:
        """A connection to the host, at the first address that may be reached and answers."""
        refusal: Refusal | None = None
        failed = ""
        for address in await self._addresses(request):
            no = self.reach.address_refusal(request.host, address)
            if no is not None:
                refusal = refusal or no
                continue
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(str(address), request.port, limit=MOST_HEAD)
            except OSError as error:
                failed = failed or error.strerror or "it does not answer"
        if refusal is not None and not failed:
            return refusal
        raise _NoAnswerError(502, f"{request.host} cannot be reached: {failed or 'it has no address'}")

    async def _addresses(self, request: Request) -> list[Address]:
        """The addresses of a host, each once, in the order in which this machine prefers them."""
        with contextlib.suppress(ValueError):
            return [ipaddress.ip_address(request.name.strip("[]"))]
        try:
            async with asyncio.timeout(CONNECT_SECONDS), self._lookups:
                return await _looked_up(request.name)
        except TimeoutError:
            raise _NoAnswerError(504, f"the address of {request.name} was not found in time") from None
        except (OSError, UnicodeError):
            raise _NoAnswerError(502, f"{request.name} has no address") from None


async def _through(upstream: Upstream, request: Request) -> Streams:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await upstream.open(request)
    except UpstreamError as error:
        raise _NoAnswerError(502, str(error)) from None
    except OSError:
        raise _NoAnswerError(502, "the proxy of this machine cannot be reached") from None


async def _looked_up(name: str) -> list[Address]:
    """In a thread that nothing waits for when the program ends. Raises OSError, UnicodeError."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Address]] = loop.create_future()

    def tell(addresses: list[Address], error: Exception | None) -> None:
        if not found.done():
            found.set_exception(error) if error else found.set_result(addresses)

    def look() -> None:
        addresses: list[Address] = []
        problem: Exception | None = None
        try:
            places = [str(place[0]) for *_, place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
            addresses = list(dict.fromkeys(ipaddress.ip_address(place.partition("%")[0]) for place in places))
        except (OSError, UnicodeError) as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # nobody is there any more
            loop.call_soon_threadsafe(tell, addresses, problem)

    threading.Thread(target=look, name="refold-lookup", daemon=True).start()
    return await found


async def _pass_on(request: Request, here: Streams, there: Streams) -> None:
    """Passes on one plain request and its answer, and not a byte of what the program sends behind it."""
    there[1].write(request.head)
    body = asyncio.create_task(_pass_body(request, here[0], there[1]))
    try:
        status = 100
        while 100 <= status < 200:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    head = await there[0].readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                raise _NoAnswerError(502, f"{request.host} gave no answer") from None
            status, passed = parse_answer(head)
            here[1].write(passed)
        await _pump(there[0], here[1], _Clock())
    finally:
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)
    await _linger(here[0])


async def _pass_body(request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on the body of a request. Where it breaks off, so does the connection to the host."""
    try:
        await (_copy(reader, writer, request.length) if request.length is not None else _copy_chunks(reader, writer))
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.transport.abort()


async def _copy_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Raises ValueError for what are no chunks. What stands beside their sizes and behind the last one is left out."""
    size = -1
    while size:
        async with asyncio.timeout(IDLE_SECONDS):
            line = await reader.readuntil(b"\r\n")
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise ValueError("no chunk")
        size = int(found[1], 16)
        writer.write(b"%x\r\n" % size)
        await _copy(reader, writer, size)
        if size and await reader.readexactly(2) != b"\r\n":
            raise ValueError("no chunk")
        writer.write(b"\r\n")


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> None:
    while size:
        async with asyncio.timeout(IDLE_SECONDS):
            piece = await reader.read(min(size, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        await _write(writer, piece)


async def _write(writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(piece)
    async with asyncio.timeout(IDLE_SECONDS):
        await writer.drain()


@dataclass
class _Clock:
    """When something has last come, in seconds of the loop."""

    last: float = field(default_factory=lambda: asyncio.get_running_loop().time())


async def _join(here: Streams, there: Streams) -> None:
    """Passes on both ways until both are at their end: one side may be done and still listen."""
    clock = _Clock()
    ways = (_pump(here[0], there[1], clock), _pump(there[0], here[1], clock))
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: _Clock) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                piece = await reader.read(_PIECE)
        except TimeoutError:
            if loop.time() - clock.last < IDLE_SECONDS:
                continue
            raise
        clock.last = loop.time()
        if not piece:
            break
        await _write(writer, piece)
    with contextlib.suppress(OSError):
        writer.write_eof()


async def _say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int, text: str) -> None:
    """An answer of the proxy itself. The reason stands in the first line, too: of what refuses a tunnel, most programs
    show that alone."""
    body = f"refold: {text}.\n".encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}: {text}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    writer.write_eof()
    await _linger(reader)


async def _linger(reader: asyncio.StreamReader) -> None:
    """Reads a little of what is still sent: closing on unread bytes would take the answer away from the other side."""
    left = _MOST_LEFT
    with contextlib.suppress(OSError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while left > 0 and (piece := await reader.read(_PIECE)):
                left -= len(piece)


async def _shut(writer: asyncio.StreamWriter) -> None:
    """Closes a connection when what was written is sent, or after a while."""
    writer.close()
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()
    except asyncio.CancelledError:
        writer.transport.abort()
        raise
