"""Which host an address leads to, told as the one who fetches it tells it, and whether a rule speaks of it."""

from __future__ import annotations

import ipaddress
import re
import socket
from fnmatch import fnmatchcase
from unicodedata import normalize
from urllib.parse import unquote

_ADDRESS = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?")
_NUMBERS = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}")
_PORTS = {"http": "80", "https": "443"}


def host_of(url: str) -> str:
    """The host and port of an http or https address, in the one form that rules are compared with; "" where that cannot
    be told for certain."""
    found = _ADDRESS.match(url.strip())
    if found is None or re.search(r"[\s\\\x00-\x1f\x7f]", url.strip()):
        return ""
    # Whatever stands before the last @ is a name and a password.
    place = _HOST.fullmatch(normalize("NFKC", unquote(found[2].rpartition("@")[2])))
    if place is None or (name := plain(place[1])) == "":
        return ""
    return f"{name}:{place[2] or _PORTS[found[1].lower()]}"


def plain(host: str) -> str:
    """A host name, or a pattern for one, in its one form: small letters, ASCII, an IP address as usually written."""
    host = normalize("NFKC", host).lower().rstrip(".")
    literal = host.strip("[]")
    if ":" in literal and "*" not in literal:
        return _address(literal)
    if _NUMBERS.fullmatch(host):
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            return host
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _address(literal: str) -> str:
    try:
        address = ipaddress.IPv6Address(literal)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or f"[{address}]")


def host_matches(pattern: str, host: str) -> bool:
    """Whether a rule's host pattern fits a host, each with or without a port. `*.example.org` does not fit example.org
    itself. A pattern without a port fits every port."""
    if pattern == "*":
        return True
    name, port = _split(host)
    wanted, wanted_port = _split(pattern)
    return fnmatchcase(plain(name), plain(wanted).replace("[", "[[]").replace("?", "[?]")) and wanted_port in (
        "",
        "*",
        port,
    )


def host_name(text: str) -> str:
    """The name of a host, or of a pattern for one, without its port."""
    return _split(text)[0]


def _split(text: str) -> tuple[str, str]:
    """A host and its port ("" where none is named); an IPv6 address may stand without brackets."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*):(\d+|\*)", text)
    return (found[1], found[2]) if found else (text, "")
