"""Doors: for each confined command a way out to the hosts that rules allow, kept by a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agent.permissions.reach import Reach, Refusal
from agent.sandbox.http_heads import MOST_HEAD
from agent.sandbox.proxy import HEAD_SECONDS, Proxy
from transcripts.files import private_folder

WAIT_SECONDS = 60.0
"""How long a command may take to begin; one that could not be started leaves its door waiting no longer."""
MOST_TOLD = 20
"""Hosts of one command whose refusal is remembered."""
_KEPT = 200
"""Doors whose refusals are remembered, the newest."""


@dataclass
class Door:
    """The way out of one command: the socket that is bound into its sandbox, or the address of the proxy where a
    sandbox has no network of its own; the names that it means its own loopback by; and what it was refused since that
    was last told."""

    path: str
    direct: str
    refused: dict[str, Refusal] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def note(self, refusal: Refusal) -> None:
        """Remembers a refusal; of a host each once."""
        if refusal.host not in self.told and len(self.told) < MOST_TOLD:
            self.told.add(refusal.host)
            self.refused[refusal.host] = refusal

    def tell(self) -> list[str]:
        """What was refused and not told yet, one line each."""
        refused, self.refused = self.refused, {}
        return [f"[{refusal.words}]" for refusal in refused.values()]


class Doors:
    """The doors of one session. Its thread and its folder below `home` are made with the first one. `environment`
    names the proxy that this machine itself needs, if it does; `head_seconds`: how long a program may take to say what
    it wants."""

    def __init__(
        self, home: str, reach: Reach, environment: Mapping[str, str] | None = None, head_seconds: float = HEAD_SECONDS
    ) -> None:
        self.reach = reach
        self._home = Path(home) / "net"
        self._proxy = Proxy(reach, environment or {}, head_seconds)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._folder: Path | None = None
        self._handle = -1
        self._count = 0
        self._known: dict[str, Door] = {}
        self._shared: Door | None = None
        self.held: set[asyncio.Task[None]] = set()
        """One for each door that is open."""

    def open(self) -> Door:
        """A door for a command that is about to be started. Raises OSError."""
        with self._lock:
            loop, folder = self._begun()
            self._count += 1
            door = Door(str(folder / f"{self._count}"), ",".join(self.reach.loopback()))
            waiting = socket.socket(socket.AF_UNIX)
            try:
                # The folder's path may be longer than the address of a socket can be.
                waiting.bind(f"/proc/self/fd/{self._handle}/{self._count}")
                waiting.listen(1)
                waiting.setblocking(False)
            except OSError:
                waiting.close()
                raise
            self._known[door.path] = door
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            self._begin(loop, self._hold(door, waiting), waiting)
        return door

    def open_port(self) -> Door:
        """The door of all commands where a sandbox has no network of its own: a port of this machine's loopback. Raises
        OSError."""
        with self._lock:
            loop, _ = self._begun()
            if self._shared is None:
                inside = socket.create_server(("127.0.0.1", 0))
                self._shared = door = Door(f"http://127.0.0.1:{inside.getsockname()[1]}", "")
                self._known[door.path] = door
                self._begin(loop, self._let_out(door, inside, loop.create_future()), inside)
            self._shared.direct = ",".join(self.reach.loopback())
            return self._shared

    def refused(self, argv: Sequence[str]) -> list[str]:
        """What the command with this command line was refused and was not told of yet, one line each."""
        door = next((door for path, door in list(self._known.items()) if any(w.endswith(path) for w in argv)), None)
        return door.tell() if door is not None else []

    def close(self) -> None:
        """Shuts all doors: who is still inside reaches nothing from now on."""
        with self._lock:
            loop, thread, self._loop, self._thread, self._shared = self._loop, self._thread, None, None, None
            if loop is None or thread is None:
                return
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)
            os.close(self._handle)
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _begun(self) -> tuple[asyncio.AbstractEventLoop, Path]:
        if self._loop is None or self._folder is None:
            self._folder, self._handle = _own_folder(self._home)
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="refold-doors", daemon=True)
            self._thread.start()
        return self._loop, self._folder

    def _begin(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None], at: socket.socket) -> None:
        """Lets the loop do something at a socket, which is closed in any case then."""

        def begin() -> None:
            task = loop.create_task(work)
            # A loop knows its tasks weakly; one that waits for what nobody else holds would vanish.
            self.held.add(task)
            task.add_done_callback(self.held.discard)
            task.add_done_callback(lambda task: at.close())

        loop.call_soon_threadsafe(begin)

    async def _hold(self, door: Door, waiting: socket.socket) -> None:
        """Takes over the socket of one command, once, and lets what comes there out until its sandbox is gone."""
        loop = asyncio.get_running_loop()
        try:
            with waiting:
                way, _ = await asyncio.wait_for(loop.sock_accept(waiting), WAIT_SECONDS)
        except (TimeoutError, OSError):
            return
        finally:
            with contextlib.suppress(OSError):
                os.unlink(door.path)
        with way:
            given = await _given(way)
            if given is None:
                return
            inside, end = given
            with contextlib.suppress(OSError):
                way.send(b"1")
        try:
            await self._let_out(door, inside, _readable(end))
        finally:
            os.close(end)

    async def _let_out(self, door: Door, inside: socket.socket, end: Awaitable[None]) -> None:
        """Lets what comes to a listening socket out until the end."""
        connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(partial(self._serve, door.note, connections), sock=inside, limit=MOST_HEAD)
        try:
            await end
        finally:
            server.close()
            for task in connections:
                task.cancel()

    async def _serve(
        self,
        note: Callable[[Refusal], None],
        connections: set[asyncio.Task[None]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await self._proxy.serve(reader, writer, note)
        except asyncio.CancelledError:
            pass  # the command is over; the streams would take this for a fault
        finally:
            connections.discard(task)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(_tell_bugs)
    try:
        loop.run_forever()
        loop.run_until_complete(_end_tasks(asyncio.all_tasks(loop)))
    finally:
        loop.close()


async def _end_tasks(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _tell_bugs(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A connection that breaks, or too many open files, is nothing to be told on the screen."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)


async def _given(way: socket.socket) -> tuple[socket.socket, int] | None:
    """The listening socket and the descriptor of the first process that came from inside; None for anything else."""
    way.setblocking(False)
    try:
        await asyncio.wait_for(_readable(way.fileno()), WAIT_SECONDS)
        _, descriptors, _, _ = socket.recv_fds(way, 1, 2, socket.MSG_CMSG_CLOEXEC)
    except (TimeoutError, OSError):
        return None
    if len(descriptors) == 2:
        inside = socket.socket(fileno=descriptors[0])
        inside.setblocking(False)
        return inside, descriptors[1]
    for descriptor in descriptors:
        os.close(descriptor)
    return None


async def _readable(descriptor: int) -> None:
    """Waits until something can be read there; for a process, until it has ended."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _remove_unheld(folder: Path) -> None:
    """Raises OSError where somebody holds it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _own_folder(home: Path) -> tuple[Path, int]:
    """A new folder in `home` and the descriptor by which it is held. Removes those that nobody holds any more: their
    programs were killed. Raises OSError."""
    private_folder(home)
    lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in home.iterdir():
            with contextlib.suppress(OSError):
                _remove_unheld(folder)
        made = Path(tempfile.mkdtemp(dir=home))
        handle = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return made, handle
    finally:
        os.close(lock)
