"""Gets one page over HTTP. Run as a program of its own, so that it can be stopped, and put into the sandbox, like any
command: python _fetcher.py REQUEST, with {"url", "seconds", "most"} as JSON.

Prints one line of JSON (status, url, type, charset, cut; or error; or moved, an address elsewhere), then the body.
Nothing of ours is imported.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
import zlib
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; refold)",
    "Accept": "text/html,text/plain,text/markdown,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip",
}


class _ElsewhereError(Exception):
    """A page has moved to another host, which nobody has allowed yet; the text is its address."""


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to another http or https address of the same host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """None (an error) for any other kind of address. Raises _ElsewhereError."""
        if not newurl.lower().startswith(("http://", "https://")):
            return None
        if _host(newurl) != _host(req.full_url):
            raise _ElsewhereError(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _host(url: str) -> tuple[str, int]:
    """Name and port; the usual ports of http and https are one, for many sites move from one to the other."""
    parts = urlsplit(url)
    return (parts.hostname or "").rstrip("."), 443 if parts.port in (None, 80, 443) else parts.port


def main(request: dict[str, Any]) -> None:
    """Prints the answer."""
    opener = urllib.request.build_opener(_SameHost)
    try:
        with opener.open(urllib.request.Request(request["url"], headers=_HEADERS), timeout=request["seconds"]) as page:
            answer(page.status, page.url, page.headers, page, request)
    except urllib.error.HTTPError as error:
        with error:
            answer(error.code, error.url or request["url"], error.headers, error, request)
    except _ElsewhereError as error:
        print(json.dumps({"moved": str(error)}))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        print(json.dumps({"error": str(reason) or type(reason).__name__}))


def answer(status: int, url: str, headers: Message, body: IO[bytes], request: dict[str, Any]) -> None:
    """The head line and at most `most` bytes of the body, within the time."""
    data, cut = _read(body, request["most"], time.monotonic() + request["seconds"])
    if headers.get("Content-Encoding", "").lower() == "gzip":
        data = _unpacked(data, request["most"])
    head = {
        "status": status,
        "url": url,
        "type": headers.get_content_type(),
        "charset": headers.get_content_charset() or "",
        "cut": cut,
    }
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + data)


def _read(body: IO[bytes], most: int, deadline: float) -> tuple[bytes, bool]:
    data = bytearray()
    while len(data) < most and time.monotonic() < deadline:
        piece = body.read(min(65536, most - len(data)))
        if not piece:
            return bytes(data), False
        data += piece
    return bytes(data), True


def _unpacked(data: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, most)
    except zlib.error:
        return data


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
