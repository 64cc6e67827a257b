"""A server that is a program: started on a leash, spoken to over its standard streams, one JSON message a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

LEASH = Path(__file__).parents[1] / "leash.py"
MOST_LINE = 32 * 1024 * 1024
"""Bytes of one message; a server that says more in one is ended."""
FAREWELL = 0.3
"""Seconds a server gets to end by itself once its input is closed."""
SHOWN = 400
"""Characters of a server's complaints that are shown."""


class Child:
    """One process. `ended` is set when it says nothing more, however that came; `gone`: it went by itself."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._argv, self._env, self._cwd = list(argv), dict(env), cwd
        self._process: asyncio.subprocess.Process | None = None
        self._leash = -1
        self._said: deque[str] = deque(maxlen=20)
        self._finishing = False
        self.ended = asyncio.Event()
        self.gone = False

    async def start(self) -> None:
        """Starts it. Raises OSError."""
        read_end, self._leash = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(LEASH), str(read_end), *self._argv, cwd=self._cwd, env=self._env,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                pass_fds=(read_end,), start_new_session=True, limit=MOST_LINE,
            )  # fmt: skip
        except BaseException:
            self.let_go()
            raise
        finally:
            os.close(read_end)

    @property
    def complaint(self) -> str:
        """The last line it wrote to stderr, without frames drawn around it; "" where that is nothing."""
        lines = [re.sub(r"[\u2500-\u259f\s]+", " ", line).strip() for line in "".join(self._said).splitlines()]
        return next((line[:SHOWN] for line in reversed(lines) if line), "")

    def let_go(self, *, at_once: bool = False) -> None:
        """Ends it and all it started without waiting: TERM, and KILL half a second later, or at once. Needs no loop."""
        descriptor, self._leash = self._leash, -1
        if descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if at_once:
                os.write(descriptor, b"k")
        os.close(descriptor)

    async def finish(self) -> None:
        """Ends it and waits until it has, some seconds at most. A cancellation meanwhile, as at the end of a program,
        hurries it and is obeyed afterwards: a process that is not waited for would be left behind."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        cancelled = await self._ended(FAREWELL if self._leash >= 0 else 0)
        self.let_go()
        cancelled = await self._ended(3) or cancelled
        # Pipes that a stray child still holds would stay open with the transport, which also kills what is left.
        process._transport.close()  # type: ignore[attr-defined]
        cancelled = await self._ended(1) or cancelled
        if cancelled is not None:
            raise cancelled

    async def _ended(self, seconds: float) -> asyncio.CancelledError | None:
        """Waits for the end, at most so long; gives the cancellation that cut it short."""
        assert self._process is not None
        cancelled: asyncio.CancelledError | None = None
        deadline = time.monotonic() + seconds
        while self._process.returncode is None and time.monotonic() < deadline:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError as error:
                cancelled = error
                self.let_go(at_once=True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return cancelled

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Starts it and gives its messages as the two streams that a session of the SDK takes. Raises OSError."""
        import anyio

        await self.start()
        give, heard = anyio.create_memory_object_stream[Any](0)
        say, take = anyio.create_memory_object_stream[Any](0)
        tasks = [asyncio.create_task(work) for work in (self._hear(give), self._say(take), self._listen())]
        try:
            yield heard, say
        finally:
            self._finishing = True
            for task in tasks[1:]:
                task.cancel()
            for stream in (heard, say, give, take):
                stream.close()
            try:
                await self.finish()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self, give: Any) -> None:
        """Its messages; a line that is none (servers print what they should not) is passed over."""
        import anyio
        from mcp.shared.message import SessionMessage

        assert self._process is not None and self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                message = _message(line)
                if message is not None:
                    await give.send(SessionMessage(message))
        except ValueError:
            self._said.append("\nit sent a message that is too long")
            self.let_go(at_once=True)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self.gone = not self._finishing
            self.ended.set()
            give.close()

    async def _say(self, take: Any) -> None:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):
            async for message in take:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(text.encode() + b"\n")
                await self._process.stdin.drain()

    async def _listen(self) -> None:
        """What it writes to stderr, of which only the end is kept."""
        assert self._process is not None and self._process.stderr is not None
        while data := await self._process.stderr.read(8192):
            self._said.append(data.decode("utf-8", "replace")[-SHOWN:])


def _message(line: bytes) -> Any:
    """The message of a line; None where it is none. Text that no encoding can hold is mended: a result that is not
    understood would be waited for in vain."""
    from mcp.types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        text = json.dumps(json.loads(line.decode("utf-8", "replace")), ensure_ascii=False)
        return jsonrpc_message_adapter.validate_json(text.encode("utf-8", "replace"), by_name=False)
    except (ValueError, RecursionError):
        return None
