"""Real servers that a confined command may reach or not, and raw talk with the proxy that lets it out."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

from agent.permissions import parse_rule
from agent.permissions.reach import Reach
from agent.sandbox import Doors
from tests.support.loopback import Quiet

SECONDS = 30.0
"""A read of a test takes no longer; it tells a hang from an answer."""


class Site:
    """An HTTP server on loopback that remembers what it was asked for: "METHOD path body" and the Host of each."""

    def __init__(self, tls: Path | None = None, address: str = "127.0.0.1") -> None:
        self.heard: list[str] = []
        self.hosts: list[str] = []
        site = self

        class Handler(Quiet):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.heard.append(f"{self.command} {self.path} {self._body()}".rstrip())
                site.hosts.append(self.headers.get("Host", ""))
                data = b"x" * int(self.path[2:]) if self.path[1:2] == "n" else f"page {self.path}\n".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def _body(self) -> str:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                text = ""
                while size := int(self.rfile.readline(), 16):
                    text += self.rfile.read(size).decode()
                    self.rfile.readline()
                self.rfile.readline()
                return text

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        kind = type("Server", (ThreadingHTTPServer,), {"address_family": family, "request_queue_size": 128})
        self.server: ThreadingHTTPServer = kind((address, 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate(tls))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def __enter__(self) -> Site:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *what: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def certificate(folder: Path) -> Path:
    """A new certificate for localhost and its key, in one file of a folder."""
    made = folder / "both.crt"
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        ["openssl", "req", *words, *names, "-keyout", folder / "key", "-out", folder / "cert"],
        check=True,
        capture_output=True,
    )
    made.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return made


@contextmanager
def listening(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """A server on loopback that treats each connection in a thread of its own; gives the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_answered, args=(answer, connection), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)


def _answered(answer: Callable[[socket.socket], object], connection: socket.socket) -> None:
    with connection:
        answer(connection)


class Doorway:
    """The proxy under some rules, at a port of this machine."""

    def __init__(
        self, home: Path, rules: Sequence[str], head_seconds: float = SECONDS, environment: dict[str, str] | None = None
    ) -> None:
        self.doors = Doors(str(home), Reach([parse_rule(rule) for rule in rules]), environment, head_seconds)
        self.door = self.doors.open_port()
        self.port = int(self.door.path.rpartition(":")[2])

    def __enter__(self) -> Doorway:
        return self

    def __exit__(self, *what: object) -> None:
        self.doors.close()

    def connect(self) -> socket.socket:
        """A connection to the proxy."""
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def say(self, text: str | bytes, done: bool = False) -> str:
        """All that comes back for what is sent; `done` ends what is sent at once."""
        with self.connect() as connection:
            connection.sendall(text.encode() if isinstance(text, str) else text)
            if done:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection).decode("latin-1")

    def tunnel(self, target: str) -> tuple[str, socket.socket]:
        """(the first line of the answer, the connection) after a CONNECT."""
        connection = self.connect()
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n") and (byte := connection.recv(1)):
            head += byte
        return head.partition(b"\r\n")[0].decode(), connection

    def refused(self) -> list[str]:
        """What was refused since this was last asked."""
        return self.doors.refused([self.door.path])


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side ends it."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data
