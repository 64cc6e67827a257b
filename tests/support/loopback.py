"""A real HTTP server on a free port of this machine, for as long as a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], closing: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Serves, and gives the port; `closing` is called before the end, so that what still answers can be let go."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        closing()
        server.shutdown()
        server.server_close()
        thread.join()
