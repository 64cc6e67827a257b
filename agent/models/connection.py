"""One way to a server: the SDK's client, opened late, closed surely, with every failure made a ModelError."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from agent.faults import reason
from agent.models.base import ModelOptions, config_error
from runtime.errors import classify_model_error
from runtime.model import ModelError, ModelErrorKind
from transcripts.records import clean

K = ModelErrorKind
CONNECT = 20.0
"""Seconds to connect: far more than a handshake over a bad line, far less than a stalled answer may take."""

Opener = Callable[[Any, Mapping[str, Any]], Any]
"""(client, body) -> the SDK's context manager of a streamed response."""


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine."""
    host = (urlsplit(url).hostname or "").lower()
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.") or host.endswith(".localhost")


Failures = Callable[[], contextlib.AbstractContextManager[None]]
"""Makes ModelErrors of the SDK's errors in the block."""


class Response:
    """A response that is being read."""

    def __init__(self, chunks: AsyncIterator[bytes], timeout: float, failures: Failures) -> None:
        self._chunks = chunks
        self.timeout = timeout
        self._failures = failures

    async def read(self, limit: float | None = None) -> bytes:
        """The next bytes; b"" at the end. Raises ModelError: TIMEOUT after `limit` seconds of silence, NETWORK where
        the connection breaks."""
        limit = self.timeout if limit is None else limit
        try:
            with self._failures():
                async with asyncio.timeout(limit):
                    return await anext(self._chunks, b"")
        except TimeoutError as error:
            raise ModelError(K.TIMEOUT, f"The server stalled: nothing came for {limit:g} seconds.") from error


class Connection:
    """Requests to one base URL. Use from one event loop at a time; a new loop gets a new client.

    Raises ModelError CONFIG where the URL is none.
    """

    def __init__(self, base_url: str, options: ModelOptions) -> None:
        self.base_url = _checked(base_url.strip()).rstrip("/")
        self.options = options
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def warm(self) -> None:
        """Imports the SDK in a thread, so that the first request need not wait for it and the terminal stays alive."""
        if "openai" not in sys.modules:
            await asyncio.to_thread(_sdk)
            gc.freeze()  # some 60,000 objects that stay: looking for garbage among them would hold up a key

    async def close(self) -> None:
        """Closes idle connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    @contextlib.asynccontextmanager
    async def open(self, opener: Opener, body: Mapping[str, Any]) -> AsyncIterator[Response]:
        """Sends the body and gives the response once its head is there. Raises ModelError."""
        await self.warm()
        async with contextlib.AsyncExitStack() as stack:
            with self._failures():
                raw = await self._send(stack, opener, body)
            yield Response(raw.iter_bytes(), self.options.timeout, self._failures)

    async def _send(self, stack: contextlib.AsyncExitStack, opener: Opener, body: Mapping[str, Any]) -> Any:
        seconds = self.options.timeout
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await stack.enter_async_context(opener(self._live_client(), body))
                except UnicodeEncodeError:
                    return await stack.enter_async_context(opener(self._live_client(), _cleaned(body)))
        except TimeoutError as error:
            word = f"The server stalled: it took the request and did not begin to answer within {seconds:g} seconds."
            raise ModelError(K.TIMEOUT, word) from error

    def _live_client(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop, self._client = loop, self._new_client()
        return self._client

    def _new_client(self) -> Any:
        openai, httpx = _sdk()
        seconds = self.options.timeout
        timeout = httpx.Timeout(seconds + 5, connect=CONNECT)
        direct = {"http_client": openai.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout)}
        return openai.AsyncOpenAI(
            api_key=self.options.api_key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=timeout,
            **(direct if is_loopback(self.base_url) else {}),
        )

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        openai, httpx = _sdk()
        try:
            yield
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except (openai.APIConnectionError, httpx.TransportError, httpx.StreamError) as error:
            raise self._unreached(error, httpx) from error

    def _refused(self, error: Any) -> ModelError:
        response = error.response
        found = classify_model_error(response.status_code, body=response.content, headers=dict(response.headers))
        return self.explained(found)

    def explained(self, error: ModelError) -> ModelError:
        """The error with what only we know: where the key came from, which URL was asked."""
        words = error.message
        if error.kind is K.AUTH:
            source = self.options.api_key_source
            words += f" (the key came from {source})" if source else " (no key was sent; set OPENAI_API_KEY)"
            words = words if not source or self.options.api_key else f"{error.message} ({source} is empty)"
        elif error.kind is K.NOT_FOUND:
            words += f" (asked: {self.base_url})"
        error.message, error.args = words, (words,)
        return error

    def _unreached(self, error: Exception, httpx: Any) -> ModelError:
        causes = list(_chain(error))
        said = next((reason(c) for c in reversed(causes) if str(c)), type(causes[-1]).__name__)
        if any(isinstance(c, ssl.SSLCertVerificationError) for c in causes):
            return ModelError(K.CONFIG, f"The certificate of {self.base_url} was not accepted: {said}")
        if any(isinstance(c, httpx.ConnectTimeout) for c in causes):
            return ModelError(K.TIMEOUT, f"{self.base_url} did not accept a connection within {CONNECT:g} seconds.")
        if any(isinstance(c, httpx.ConnectError) for c in causes):
            return ModelError(K.NETWORK, f"Cannot connect to {self.base_url}: {said}")
        if any(isinstance(c, httpx.TimeoutException) for c in causes):
            return ModelError(K.TIMEOUT, f"The server stalled: {said}")
        return ModelError(K.NETWORK, f"The connection to {self.base_url} broke: {said}")


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise config_error(f"The base URL {url!r} cannot be used: it has to begin with http:// or https:// and a host.")
    return url


def _sdk() -> tuple[Any, Any]:
    import httpx2
    import openai

    return openai, httpx2


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _cleaned(value: Any) -> Any:
    """The value without lone surrogates, which the wire cannot carry."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(k): _cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(v) for v in value]
    return value
