"""The model that is always there: a small coder that runs on this machine, without a key and without a network.

xllamacpp serves it on a loopback port (llama_child.py), and openai_chat talks to it like to any other server. It writes
calls as text, so it is asked in the text protocol. It is good for small, clear jobs: one file, one function, one
command.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.models.base import ModelOptions, config_error
from agent.models.openai_chat import OpenAIChat
from agent.models.weights import Fetch, Stopped, find_weights
from runtime.events import Waiting
from runtime.model import ModelError, ModelErrorKind, ModelEvent, ModelView

WINDOW = 8192
"""Tokens; reading a full window takes about a minute and a half on two cores, and its cache 230 MB."""
OUTPUT = 1536
"""Tokens of one answer at most: a small model that has lost its way would write until the window is full."""
BATCH = 256
"""Tokens read at once: how often it can say how far it has come, and be stopped."""
TEMPERATURE = 0.2
LOADING = 120.0
"""Seconds the weights may take to load from a slow disk."""
CHILD = Path(__file__).with_name("llama_child.py")


def create(name: str, options: ModelOptions) -> Local:
    """The local model; `name` may be the path of another GGUF file. `extra` of the options: local_model (path of a
    GGUF, the setting of that name), threads, batch. Raises ModelError CONFIG where the extra is not installed or a
    named file is not there."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise config_error("The local model needs xllamacpp: install refold with its extra, refold[local].")
    named = name or str(options.extra.get("local_model") or os.environ.get("REFOLD_LOCAL_MODEL", ""))
    find_weights(options.home / "models", named)
    return Local(options, named)


class Local:
    """The built-in model. It starts with the first request, or with `prepare` while the person is typing.

    `small`, `tool_protocol` and `tool_names` tell the session how little it can be asked.
    """

    small = True
    tool_protocol = "text"
    takes_images = False
    tool_names = ("read", "write", "edit", "bash")

    def __init__(self, options: ModelOptions, named: str = "") -> None:
        self.name = "local" if not named else f"local:{Path(named).name}"
        self.window_tokens = options.window or WINDOW
        self._options = options
        self._named = named
        self._inner: OpenAIChat | None = None
        self.child: Child | None = None
        self._starting: asyncio.Lock | None = None

    @property
    def window(self) -> int:
        """The window in tokens: what the model is started with."""
        return self._inner.window if self._inner else self.window_tokens

    @property
    def window_source(self) -> str:
        """set, or built in; learned once an error has named another."""
        found = self._inner.window_source if self._inner else "set"
        return found if found == "learned" or self._options.window else "built in"

    def learn_window(self, tokens: int) -> None:
        """Takes a window that an error named."""
        if self._inner:
            self._inner.learn_window(tokens)

    async def prepare(self) -> None:
        """Starts the model if its weights are here. What fails is told by the first request."""
        with suppress(ModelError):
            if find_weights(self._folder, self._named) is not None:
                async with aclosing(self._start()) as events:
                    async for _ in events:
                        pass

    async def close(self) -> None:
        """Ends the model's process."""
        inner, self._inner = self._inner, None
        child, self.child = self.child, None
        if child is not None:
            child.end()
        if inner is not None:
            await inner.close()

    async def stream(self, view: ModelView) -> AsyncGenerator[ModelEvent]:
        """Streams the answer to one view; what it does until then comes as Waiting events."""
        async with aclosing(self._start()) as waiting:
            async for event in waiting:
                yield event
        assert self._inner is not None
        params = {"max_tokens": min(OUTPUT, self.window // 4), **view.params}
        try:
            async with aclosing(self._inner.stream(replace(view, params=params))) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            raise await self._explained(error) from error

    @property
    def _folder(self) -> Path:
        return self._options.home / "models"

    async def _explained(self, error: ModelError) -> ModelError:
        """A server that died is started again by the retry."""
        if error.kind is ModelErrorKind.NETWORK and self.child is not None and (code := self.child.code()) is not None:
            await self.close()
            return ModelError(
                ModelErrorKind.NETWORK, f"The local model's process ended (code {code}).", partial=error.partial
            )
        return error

    async def _start(self) -> AsyncGenerator[Waiting]:
        if self._inner is None and find_weights(self._folder, self._named) is not None:
            yield Waiting("loading the model")
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._inner is not None:
                return
            path = find_weights(self._folder, self._named)
            if path is None:
                async with aclosing(fetched(self._folder)) as events:
                    async for event in events:
                        yield event
                path = find_weights(self._folder)
            await self._serve(path)

    async def _serve(self, path: Path | None) -> None:
        key = secrets.token_hex(16)
        settings = {
            "path": str(path),
            "alias": "local",
            "n_ctx": self.window_tokens,
            "batch": int(self._options.extra.get("batch", BATCH)),
            "threads": int(self._options.extra.get("threads", threads())),
            "key": key,
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        self.child = child = Child(settings, self._folder)
        try:
            url = await child.address()
        except BaseException:
            self.child = None
            child.end()
            raise
        self._inner = self._client(url, key)

    def _client(self, url: str, key: str) -> OpenAIChat:
        extra = {
            "label": "local",
            "tool_protocol": "text",
            "body": {"cache_prompt": True, "return_progress": True},
        }
        options = replace(
            self._options,
            api_key=key,
            base_url=f"{url}/v1",
            window=self.window_tokens,
            temperature=TEMPERATURE if self._options.temperature is None else self._options.temperature,
            extra=extra,
        )
        inner = OpenAIChat("local", options)
        inner.name = self.name
        return inner


class Child:
    """The process that serves the model. It ends with `end`, with this object, or with this process."""

    def __init__(self, settings: Mapping[str, Any], folder: Path) -> None:
        with (folder / "local.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(CHILD), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        self.end = weakref.finalize(self, _end, self._process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    async def address(self) -> str:
        """Waits until it serves; returns the URL. Raises ModelError where it does not."""
        try:
            async with asyncio.timeout(LOADING):
                line = await self._line()
        except TimeoutError as error:
            raise ModelError(
                ModelErrorKind.TIMEOUT, f"The local model did not load within {LOADING:g} seconds."
            ) from error
        said = json.loads(line) if line.strip() else {"error": f"its process ended with code {self._process.wait()}"}
        if "url" not in said:
            raise config_error(f"The local model could not be started: {said['error']}")
        return said["url"]

    async def _line(self) -> bytes:
        """The first line of its output, read without a thread that could not be stopped."""
        assert self._process.stdout is not None
        loop, ready, said = asyncio.get_running_loop(), asyncio.Event(), b""
        handle = self._process.stdout.fileno()
        loop.add_reader(handle, ready.set)
        try:
            while not said.endswith(b"\n"):
                await ready.wait()
                ready.clear()
                piece = os.read(handle, 4096)
                if not piece:
                    break
                said += piece
        finally:
            loop.remove_reader(handle)
        return said


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def threads() -> int:
    """Threads to run on: every core up to eight, but one of them where the machine is busy already, for llama.cpp's
    threads wait for each other and two that have to share a core are ten times slower than one."""
    cores = os.cpu_count() or 2
    busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > cores
    return max(1, min(8, cores // 2 if busy else cores))


async def fetched(folder: Path, fetch: Fetch | None = None) -> AsyncGenerator[Waiting]:
    """Fetches the weights in a thread; yields how far it has come. Raises ModelError CONFIG."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Waiting | None]()
    fetch = fetch or Fetch(folder)
    fetch.progress = lambda what, done, total: _tell(loop, queue, Waiting(what, done, total))
    task = asyncio.create_task(asyncio.to_thread(fetch.run))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        fetch.stop.set()
        with suppress(Stopped, ModelError, asyncio.CancelledError):
            await asyncio.shield(task)


def _tell(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Waiting | None], event: Waiting) -> None:
    with suppress(RuntimeError):  # the loop may have ended
        loop.call_soon_threadsafe(queue.put_nowait, event)
