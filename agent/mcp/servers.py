"""The MCP servers of one session: started together before its first turn, their tools fixed from then on.

A program is confined as the mode says when it is started. Its process is ended at once when the mode becomes a stricter
one, and started again, confined as it has to be by then, at the next call.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent.mcp.child import Child
from agent.mcp.config import ServerConfig
from agent.mcp.link import MOST_TOOLS, Link, LinkError, load_sdk, service
from agent.mcp.names import server_names, tool_names
from agent.mcp.results import output_of
from agent.mcp.tool import MOST_DESCRIPTION, TAKES_ALL, McpTool, parameters_of, preview_of, title_of
from agent.safety import CONFINEMENT, Safety
from tools.base import ToolContext, ToolFailure, ToolOutput

_LOADERS = re.compile(r"LD_|DYLD_|GLIBC_|GCONV_PATH$|LOCPATH$|.*=")
"""Variables that the loader and the C library of any program obey; a name with a = in it is two things at once."""
_STRICTEST_FIRST = ("read-only", "workspace", "network", "off")


@dataclass
class Server:
    """One server and how it stands. `state`: waiting, connected or failed; `problem` says why it failed."""

    config: ServerConfig
    called: str
    state: str = "waiting"
    problem: str = ""
    tools: tuple[McpTool, ...] = ()
    link: Link | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Servers:
    """All servers of a session."""

    def __init__(self, configs: Sequence[ServerConfig], safety: Safety) -> None:
        # The person's own rules name their servers, so a folder's cannot take such a name.
        parts = [[c.name for c in configs if c.of_folder is folders] for folders in (False, True)]
        names = server_names(*parts)
        self.all = [Server(config, names[config.name]) for config in configs]
        self._safety, self._started = safety, False

    # -- the start --------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether there are servers, and they are not started yet."""
        return bool(self.all) and not self._started

    @property
    def greeting(self) -> str:
        """What is said while they start."""
        return f"Starting MCP servers: {', '.join(s.config.name for s in self.all)}"

    async def connect(self) -> list[str]:
        """Starts all of them side by side and gives what went wrong, one sentence a server. Where it is cancelled, what
        has not started yet is stopped and still waits."""
        problem = await asyncio.to_thread(load_sdk)
        if problem:
            for server in self.all:
                server.state, server.problem = "failed", problem
            self._started = True
            return [problem]
        starts = [asyncio.ensure_future(self._first(s)) for s in self.all if s.state == "waiting"]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
        self._started = True
        states = {"failed": " is left out"}
        return [f"The MCP server {s.config.name}{states.get(s.state, '')}: {s.problem}" for s in self.all if s.problem]

    async def _first(self, server: Server) -> None:
        try:
            async with server.lock:
                link = await self._open(server)
        except LinkError as error:
            server.state, server.problem = "failed", f"{error}.{self._hint(server)}"
            return
        except ToolFailure as error:
            server.state, server.problem = "failed", f"{error}."
            return
        server.tools = tuple(self._tools(server, link.tools))
        server.state = "connected"
        if len(link.tools) == MOST_TOOLS:
            server.problem = f"only its first {MOST_TOOLS} tools are offered."

    def _hint(self, server: Server) -> str:
        """What may be the matter with a program that does not start in a sandbox."""
        held = self._confinement(server) in ("read-only", "workspace")
        if server.config.url or not held or server.config.network:
            return ""
        return ' It runs without the network; "network": true in its configuration allows it.'

    # -- tools ------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> dict[str, McpTool]:
        """The tools of all servers by full name, in the order of the configuration and of each server's list."""
        return {tool.name: tool for server in self.all for tool in server.tools}

    def _tools(self, server: Server, listed: Sequence[Any]) -> Iterator[McpTool]:
        names = tool_names(server.called, (t.name for t in listed))
        for remote in {t.name: t for t in listed}.values():
            marks = remote.annotations
            about = " ".join((remote.description or remote.title or remote.name).split("\x00"))
            yield McpTool(
                name=names[remote.name],
                description=about[:MOST_DESCRIPTION],
                effect="execute",
                schema=TAKES_ALL,
                run=partial(self._run, server, remote.name),
                title=partial(title_of, server.config.name, remote.name),
                preview=preview_of,
                server=server.config.name,
                remote=remote.name,
                parameters=parameters_of(remote.input_schema),
                reads=bool(marks and marks.read_only_hint),
                online=bool(server.config.url) or server.config.network,
                program=not server.config.url,
            )

    async def _run(self, server: Server, remote: str, ctx: ToolContext, /, **args: Any) -> ToolOutput:
        judged = str(ctx.state.get(CONFINEMENT, "off"))
        link = await self._link(server, judged)
        try:
            result = await link.call(remote, args, server.config.timeout, ctx.progress)
        except LinkError as error:
            raise ToolFailure(self._failure(server, link, str(error))) from None
        return output_of(result, ctx.takes_images)

    def _failure(self, server: Server, link: Link, words: str) -> str:
        name = server.config.name
        if link.alive:
            return f"The MCP server {name}: {words}."
        mode = self._safety.permissions.mode
        if link.stopped:
            return f"The MCP server {name} was stopped, for the mode is now {mode}. What the call did until then stays."
        again = "connected" if server.config.url else "started"
        return f"The MCP server {name}: {words}. It may have done part of this; it is {again} again at the next call."

    # -- connections ------------------------------------------------------------------------------------------------

    def _confinement(self, server: Server, judged: str = "off") -> str:
        """How a program has to be confined in the present mode, and as a call that runs now was judged; "" for a
        service elsewhere. Raises ToolFailure where it must not run at all."""
        if server.config.url:
            return ""
        needed = self._safety.server_confinement(network=server.config.network)
        return min(needed, judged, key=_STRICTEST_FIRST.index)

    async def _link(self, server: Server, judged: str) -> Link:
        """A connection that lives and is confined as the call was judged and as the mode is now; opened again where
        there is none, once. Raises ToolFailure."""
        async with server.lock:
            link = server.link
            if link is not None and link.alive and link.confinement == self._confinement(server, judged):
                return link
            self._drop(server)
            try:
                return await self._open(server, judged)
            except LinkError as error:
                raise ToolFailure(f"The MCP server {server.config.name} cannot be used again: {error}.") from None

    async def _open(self, server: Server, judged: str = "off") -> Link:
        """A new connection. Where a stricter mode stops it while it starts, it is started anew. Raises LinkError,
        ToolFailure."""
        while True:
            server.link = link = self._make(server.config, self._confinement(server, judged))
            try:
                await link.open(server.config.startup_timeout)
                return link
            except LinkError:
                if not link.stopped:
                    raise

    def _make(self, config: ServerConfig, confinement: str) -> Link:
        if config.url:
            return Link(partial(service, config.url, config.headers), None, "")
        cwd = self._safety.root / os.path.expanduser(config.cwd)
        command = os.path.expanduser(config.command)
        # What steers the loader would otherwise run code in the programs that set up the sandbox, outside of it.
        loaded = [f"{name}={value}" for name, value in config.env.items() if _LOADERS.match(name)]
        env = {name: value for name, value in config.env.items() if not _LOADERS.match(name)}
        inside = ["/usr/bin/env", *loaded] if loaded else []
        argv = self._safety.wrap_child([*inside, command, *config.args], cwd, confinement)
        child = Child(argv, {**self._safety.env, **env}, cwd)
        return Link(child.streams, child, confinement)

    def _drop(self, server: Server, *, at_once: bool = False) -> None:
        link, server.link = server.link, None
        if link is not None:
            link.close(at_once=at_once)

    def mode_changed(self) -> None:
        """Ends the programs that may do more than the present mode allows, whatever they are doing."""
        for server in self.all:
            link = server.link
            if link is None or not link.confinement:
                continue
            try:
                needed = self._confinement(server)
            except ToolFailure:
                needed = ""
            if not needed or _STRICTEST_FIRST.index(needed) < _STRICTEST_FIRST.index(link.confinement):
                self._drop(server, at_once=True)

    def facts(self) -> list[dict[str, str]]:
        """How each server stands, for the first line of stream-json."""
        return [{"name": s.config.name, "status": "pending" if s.state == "waiting" else s.state} for s in self.all]

    async def finish(self) -> None:
        """Ends all of them and waits until they have, for a loop that is closed next."""
        await asyncio.gather(*(s.link.finish() for s in self.all if s.link is not None))

    def close(self) -> None:
        """Ends all of them; does not wait."""
        for server in self.all:
            self._drop(server)
