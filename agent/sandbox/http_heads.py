"""Heads of HTTP requests and answers as a proxy has to read them: strictly, for what two programs read in two ways
leads past the one that checks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.permissions.hosts import plain

MOST_HEAD = 64 * 1024
"""Bytes of a head, its lines and their ends included."""

_LINE = re.compile(rb"([A-Za-z]{1,32}) ([\x21-\x7e\x80-\xff]+) (HTTP/1\.[01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_PLACE = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")
_ABSOLUTE = re.compile(rb"http://([^/?#]*)([^#]*)", re.IGNORECASE)
_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"upgrade", b"host")
)  # fmt: skip
"""What is meant for the next program alone; `host` is written anew."""


class BadRequestError(ValueError):
    """A request that is not passed on; the text says why, `status` is the code of HTTP."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Request:
    """One request to the proxy. `host` is name:port in the form that rules are compared with. `head` is what is passed
    on, b"" for a tunnel (CONNECT). `length` is the bytes of the body, None for one that comes in chunks."""

    host: str
    head: bytes = b""
    length: int | None = 0

    @property
    def name(self) -> str:
        """The host without its port; an IPv6 address has its brackets."""
        return self.host.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port."""
        return int(self.host.rpartition(":")[2])


def parse_request(head: bytes) -> Request:
    """The request that a head (with the empty line that ends it) makes. Raises BadRequestError."""
    lines = _lines(head)
    first = _LINE.fullmatch(lines[0])
    if first is None:
        raise BadRequestError("the first line is no request of HTTP/1.1")
    method, target, version = first.groups()
    fields = [_field(line) for line in lines[1:]]
    if method.upper() == b"CONNECT":
        return Request(_host(target, ""))
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        raise BadRequestError("a request to a proxy names a whole address, http://host/path, or is a CONNECT")
    host = _host(found[1], "80")
    named = [value for name, value in fields if name == b"host"]
    if len(named) > 1 or any(_host(value, "80") != host for value in named):
        raise BadRequestError("the field Host does not name the host of the address")
    path = found[2] if found[2].startswith(b"/") else b"/" + found[2]
    length = _length(fields)
    out = [b"%s %s %s" % (method, path, version), b"Host: " + host.removesuffix(":80").encode()]
    out += [b"%s: %s" % pair for pair in _passed_on(fields)]
    return Request(host, b"\r\n".join([*out, b"Connection: close", b"", b""]), length)


def parse_answer(head: bytes) -> tuple[int, bytes]:
    """(the status, the head as it is passed on) of the head of an answer: the connection ends behind it. Raises
    BadRequestError."""
    lines = _lines(head)
    first = re.fullmatch(rb"HTTP/1\.[01] (\d{3})(?: [\t\x20-\x7e\x80-\xff]*)?", lines[0])
    if first is None:
        raise BadRequestError("what it answers is no HTTP/1.1", 502)
    status = int(first[1])
    fields = [b"%s: %s" % pair for pair in _passed_on([_field(line) for line in lines[1:]])]
    closing = [] if 100 <= status < 200 else [b"Connection: close"]
    return status, b"\r\n".join([lines[0], *fields, *closing, b"", b""])


def _lines(head: bytes) -> list[bytes]:
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines):
        raise BadRequestError("a line of the head does not end as HTTP has it")
    return lines


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise BadRequestError("a line of the head is no field")
    return found[1].lower(), found[2].rstrip(b" \t")


def _passed_on(fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The fields but those for the next program alone."""
    listed = b",".join(value for name, value in fields if name == b"connection")
    left_out = _HOP | {word.strip().lower() for word in listed.split(b",")} - {b"content-length", b"transfer-encoding"}
    return [(name, value) for name, value in fields if name not in left_out]


def _host(place: bytes, usual: str) -> str:
    """name:port. No names and passwords before an @, no %-signs, no zones: they are read in more than one way."""
    found = _PLACE.fullmatch(place)
    port = (found[2] or b"").decode() or usual if found else ""
    name = plain(found[1].decode()) if found else ""
    if not name or not port or not 0 < int(port) < 65536:
        raise BadRequestError("the host cannot be told for certain")
    return f"{name}:{int(port)}"


def _length(fields: list[tuple[bytes, bytes]]) -> int | None:
    lengths = [value for name, value in fields if name == b"content-length"]
    coded = [value.lower() for name, value in fields if name == b"transfer-encoding"]
    if coded:
        if lengths or coded != [b"chunked"]:
            raise BadRequestError("where the body ends cannot be told for certain")
        return None
    if len(lengths) > 1 or any(re.fullmatch(rb"\d{1,18}", value) is None for value in lengths):
        raise BadRequestError("where the body ends cannot be told for certain")
    return int(lengths[0]) if lengths else 0
