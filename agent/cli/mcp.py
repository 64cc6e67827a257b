"""`refold mcp`: the MCP servers of the person and of a trusted folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.edges import interruptible
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.folders import git_root
from agent.mcp.config import FILE, ConfigError, change, find_servers
from agent.mcp.names import clean
from agent.mcp.servers import Server, Servers
from agent.permissions import RuleError
from agent.safety import Safety
from agent.settings import Settings, home_folder

Values = dict[str, Any]


def mcp(values: Values) -> int:
    """Lists the servers with their tools (exit 1: one of them does not start), or changes the person's own."""
    return told(lambda: _ACTIONS.get(values["action"] or "list", _unknown)(values))


def _unknown(values: Values) -> int:
    raise Stop(Exit.USAGE, f"there is no action {values['action']!r}; there are list, add and rm")


def _list(values: Values) -> int:
    cwd = folder_of(values)
    settings = Settings.load({"permission_mode": values["permission_mode"]}, os.environ, cwd)
    try:
        safety = Safety(settings, git_root(cwd) or cwd)
        found = find_servers(settings.home, safety.trust, env=os.environ)
    except (RuleError, ConfigError) as error:
        raise Stop(Exit.CONFIG, str(error)) from error
    for name in found.waiting:
        print(f"{name} is not trusted, so its servers do nothing: look at it, then refold trust grant")
    if not found.servers and not found.problems:
        print(f"There are no MCP servers. refold mcp add NAME -- COMMAND adds one to {settings.home / FILE}.")
    servers = Servers(found.servers, safety)
    with interruptible():
        asyncio.run(_connected(servers))
        servers.close()
    for server in servers.all:
        print("\n".join(lines_of(server)))
    for problem in found.problems:
        print(f"! {problem}")
    failed = found.problems or any(s.state == "failed" for s in servers.all)
    return Exit.FAILED if failed else Exit.OK


async def _connected(servers: Servers) -> None:
    if servers.waiting:
        await servers.connect()


def lines_of(server: Server) -> list[str]:
    """A server, how it stands, and its tools."""
    config, count = server.config, len(server.tools)
    state = {"connected": f"{count} tool{'' if count == 1 else 's'}"}.get(server.state, server.state)
    lines = [f"{config.name}: {state}  ({config.where}; from {config.source})"]
    lines += [f"  ! {server.problem}"] if server.problem else []
    for tool in server.tools:
        mark = " (reads only)" if tool.reads else ""
        lines.append(f"  {tool.name}{mark}  {tool.description.partition(chr(10))[0][:100]}".rstrip())
    return lines


def _add(values: Values) -> int:
    name, words = values["name"], list(values["words"])
    if not name or not words:
        raise Stop(Exit.USAGE, "refold mcp add NAME -- COMMAND ARGUMENT..., or refold mcp add NAME URL")
    if clean(name) != name:
        raise Stop(Exit.USAGE, f"{name!r} is no name for a server: letters, digits, - and single _ only")
    url = words[0] if words[0].startswith(("http://", "https://")) else ""
    if url and (len(words) > 1 or values["env"] or values["network"]):
        raise Stop(Exit.USAGE, "a URL takes neither arguments nor --env nor --network")
    if not url and values["header"]:
        raise Stop(Exit.USAGE, "--header is for a URL")
    entry: dict[str, Any] = {"url": url} if url else {"command": words[0], "args": words[1:]}
    entry |= {"env": _pairs(values["env"], "=", "--env")} if values["env"] else {}
    entry |= {"headers": _pairs(values["header"], ":", "--header")} if values["header"] else {}
    entry |= {"network": True} if values["network"] else {}
    _change(name, entry)
    print(f"{name} is added, from the next session on. refold mcp list starts it and shows its tools.")
    return Exit.OK


def _pairs(given: Sequence[str], sign: str, option: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for pair in given:
        name, found, value = pair.partition(sign)
        if not found or not name.strip():
            raise Stop(Exit.USAGE, f"{option} takes NAME{sign}VALUE, not {pair!r}")
        out[name.strip()] = value.strip() if sign == ":" else value
    return out


def _remove(values: Values) -> int:
    if not values["name"]:
        raise Stop(Exit.USAGE, "refold mcp rm NAME")
    if not _change(values["name"], None):
        raise Stop(Exit.USAGE, f"there is no server {values['name']!r} of yours; `refold mcp list` lists them")
    print(f"{values['name']} is removed.")
    return Exit.OK


def _change(name: str, entry: dict[str, Any] | None) -> bool:
    home = home_folder(Path.cwd())
    try:
        return change(home, name, entry)
    except (ConfigError, OSError) as error:
        raise Stop(Exit.CONFIG, reason(error)) from error


_ACTIONS = {"list": _list, "add": _add, "rm": _remove}
