"""The proxy that lets commands out, asked over raw sockets: by programs that mean well and by some that do not."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.sandbox.http_heads import Request
from agent.sandbox.proxy import MOST_CONNECTIONS
from agent.sandbox.upstream import Upstream, upstream_of
from tests.support.doorway import SECONDS, Doorway, Site, listening, read_all
from tests.support.processes import within

OPEN = "HTTP/1.1 200 Connection established"


def first(answer: str) -> str:
    return answer.partition("\r\n")[0]


def get(port: int, path: str = "/a", more: str = "", host: str = "localhost") -> str:
    return f"GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\n{more}\r\n"


def test_a_page_over_plain_http(tmp_path: Path) -> None:
    with Site() as site, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way:
        answer = way.say(get(site.port, "/a?b", "Connection: keep-alive\r\n"))
        head, _, body = answer.partition("\r\n\r\n")
        assert (first(answer), body) == ("HTTP/1.1 200 OK", "page /a?b\n")
        assert "Connection: close" in head.split("\r\n")
        assert (site.heard, site.hosts) == (["GET /a?b"], [f"localhost:{site.port}"])
        assert way.refused() == []


def test_a_page_over_tls_which_the_proxy_cannot_read(tmp_path: Path) -> None:
    with Site(tls=tmp_path) as site, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way:
        said, connection = way.tunnel(f"LocalHost.:{site.port}")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert"))
        with context.wrap_socket(connection, server_hostname="localhost") as inner:
            inner.sendall(b"GET /secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = read_all(inner).decode()
    assert (said, first(answer), site.heard) == (OPEN, "HTTP/1.1 200 OK", ["GET /secret"])


def test_over_ipv6(tmp_path: Path) -> None:
    with Site(address="::1") as site, Doorway(tmp_path, [f"fetch([::1]:{site.port})"]) as way:
        assert first(way.say(get(site.port, host="[::1]"))) == "HTTP/1.1 200 OK"
        said, connection = way.tunnel(f"[0:0::1]:{site.port}")
        connection.close()
        assert (said, first(way.say(get(site.port)))[:12]) == (OPEN, "HTTP/1.1 403")


@pytest.mark.parametrize(
    ("target", "status", "refused"),
    [
        ("localhost:{port}", 200, ""),
        ("LOCALHOST..:{port}", 200, ""),
        ("127.0.0.1:{port}", 403, "127.0.0.1:{port}"),
        ("2130706433:{port}", 403, "127.0.0.1:{port}"),
        ("0x7f.0.0.1:{port}", 403, "127.0.0.1:{port}"),
        ("[::1]:{port}", 403, "[::1]:{port}"),
        ("[::ffff:127.0.0.1]:{port}", 403, "127.0.0.1:{port}"),
        ("localhost:1", 403, "localhost:1"),
        ("localhost.evil.net:{port}", 403, "localhost.evil.net:{port}"),
        ("localhost:{port}@evil.net:{port}", 400, ""),
        ("evil.net@localhost:{port}", 400, ""),
        ("local%68ost:{port}", 400, ""),
        ("localhost%00.evil.net:{port}", 400, ""),
        ("http://localhost:{port}", 400, ""),
        ("localhost", 400, ""),
    ],
)
def test_the_target_of_a_tunnel_decides(tmp_path: Path, target: str, status: int, refused: str) -> None:
    with Site() as site, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way:
        wanted, host = target.format(port=site.port), refused.format(port=site.port)
        # The forged field names a host that is allowed.
        with way.connect() as connection:
            connection.sendall(f"CONNECT {wanted} HTTP/1.1\r\nHost: localhost:{site.port}\r\n\r\n".encode())
            said = connection.recv(65536).decode()
        lines = [line.split()[3] for line in way.refused()]
    assert (int(said.split()[1]), lines) == (status, [f"{host};"] if host else [])


def test_a_refusal_says_which_rule_would_allow_it(tmp_path: Path) -> None:
    words = "the sandbox refused pypi.example:443; a rule fetch(pypi.example) would allow it"
    with Doorway(tmp_path, ["fetch(other.example)"]) as way:
        answers = [way.say("CONNECT pypi.example:443 HTTP/1.1\r\n\r\n") for _ in range(2)]
        assert way.refused() == [f"[{words}]"]
        way.say("CONNECT pypi.example:443 HTTP/1.1\r\n\r\n")
        assert way.refused() == []
    body = f"refold: {words}.\n"
    fields = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close"
    assert answers == [f"HTTP/1.1 403 Forbidden: {words}\r\n{fields}\r\n\r\n{body}"] * 2


def test_a_second_request_behind_the_first_goes_nowhere(tmp_path: Path) -> None:
    with Site() as site, Site() as other, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way:
        second = get(other.port, "/stolen", host="127.0.0.1")
        post = f"POST http://localhost:{site.port}/p HTTP/1.1\r\nHost: localhost:{site.port}\r\n"
        answers = [
            way.say(get(site.port) + second),
            way.say(get(site.port) + get(site.port, "/again")),
            way.say(f"{post}Content-Length: 3\r\n\r\nabc{second}"),
            way.say(f"{post}Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n{second}"),
        ]
        assert [(a.count("HTTP/1.1 "), first(a)) for a in answers] == [(1, "HTTP/1.1 200 OK")] * 4
        assert (site.heard, other.heard) == (["GET /a", "GET /a", "POST /p abc", "POST /p abc"], [])


def test_what_can_be_read_in_two_ways_reaches_nobody(tmp_path: Path) -> None:
    with Site() as site, Site() as other, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way:
        here, there = f"localhost:{site.port}", f"127.0.0.1:{other.port}"
        start = f"POST http://{here}/ HTTP/1.1\r\nHost: {here}\r\n"
        tries = [
            f"GET http://{here}/ HTTP/1.1\r\nHost: {there}\r\n\r\n",
            f"GET http://{here}@{there}/ HTTP/1.1\r\n\r\n",
            f"GET http://{there}/ HTTP/1.1\r\nHost: {here}\r\n\r\n",
            f"GET /x HTTP/1.1\r\nHost: {here}\r\n\r\n",
            f"GET http://{here}/ HTTP/1.1\nHost: {there}\r\n\r\n",
            f"{start}Host: {there}\r\n\r\n",
            f"{start}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            f"{start}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
            f"{start}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        ]
        assert [first(way.say(text))[9:12] for text in tries] == ["400"] * len(tries)
        assert (site.heard, other.heard, way.refused()) == ([], [], [])


def test_chunks_that_are_none_end_the_connection_to_the_host(tmp_path: Path) -> None:
    heard: list[bytes] = []
    ended = threading.Event()

    def listen(connection: socket.socket) -> None:
        connection.settimeout(SECONDS)
        try:
            heard.append(read_all(connection))
        except ConnectionResetError:
            heard.append(b"reset")
        ended.set()

    with listening(listen) as port, Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way:
        start = f"POST http://localhost:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = way.say(f"{start}-1\r\nGET /stolen HTTP/1.1\r\n\r\n")
        assert (first(answer)[9:12], ended.wait(SECONDS)) == ("502", True)
    assert b"stolen" not in b"".join(heard)


def test_an_endless_head_and_one_that_drips(tmp_path: Path) -> None:
    with Site() as site, Doorway(tmp_path, [f"fetch(localhost:{site.port})"], head_seconds=3.0) as way:
        assert (
            first(way.say(f"GET http://localhost:{site.port}/ HTTP/1.1\r\nX: {'x' * 200_000}\r\n\r\n"))[9:12] == "431"
        )
        with way.connect() as connection:
            for byte in b"GET http":
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
            assert read_all(connection)[9:12] == b"408"
        assert site.heard == []


def test_an_early_end_is_passed_on_and_the_answer_still_comes(tmp_path: Path) -> None:
    def echo(connection: socket.socket) -> None:
        connection.sendall(b"all of it: " + read_all(connection))

    with listening(echo) as port, Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way:
        said, connection = way.tunnel(f"localhost:{port}")
        with connection:
            connection.sendall(b"question")
            connection.shutdown(socket.SHUT_WR)
            assert (said, read_all(connection)) == (OPEN, b"all of it: question")


def test_the_other_side_may_be_done_first(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def once(connection: socket.socket) -> None:
        connection.sendall(b"bye")
        connection.shutdown(socket.SHUT_WR)
        heard.append(read_all(connection))

    with listening(once) as port, Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way:
        _, connection = way.tunnel(f"localhost:{port}")
        with connection:
            assert read_all(connection) == b"bye"
            connection.sendall(b"still here")
        assert within(SECONDS, lambda: heard == [b"still here"])


def test_hosts_that_do_not_answer_or_answer_nonsense(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    rules = [f"fetch(localhost:{closed})", "fetch(no-such-name.invalid)"]
    with Doorway(tmp_path, rules) as way:
        assert first(way.say(get(closed)))[9:12] == "502"
        assert "no-such-name.invalid has no address" in way.say("CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n")
    with (
        listening(lambda c: c.sendall(b"220 mail\r\n\r\n")) as port,
        Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way,
    ):
        assert first(way.say(get(port)))[9:12] == "502"


def test_fifty_downloads_side_by_side(tmp_path: Path) -> None:
    with Site() as site, Doorway(tmp_path, [f"fetch(localhost:{site.port})"]) as way, ThreadPoolExecutor(50) as pool:
        sizes = [300_000 + n for n in range(50)]
        answers = list(pool.map(lambda size: way.say(get(site.port, f"/n{size}")), sizes))
    assert [len(a.partition("\r\n\r\n")[2]) for a in answers] == sizes


def test_no_more_connections_than_are_meant(tmp_path: Path) -> None:
    with listening(lambda c: read_all(c)) as port, Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way:
        held = [way.tunnel(f"localhost:{port}") for _ in range(MOST_CONNECTIONS)]
        late = way.say(get(port))
        for _, connection in held:
            connection.close()
        assert ({said for said, _ in held}, first(late)[9:12]) == ({OPEN}, "503")
        assert within(SECONDS, lambda: opened(way, port))


def opened(way: Doorway, port: int) -> bool:
    said, connection = way.tunnel(f"localhost:{port}")
    connection.close()
    return said == OPEN


def test_when_the_doors_are_shut_nothing_is_left(tmp_path: Path) -> None:
    with listening(lambda c: read_all(c)) as port, Doorway(tmp_path, [f"fetch(localhost:{port})"]) as way:
        _, connection = way.tunnel(f"localhost:{port}")
        way.doors.close()
        with connection:
            assert connection.recv(1) == b""
        with pytest.raises(OSError, match="refused"):
            way.connect()
    assert [t.name for t in threading.enumerate() if t.name.startswith("refold-")] == []
    assert list((tmp_path / "net").iterdir()) == []


def test_where_this_machine_needs_a_proxy_itself_that_is_used(tmp_path: Path) -> None:
    asked: list[str] = []

    def proxy(connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        asked.append(head.decode())
        if head.startswith(b"CONNECT"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
            connection.sendall(b"inside: " + connection.recv(100))
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")

    with listening(proxy) as port, Site() as site:
        rules = ["fetch(docs.example)", "fetch(direct.invalid)", f"fetch(localhost:{site.port})"]
        outer = {"https_proxy": f"http://me:se%40cret@127.0.0.1:{port}", "HTTP_PROXY": f"127.0.0.1:{port}"}
        with Doorway(tmp_path, rules, environment={**outer, "NO_PROXY": "direct.invalid"}) as way:
            plain = way.say(get(80, "/a?b", host="docs.example"))
            said, connection = way.tunnel("docs.example:443")
            with connection:
                connection.sendall(b"hello")
                inside = read_all(connection)
            direct = way.say("CONNECT direct.invalid:443 HTTP/1.1\r\n\r\n")
            refused = way.say("CONNECT other.example:443 HTTP/1.1\r\n\r\n")
            own = way.say(get(site.port))
    assert (first(plain), plain[-3:], said, inside) == ("HTTP/1.1 200 OK", "yes", OPEN, b"inside: hello")
    assert (first(direct)[9:12], first(refused)[9:12], first(own)) == ("502", "403", "HTTP/1.1 200 OK")
    assert asked == [
        "GET http://docs.example/a?b HTTP/1.1\r\nHost: docs.example\r\nConnection: close\r\n\r\n",
        "CONNECT docs.example:443 HTTP/1.1\r\nHost: docs.example:443\r\n"
        "Proxy-Authorization: Basic bWU6c2VAY3JldA==\r\n\r\n",
    ]


@pytest.mark.parametrize(
    ("outer", "words"),
    [
        ("socks5://127.0.0.1:1080", "the proxy of this machine is of a kind that cannot be used here"),
        ("http://127.0.0.1:99999", "the proxy of this machine is of a kind that cannot be used here"),
        ("http://127.0.0.1:{closed}", "the proxy of this machine cannot be reached"),
        ("http://127.0.0.1:{rude}", "the proxy of this machine answers 407"),
        ("http://127.0.0.1:{silent}", "the proxy of this machine gives no answer"),
    ],
)
def test_a_proxy_of_this_machine_that_does_not_help(tmp_path: Path, outer: str, words: str) -> None:
    def rude(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 407 Login\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    with listening(rude) as rude_port, listening(lambda c: c.recv(1000)) as silent:
        url = outer.format(closed=closed, rude=rude_port, silent=silent)
        with Doorway(tmp_path, ["fetch(docs.example)"], environment={"ALL_PROXY": url}) as way:
            assert first(way.say("CONNECT docs.example:443 HTTP/1.1\r\n\r\n")) == f"HTTP/1.1 502 Bad Gateway: {words}"


@pytest.mark.parametrize(
    ("outside", "host", "direct"),
    [
        ("*", "a.example:443", True),
        ("", "a.example:443", False),
        ("b.example, example", "a.example:443", True),
        (".example", "a.example:443", True),
        ("*.example", "a.example:443", True),
        ("ample", "a.example:443", False),
        ("a.example:443", "a.example:443", True),
        ("a.example:80", "a.example:443", False),
        ("8.8.0.0/16", "8.8.4.4:443", True),
        ("[2606:4700::1]", "[2606:4700::1]:443", True),
        ("8.8.0.0/16", "9.9.9.9:443", False),
    ],
)
def test_which_hosts_need_no_proxy_of_this_machine(outside: str, host: str, direct: bool) -> None:
    environment = {"https_proxy": "http://outer:3128", "HTTPS_PROXY": "http://other:1", "no_proxy": outside}
    found = upstream_of(Request(host), environment)
    assert found == (None if direct else Upstream("outer", 3128))
