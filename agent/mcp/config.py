"""Which MCP servers there are: {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}.

Files, the strongest first: those named by --mcp-config, the person's own (mcp.json in refold's folder), and the two a
folder may bring (.refold/mcp.json, .mcp.json), which count only while they are trusted. Variables such as ${TOKEN} are
put in for the person's files only: a folder must not be able to read the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.faults import reason
from agent.private import write_private
from agent.trust import Trust

OF_FOLDER = (".refold/mcp.json", ".mcp.json")
"""Where a folder names its servers, the stronger one first."""
FILE = "mcp.json"
"""The name of the person's file, in refold's own folder."""
CALL_SECONDS = 300.0
"""Seconds a call may take, unless its server's `timeout` says otherwise."""
MOST_SECONDS = 86_400.0
"""Seconds either of them may be set to, at most."""
START_SECONDS = 20.0
"""Seconds a server may take to start, unless its `startup_timeout` says otherwise."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ConfigError(Exception):
    """A file that cannot be used; the message names the file and its fault."""


@dataclass(frozen=True)
class ServerConfig:
    """One server: a program (`command`, `args`, `env`, `cwd`) or a service (`url`, `headers`). `network`: the program
    may use the network. `disabled`: it is left out, and so is one of its name in a weaker file. `timeout`,
    `startup_timeout`: seconds for a call and for the start. `source` is the file."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    disabled: bool = False
    timeout: float = CALL_SECONDS
    startup_timeout: float = START_SECONDS
    source: str = ""

    @property
    def of_folder(self) -> bool:
        """Whether it is the folder's, not the person's."""
        return self.source in OF_FOLDER

    @property
    def where(self) -> str:
        """What it is, in one line: the command line or the URL without what may be secret in it."""
        return _without_secrets(self.url) if self.url else " ".join([self.command, *self.args])


@dataclass(frozen=True)
class Found:
    """The servers of a session; `problems` are files that could not be used, `waiting` those that are not trusted."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def find_servers(
    home: Path, trust: Trust | None, named: Sequence[Path] = (), *, own: bool = True, env: Mapping[str, str]
) -> Found:
    """All servers that count, by name; of two with one name the stronger file's. `own` False leaves the person's and
    the folder's out. Raises ConfigError for a file in `named`: whoever names one wants it used."""
    servers: dict[str, ServerConfig] = {}
    problems: list[str] = []
    for path in named:
        _add(servers, _of_file(path, env))
    try:
        if own and os.path.exists(home / FILE):
            _add(servers, _of_file(home / FILE, env))
    except ConfigError as error:
        problems.append(str(error))
    waiting: list[str] = []
    for name in OF_FOLDER if own and trust is not None else ():
        assert trust is not None
        data = trust.read(name)
        if data is None:
            waiting += [name] if os.path.isfile(os.path.join(trust.root, name)) else []
            continue
        try:
            _add(servers, parse(data, name, None))
        except ConfigError as error:
            problems.append(str(error))
    return Found(tuple(s for s in servers.values() if not s.disabled), tuple(problems), tuple(waiting))


def _add(servers: dict[str, ServerConfig], more: Sequence[ServerConfig]) -> None:
    for server in more:
        servers.setdefault(server.name, server)


def _of_file(path: Path, env: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {reason(error, path)}") from error
    return parse(data, str(path), env)


def parse(data: bytes, source: str, env: Mapping[str, str] | None) -> tuple[ServerConfig, ...]:
    """The servers of a file's bytes; variables are taken from `env`, or left as they stand where it is None. Raises
    ConfigError."""
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source} is not JSON: {error}") from None
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f'{source} has no table of servers: {{"mcpServers": {{"name": {{"command": ...}}}}}}')
    return tuple(_server(name, entry, source, env) for name, entry in servers.items())


_SHAPES: Mapping[str, tuple[type, ...]] = {
    "command": (str,), "args": (list,), "env": (dict,), "cwd": (str,), "url": (str,), "headers": (dict,),
    "network": (bool,), "disabled": (bool,), "timeout": (int, float), "startup_timeout": (int, float),
}  # fmt: skip
_WORDS = {str: "a text", list: "a list", dict: "a table", bool: "true or false", int: "a number"}


def _server(name: str, entry: Any, source: str, env: Mapping[str, str] | None) -> ServerConfig:
    where = f"{source}: the server {name!r}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must be a table")
    if entry.get("disabled") is True:
        return ServerConfig(name=name, source=source, disabled=True)
    for key, kinds in _SHAPES.items():
        value = entry.get(key)
        wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
        if value is not None and wrong:
            raise ConfigError(f"{where}: {key} must be {_WORDS[kinds[0]]}")
    known = {k: entry[k] for k in _SHAPES if entry.get(k) is not None}
    if bool(known.get("command")) == bool(known.get("url")):
        raise ConfigError(f"{where} needs either a command or a url")
    if known.get("url") and not known["url"].startswith(("http://", "https://")):
        raise ConfigError(f"{where}: url must begin with http:// or https://")
    if not all(0 < known.get(key, 1) <= MOST_SECONDS for key in ("timeout", "startup_timeout")):
        raise ConfigError(f"{where}: timeout and startup_timeout must be more than 0 seconds and a day at most")
    if "\0" in "".join(_texts(known)):
        raise ConfigError(f"{where} has a NUL in it, which no program can be given")
    try:
        return ServerConfig(name=name, source=source, **dict(_values(known, env)))
    except LookupError as error:
        raise ConfigError(f"{where}: there is no variable {error.args[0]} in the environment") from None


def _texts(value: Any) -> Iterator[str]:
    """All texts in a configuration, keys included."""
    if isinstance(value, (dict, list)):
        for part in value if isinstance(value, list) else (*value, *value.values()):
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def _values(known: Mapping[str, Any], env: Mapping[str, str] | None) -> Iterator[tuple[str, Any]]:
    for key, value in known.items():
        if isinstance(value, dict):
            yield key, {str(k): expand(str(v), env) for k, v in value.items()}
        elif isinstance(value, list):
            yield key, tuple(expand(str(v), env) for v in value)
        else:
            yield key, expand(value, env) if isinstance(value, str) else value


def expand(text: str, env: Mapping[str, str] | None) -> str:
    """A text with ${NAME} and ${NAME:-other} put in; as it stands where `env` is None. Raises LookupError."""
    if env is None:
        return text

    def value(match: re.Match[str]) -> str:
        found = env.get(match[1], match[2])
        if found is None:
            raise LookupError(match[1])
        return found

    return _VARIABLE.sub(value, text)


def _without_secrets(url: str) -> str:
    """A URL without user, password and query."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def change(home: Path, name: str, entry: Mapping[str, Any] | None) -> bool:
    """Puts a server into the person's file, or takes it out (None); False where there was none to take out. What else
    the file holds stays. Raises ConfigError, OSError."""
    path = home / FILE
    try:
        data = json.loads(path.read_text("utf-8-sig")) if os.path.exists(path) else {}
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    servers = data.setdefault("mcpServers", {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{path} has no table of servers")
    if entry is None:
        if servers.pop(name, None) is None:
            return False
    else:
        servers[name] = dict(entry)
        parse(json.dumps({"mcpServers": {name: servers[name]}}).encode(), str(path), None)
    # It may hold tokens: nobody else reads it.
    write_private(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return True
