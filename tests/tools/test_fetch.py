"""fetch, against a real server on loopback."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

PAGE = """<!doctype html><html><head><title>The  Page</title><style>p{}</style></head><body>
<nav>menu</nav><h1>Head</h1><p>One <b>two</b>&amp;<a href="/x?y">three</a>
<br>four</p><ul><li>a<li>b</ul><pre>  code
    here</pre><script>bad()</script><table><tr><th>k</th><td>v</td></tr></table><img alt="a cat"></body></html>"""
TEXT = """The Page

# Head

One two&[three]({base}/x?y)
four

- a
- b

```
  code
    here
```

| k | v

[image: a cat]"""


class Handler(BaseHTTPRequestHandler):
    """A few pages."""

    def do_GET(self) -> None:
        pages = {
            "/page": ("text/html; charset=utf-8", PAGE.encode()),
            "/latin": ("text/html; charset=iso-8859-1", "<p>caf\xe9</p>".encode("latin-1")),
            "/meta": ("text/html", "<meta charset=gbk><p>中文</p>".encode("gbk")),
            "/data.json": ("application/json", b'{"a": [1]}'),
            "/blob": ("application/octet-stream", b"\0\1\2"),
            "/long": ("text/plain", b"0123456789" * 500),
            "/huge": ("text/plain", b"x" * 6_000_000),
            "/escape": ("text/plain", b"a\x1b[31mb\x1b]0;t\x07c"),
        }
        path = self.path.partition("?")[0]
        self.server.paths.append(self.path)
        if path == "/loop":
            self.answer(302, "text/plain", b"", Location="/loop")
        elif path == "/moved":
            self.answer(301, "text/plain", b"", Location="/data.json")
        elif path in ("/elsewhere", "/sideways"):
            port = self.server.server_address[1]
            where = f"http://localhost:{port}/long?q=1" if path == "/elsewhere" else "http://127.0.0.1:9/long"
            self.answer(302, "text/plain", b"", Location=where)
        elif path == "/file":
            self.answer(302, "text/plain", b"", Location="file:///etc/passwd")
        elif path == "/slow":
            time.sleep(5)
        elif path == "/zipped":
            self.answer(200, "text/plain", gzip.compress(b"zipped text"), **{"Content-Encoding": "gzip"})
        elif path in pages:
            self.answer(200, *pages[path])
        else:
            self.answer(404, "text/plain", b"not here")

    def answer(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.paths = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def base(server, ws) -> str:
    ws.ctx.env = {k: v for k, v in ws.ctx.env.items() if "proxy" not in k.lower()}
    server.paths.clear()
    return f"http://127.0.0.1:{server.server_port}"


def test_a_page_as_text(ws, base):
    out = ws.call("fetch", url=f"{base}/page")
    assert out.text == TEXT.replace("{base}", base)
    assert out.meta == {"url": f"{base}/page", "status": 200}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/latin", "café"),
        ("/meta", "中文"),
        ("/data.json", '{"a": [1]}'),
        ("/moved", '{"a": [1]}'),
        ("/zipped", "zipped text"),
        ("/escape", "abc"),
    ],
)
def test_kinds_of_text(ws, base, path, text):
    assert ws.call("fetch", url=base + path).text == text


def test_pages_of_a_long_text_are_fetched_once(ws, base, server):
    ws.ctx.share = 2200
    first = ws.call("fetch", url=f"{base}/long").text
    assert first.endswith("(characters 0-2000 of 5000; continue with start=2000)")
    last = ws.call("fetch", url=f"{base}/long", start=4000).text
    assert last == "0123456789" * 100 and server.paths == ["/long"]


def test_size_is_bounded(ws, base):
    ws.ctx.share = 10_000_000
    text = ws.call("fetch", url=f"{base}/huge").text
    assert text.endswith("x\n(cut: only the first 5,242,880 bytes were fetched)") and len(text) < 5_243_000


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("BASE/none", "not here\n[HTTP status 404]"),
        ("BASE/blob", "BASE/blob is application/octet-stream, which is no text (3 bytes); bash with curl can save it."),
        ("BASE/file", "[HTTP status 302]"),
        ("file:///etc/passwd", "Only http and https addresses can be fetched; use read for files."),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/: [Errno 111] Connection refused."),
        ("http://nosuchhost.invalid/", "http://nosuchhost.invalid/: "),
    ],
)
def test_what_does_not_come_says_why(ws, base, url, words):
    out = ws.call("fetch", url=url.replace("BASE", base))
    assert not out.ok and words.replace("BASE", base) in out.text


@pytest.mark.parametrize(
    ("path", "host"), [("/elsewhere", "localhost:PORT/long?q=1"), ("/sideways", "127.0.0.1:9/long")]
)
def test_another_host_is_told_not_followed(ws, base, path, host):
    where = f"http://{host}".replace("PORT", base.rpartition(":")[2])
    out = ws.call("fetch", url=base + path)
    said = f"{base}{path} redirects to another host: {where} (fetch that address to go on)."
    assert (out.ok, out.text) == (False, said)


def test_a_redirect_without_end(ws, base):
    out = ws.call("fetch", url=f"{base}/loop")
    assert not out.ok and "302" in out.text


def test_no_network_no_fetch(ws):
    ws.ctx.state["network"] = False
    assert ws.call("fetch", url="https://example.org").text == "There is no network in this sandbox."


def test_it_can_be_cancelled(ws, base):
    async def cancelled() -> float:
        task = asyncio.create_task(ws.box.run("fetch", {"url": f"{base}/slow"}))
        await asyncio.sleep(0.5)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(cancelled()) < 5
