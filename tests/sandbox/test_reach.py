"""Which hosts rules let commands reach: by name, by port, by the address that a name leads to."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.permissions import Permissions, parse_rule
from agent.permissions.reach import Reach, public
from agent.sandbox.http_heads import BadRequestError, Request, parse_answer, parse_request


def reach(*allow: str, deny: Sequence[str] = (), ask: Sequence[str] = ()) -> Reach:
    rules = [parse_rule(r) for r in allow]
    return Reach([*rules, *(parse_rule(r, "deny") for r in deny), *(parse_rule(r, "ask") for r in ask)])


@pytest.mark.parametrize(
    ("rules", "host", "words"),
    [
        (["fetch(example.org)"], "example.org:443", ""),
        (["fetch(example.org)"], "example.org:22", ""),
        (["fetch(example.org:443)"], "example.org:443", ""),
        (["fetch(example.org:443)"], "example.org:80", "a rule fetch(example.org) would allow it"),
        (["fetch(example.org)"], "www.example.org:443", "a rule fetch(www.example.org) would allow it"),
        (["fetch(*.example.org)"], "www.example.org:443", ""),
        (["fetch(*.example.org)"], "a.b.example.org:443", ""),
        (["fetch(*.example.org)"], "example.org:443", "a rule fetch(example.org) would allow it"),
        (["fetch(*.example.org)"], "evilexample.org:443", "a rule fetch(evilexample.org) would allow it"),
        (["fetch(example.org)"], "example.org.evil.net:443", "a rule fetch(example.org.evil.net) would allow it"),
        (["fetch(Example.ORG)"], "example.org:443", ""),
        (["fetch"], "anything.net:1", ""),
        (["*"], "anything.net:1", ""),
        ([], "localhost:3000", "a rule fetch(localhost:3000) would allow it"),
        ([], "10.0.0.1:80", "a rule fetch(10.0.0.1:80) would allow it"),
        ([], "[::1]:80", "a rule fetch([::1]:80) would allow it"),
        ([], "8.8.8.8:53", "a rule fetch(8.8.8.8) would allow it"),
        (["fetch([::1]:80)"], "[::1]:80", ""),
        (["bash(curl *)", "read(example.org)"], "example.org:443", "a rule fetch(example.org) would allow it"),
    ],
)
def test_names(rules: list[str], host: str, words: str) -> None:
    found = reach(*rules).refusal(host)
    assert (found.words if found else "") == (words and f"the sandbox refused {host}; {words}")


def test_deny_beats_ask_and_ask_beats_allow() -> None:
    rules = reach("fetch", deny=["fetch(*.evil.net)"], ask=["fetch(*.net)"])
    words = [
        found and found.words for host in ("a.org:1", "a.net:1", "x.evil.net:1") for found in [rules.refusal(host)]
    ]
    assert words == [
        None,
        "the sandbox refused a.net:1; the rule fetch(*.net) wants to be asked, and a command cannot wait for that",
        "the sandbox refused x.evil.net:1; the rule fetch(*.evil.net) forbids it",
    ]


@pytest.mark.parametrize(
    ("rules", "host", "address", "allowed"),
    [
        (["fetch(example.org)"], "example.org:443", "93.184.215.14", True),
        (["fetch(example.org)"], "example.org:443", "2606:2800:220:1::1", True),
        (["fetch(example.org)"], "example.org:443", "127.0.0.1", False),
        (["fetch(example.org)"], "example.org:443", "10.0.0.7", False),
        (["fetch(example.org)"], "example.org:443", "169.254.169.254", False),
        (["fetch(example.org)"], "example.org:443", "100.64.0.1", False),
        (["fetch(example.org)"], "example.org:443", "0.0.0.0", False),
        (["fetch(example.org)"], "example.org:443", "224.0.0.1", False),
        (["fetch(example.org)"], "example.org:443", "::1", False),
        (["fetch(example.org)"], "example.org:443", "fe80::1", False),
        (["fetch(example.org)"], "example.org:443", "fd00::1", False),
        (["fetch(example.org)"], "example.org:443", "fec0::1", False),
        (["fetch(example.org)"], "example.org:443", "::ffff:127.0.0.1", False),
        (["fetch(example.org)"], "example.org:443", "::7f00:1", False),
        (["fetch(example.org)"], "example.org:443", "64:ff9b::7f00:1", False),
        (["fetch(example.org)"], "example.org:443", "64:ff9b::5db8:d70e", True),
        (["fetch(example.org)"], "example.org:443", "2002:a00:7::1", False),
        (["fetch"], "example.org:443", "127.0.0.1", False),
        (["*"], "127.0.0.1:80", "127.0.0.1", False),
        (["fetch(*)"], "localhost:80", "127.0.0.1", False),
        (["fetch(*:80)"], "localhost:80", "127.0.0.1", False),
        (["fetch(*.*)"], "127.0.0.1:80", "127.0.0.1", False),
        (["fetch(localhost)"], "localhost:80", "127.0.0.1", True),
        (["fetch(localhost)"], "localhost:80", "::1", True),
        (["fetch(localhost)"], "localhost:80", "10.0.0.7", False),
        (["fetch(localhost:3000)"], "localhost:80", "127.0.0.1", False),
        (["fetch(*.localhost)"], "app.localhost:80", "127.0.0.1", True),
        (["fetch(127.0.0.1:80)"], "127.0.0.1:80", "127.0.0.1", True),
        (["fetch(git.corp)", "fetch(10.0.0.7)"], "git.corp:443", "10.0.0.7", True),
        (["fetch(git.corp)", "fetch(10.0.0.7:80)"], "git.corp:443", "10.0.0.7", False),
        (["fetch(git.corp)", "fetch(10.*)"], "git.corp:443", "10.3.2.1", True),
    ],
)
def test_an_address_that_is_not_public_has_to_be_named(
    rules: list[str], host: str, address: str, allowed: bool
) -> None:
    assert (reach(*rules).address_refusal(host, ipaddress.ip_address(address)) is None) is allowed


def test_a_deny_of_an_address_holds_for_the_names_that_lead_there() -> None:
    found = reach("fetch", deny=["fetch(93.184.215.14)"]).address_refusal(
        "example.org:443", ipaddress.ip_address("93.184.215.14")
    )
    assert found is not None
    assert found.words == "the sandbox refused example.org:443; the rule fetch(93.184.215.14) forbids it"
    private = reach("fetch(a.org)").address_refusal("a.org:80", ipaddress.ip_address("10.0.0.1"))
    assert private is not None
    words = "10.0.0.1 lies in this machine's own network, and a rule fetch(10.0.0.1:80) would allow it"
    assert private.words == f"the sandbox refused a.org:80; {words}"


def test_rules_are_looked_at_anew_and_rules_that_cannot_be_read_allow_nothing(tmp_path: Path) -> None:
    gate = Permissions("auto", root=tmp_path, home=tmp_path / "own")
    found = Reach(gate.rules)
    assert (found.allowed(), found.refusal("a.org:80") is None) == ([], False)
    gate.remember("fetch(a.org)", "user")
    assert (found.allowed(), found.refusal("a.org:80")) == (["a.org"], None)
    (tmp_path / "own" / "permissions.toml").write_text("[user\n")
    refusal = found.refusal("a.org:80")
    assert refusal is not None
    assert (found.allowed(), refusal.words) == ([], "the sandbox refused a.org:80; the rules cannot be read")


def test_a_command_means_its_own_loopback_unless_a_rule_names_it() -> None:
    assert reach("fetch").loopback() == ["localhost", "127.0.0.1", "::1", "[::1]"]
    assert reach("fetch(localhost:3000)").loopback() == ["127.0.0.1", "::1", "[::1]"]
    assert reach("fetch([::1]:80)", "fetch(127.0.0.1)").loopback() == ["localhost"]


def test_what_is_public() -> None:
    inner = "192.168.0.1 172.31.9.9 240.0.0.1 255.255.255.255 0.1.2.3 100.127.0.1 ::ffff:10.0.0.1 ff02::1 64:ff9b:1::1"
    outer = "1.1.1.1 172.32.0.1 100.128.0.1 198.18.0.1 2606:4700::1 2001:db8::1"
    found = {a: public(ipaddress.ip_address(a)) for a in f"{inner} {outer}".split()}
    assert found == dict.fromkeys(inner.split(), False) | dict.fromkeys(outer.split(), True)


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("example.org:443", "example.org:443"),
        ("EXAMPLE.org.:443", "example.org:443"),
        ("[::1]:443", "[::1]:443"),
        ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"),
        ("[0:0:0:0:0:0:0:1]:443", "[::1]:443"),
        ("2130706433:80", "127.0.0.1:80"),
        ("0x7f.1:80", "127.0.0.1:80"),
        ("0177.0.0.1:080", "127.0.0.1:80"),
        ("example.org", ""),
        ("example.org:", ""),
        ("example.org:0", ""),
        ("example.org:65536", ""),
        ("example.org:443:444", ""),
        ("example.org:443@evil.net:443", ""),
        ("user@example.org:443", ""),
        ("exam%70le.org:443", ""),
        ("example.org%00.evil.net:443", ""),
        ("[fe80::1%25eth0]:443", ""),
        ("[::1].evil.net:443", ""),
        ("http://example.org:443", ""),
        ("exämple.org:443", ""),
        ("example.org/x:443", ""),
        (".:443", ""),
        (":443", ""),
    ],
)
def test_the_host_of_a_tunnel(target: str, host: str) -> None:
    head = f"CONNECT {target} HTTP/1.1\r\nHost: allowed.net\r\n\r\n".encode()
    try:
        assert parse_request(head) == Request(host)
    except BadRequestError:
        assert host == ""


def test_what_is_passed_on_of_a_request() -> None:
    fields = (
        "Host: Example.ORG:80\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nProxy-Authorization: Basic c2VjcmV0"
    )
    head = f"POST HTTP://EXAMPLE.org/a?b=%20 HTTP/1.1\r\n{fields}\r\nContent-Length: 3\r\nAccept:  */* \r\n\r\n"
    passed = (
        "POST /a?b=%20 HTTP/1.1\r\nHost: example.org\r\ncontent-length: 3\r\naccept: */*\r\nConnection: close\r\n\r\n"
    )
    assert parse_request(head.encode()) == Request("example.org:80", passed.encode(), 3)
    bare = parse_request(b"GET http://example.org:8080?q HTTP/1.0\r\n\r\n")
    assert bare.head == b"GET /?q HTTP/1.0\r\nHost: example.org:8080\r\nConnection: close\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n"
    assert parse_answer(answer) == (200, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\n")


GET = "GET http://example.org/ HTTP/1.1\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET https://example.org/ HTTP/1.1\r\n\r\n",
        "GET http://example.org/ HTTP/2.0\r\n\r\n",
        "GET  http://example.org/ HTTP/1.1\r\n\r\n",
        "GET http://example.org/ x HTTP/1.1\r\n\r\n",
        "GET http://example.org/#x HTTP/1.1\r\n\r\n",
        "GET http://user:word@example.org/ HTTP/1.1\r\n\r\n",
        "GET http://example.org\\@evil.net/ HTTP/1.1\r\n\r\n",
        f"{GET}Host: evil.net\r\n\r\n",
        f"{GET}Host: example.org:8080\r\n\r\n",
        f"{GET}Host: example.org\r\nHost: example.org\r\n\r\n",
        f"{GET}Host: example.org\r\nHost: evil.net\r\n\r\n",
        f"{GET}Host : evil.net\r\n\r\n",
        f"{GET} Host: evil.net\r\n\r\n",
        f"{GET}X: 1\r\n Host: evil.net\r\n\r\n",
        f"{GET}X: 1\nHost: evil.net\r\n\r\n",
        f"{GET}X: 1\rHost: evil.net\r\n\r\n",
        f"{GET}X: \0\r\n\r\n",
        f"{GET}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        f"{GET}Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        f"{GET}Content-Length: 3, 3\r\n\r\n",
        f"{GET}Content-Length: +3\r\n\r\n",
        f"{GET}Content-Length: -3\r\n\r\n",
        f"{GET}Content-Length: 0x3\r\n\r\n",
        f"{GET}Transfer-Encoding: gzip, chunked\r\n\r\n",
        f"{GET}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        f"{GET}Transfer-Encoding: xchunked\r\n\r\n",
        "\r\n\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_not_passed_on(head: str) -> None:
    with pytest.raises(BadRequestError):
        parse_request(head.encode())
