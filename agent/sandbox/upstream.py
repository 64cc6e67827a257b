"""The proxy that this machine itself needs to get out, as the environment names it: what a command reaches goes through
it, too. Its name and password stay here."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from agent.sandbox.http_heads import MOST_HEAD, BadRequestError, Request, parse_answer

_KINDS = {True: ("https", "all"), False: ("http", "all")}


class UpstreamError(OSError):
    """It cannot be used, or does not do what it is asked; the text says why."""


@dataclass(frozen=True)
class Upstream:
    """One proxy; `login` is what it wants to be told, b"" where it wants nothing."""

    host: str
    port: int
    login: bytes = b""

    async def open(self, request: Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to it; for a tunnel, one that leads to the host. Raises OSError."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=MOST_HEAD)
        if request.head:
            return reader, writer
        try:
            place = request.host.encode()
            writer.write(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (place, place, self.login))
            status, _ = parse_answer(await reader.readuntil(b"\r\n\r\n"))
            if not 200 <= status < 300:
                raise UpstreamError(f"the proxy of this machine answers {status}")
        except (BadRequestError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            raise UpstreamError("the proxy of this machine gives no answer") from None
        except BaseException:
            writer.close()
            raise
        return reader, writer

    def head(self, request: Request) -> bytes:
        """The head of a plain request as it wants it: with the whole address."""
        method, path, rest = request.head.split(b" ", 2)
        line, _, fields = rest.partition(b"\r\n")
        address = b"http://" + request.host.removesuffix(":80").encode() + path
        return b"%s %s %s\r\n%s%s" % (method, address, line, self.login, fields)


def upstream_of(request: Request, environment: Mapping[str, str]) -> Upstream | None:
    """The proxy by which a host is to be reached; None where it is reached without one. Raises UpstreamError for one of
    another kind than HTTP."""
    named = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy") and value}
    named |= {name: value for name, value in environment.items() if name.islower() and name in named and value}
    url = next((named[f"{kind}_proxy"] for kind in _KINDS[not request.head] if f"{kind}_proxy" in named), "")
    if not url or any(_fits(entry.strip().lower(), request) for entry in named.get("no_proxy", "").split(",")):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme != "http" or not host:
        raise UpstreamError("the proxy of this machine is of a kind that cannot be used here")
    if parts.username is None:
        return Upstream(host, port)
    word = base64.b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode())
    return Upstream(host, port, b"Proxy-Authorization: Basic %s\r\n" % word)


def _fits(entry: str, request: Request) -> bool:
    """Whether an entry of NO_PROXY speaks of a host: by its name, that of a domain above it, or a network."""
    name = request.name.strip("[]")
    try:
        return ipaddress.ip_address(name) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        domain = entry.removesuffix(f":{request.port}").removeprefix("*.").removeprefix(".")
    return entry == "*" or bool(domain) and (name == domain or name.endswith(f".{domain}"))
