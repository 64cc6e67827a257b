"""Where servers are named, what is wrong with a file, and the commands that show and change it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent.commands.base import load_commands
from agent.mcp.config import ConfigError, ServerConfig, change, expand, find_servers, parse
from agent.trust import Trust
from tests.support.command import refold, script
from tests.support.mcp_desk import EVIL, HELPER, Desk


def of(servers: object) -> bytes:
    return json.dumps({"mcpServers": servers}).encode()


def test_a_server_in_all_its_parts() -> None:
    program = {"command": "${BIN}/x", "args": ["-t", "${T:-none}"], "env": {"K": "${T}"}, "cwd": "sub", "network": True}
    service = {"type": "http", "url": "https://u:p@example.org/mcp?key=k", "headers": {"A": "Bearer ${T}"}}
    servers = {"p": {**program, "timeout": 5}, "s": service, "off": {"disabled": True}}
    found = parse(of(servers), "f", {"BIN": "/b", "T": "t"})
    assert found == (
        ServerConfig(
            "p", command="/b/x", args=("-t", "t"), env={"K": "t"}, cwd="sub", network=True, timeout=5, source="f"
        ),
        ServerConfig("s", url=service["url"], headers={"A": "Bearer t"}, source="f"),  # type: ignore[arg-type]
        ServerConfig("off", disabled=True, source="f"),
    )
    assert [s.where for s in found[:2]] == ["/b/x -t t", "https://example.org/mcp"]
    assert parse(of({"p": {"command": "${BIN}"}}), "f", None)[0].command == "${BIN}"
    assert expand("$HOME ${A:-} ${A:-b}", {}) == "$HOME  b"


TIMES = "timeout and startup_timeout must be more than 0 seconds and a day at most"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"{", "f is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff", "f is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[]", 'f has no table of servers: {"mcpServers": {"name": {"command": ...}}}'),
        (of({"a": 1}), "f: the server 'a' must be a table"),
        (of({"a": {}}), "f: the server 'a' needs either a command or a url"),
        (of({"a": {"command": "x", "url": "http://x"}}), "f: the server 'a' needs either a command or a url"),
        (of({"a": {"command": "x", "args": "y"}}), "f: the server 'a': args must be a list"),
        (of({"a": {"command": "x", "network": "yes"}}), "f: the server 'a': network must be true or false"),
        (of({"a": {"command": "x", "timeout": True}}), "f: the server 'a': timeout must be a number"),
        (of({"a": {"command": "x", "timeout": 0}}), f"f: the server 'a': {TIMES}"),
        (of({"a": {"command": "x", "timeout": float("nan")}}), f"f: the server 'a': {TIMES}"),
        (of({"a": {"command": "x", "startup_timeout": 10**400}}), f"f: the server 'a': {TIMES}"),
        (of({"a": {"command": "x", "env": {"A\0": "b"}}}), "f: the server 'a' has a NUL in it, which no program can be "
         "given"),
        (b"[" * 100_000, "f is not JSON: maximum recursion depth exceeded while decoding a JSON array from a unicode "
         "string"),
        (of({"a": {"url": "file:///etc/passwd"}}), "f: the server 'a': url must begin with http:// or https://"),
        (of({"a": {"command": "${NONE}"}}), "f: the server 'a': there is no variable NONE in the environment"),
    ],
)  # fmt: skip
def test_one_sentence_says_what_is_wrong(data: bytes, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(data, "f", {})
    assert str(caught.value) == fault


def test_the_stronger_file_names_the_server(tmp_path: Path) -> None:
    ws, home, named = tmp_path / "ws", tmp_path / "home", tmp_path / "named.json"
    (ws / ".refold").mkdir(parents=True)
    home.mkdir()
    for n, file in enumerate((ws / ".mcp.json", ws / ".refold" / "mcp.json", home / "mcp.json", named)):
        file.write_bytes(of({name: {"command": file.name} for name in "abcd"[: 4 - n]}))
    trust = Trust(home, ws)

    def found(**words: bool) -> dict[str, str]:
        return {s.name: s.source for s in find_servers(home, trust, [named], env={}, **words).servers}

    own = str(home / "mcp.json")
    assert found() == {"a": str(named), "b": own}
    assert find_servers(home, trust, env={}).waiting == (".refold/mcp.json", ".mcp.json")
    trust.grant()
    assert found() == {"a": str(named), "b": own, "c": ".refold/mcp.json", "d": ".mcp.json"}
    assert found(own=False) == {"a": str(named)}


def test_a_server_that_is_put_aside_is_not_replaced_by_one_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mcp.json").write_bytes(of({"docs": {"command": "mine", "disabled": True}}))
    (tmp_path / ".mcp.json").write_bytes(of({"docs": {"command": "theirs"}, "more": {"command": "more"}}))
    trust = Trust(tmp_path / "home", tmp_path)
    trust.grant()
    found = find_servers(tmp_path / "home", trust, env={})
    assert [(s.name, s.command) for s in found.servers] == [("more", "more")]


def test_a_broken_file_is_one_line_and_the_session_goes_on(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [], {}) as desk:
        broken = desk.own / "mcp.json"
    broken.write_text("{")
    (tmp_path / "named.json").write_text("[]")
    env, model = {"REFOLD_HOME": str(desk.own)}, script(tmp_path / "s.jsonl", {"text": "the answer"})
    done = refold("-p", "go", "--model", model, cwd=desk.ws, env=env)
    assert (done.returncode, done.stdout) == (0, "the answer\n")
    assert [line for line in done.stderr.splitlines() if "mcp.json" in line] == [
        f"{broken} is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    ]
    for option in ("--no-mcp", "--bare"):
        assert "mcp" not in refold("-p", "go", "--model", model, option, cwd=desk.ws, env=env).stderr
    done = refold("-p", "go", "--model", model, "--mcp-config", "../named.json", cwd=desk.ws, env=env)
    assert done.returncode == 52
    assert done.stderr.splitlines()[-1].startswith(f"refold: {tmp_path / 'named.json'} has no table of servers")
    done = refold("-p", "go", "--model", model, "--mcp-config", "none.json", cwd=desk.ws, env=env)
    assert (done.returncode, done.stderr) == (2, f"refold: there is no file {desk.ws / 'none.json'}\n")


def test_the_servers_of_a_named_file_are_ones_own(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [], {}) as desk:
        (tmp_path / "named.json").write_bytes(of({"helper": HELPER}))
    call = {"calls": [{"name": "mcp__helper__add", "arguments": {"a": 20, "b": 3}}]}
    model = script(tmp_path / "s.jsonl", call, {"text": "done"})
    words = ("-p", "go", "--model", model, "--permission-mode", "auto", "-o", "stream-json", "--bare")
    done = refold(*words, "--mcp-config", "../named.json", cwd=desk.ws, env={"REFOLD_HOME": str(desk.own)})
    assert '"content": "23"' in done.stdout


def test_the_tasks_of_a_batch_have_the_servers_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "named.json").write_bytes(of({"helper": HELPER}))
    call = {"calls": [{"name": "mcp__helper__add", "arguments": {"a": 20, "b": 3}}]}
    model = script(tmp_path / "s.jsonl", call, {"text": "done"})
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "a", "prompt": "go", "model": model}))
    words = ("--mcp-config", "named.json", "--yolo", "-j", "1")
    done = refold("batch", "tasks.jsonl", *words, cwd=tmp_path, env={"REFOLD_HOME": str(tmp_path / "home")})
    assert done.returncode == 0, done.stderr
    logs = [p.read_text() for p in (tmp_path / "home").rglob("*.jsonl") if '"tool_result"' in p.read_text()]
    assert ['"text":"23"' in log for log in logs] == [True]


def test_add_list_and_rm(tmp_path: Path) -> None:
    home, ws = tmp_path / "home", tmp_path / "ws"
    ws.mkdir()

    def mcp(*words: str) -> tuple[int, list[str]]:
        done = refold("mcp", *words, cwd=ws, env={"REFOLD_HOME": str(home)})
        return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]

    file = home / "mcp.json"
    assert mcp() == (0, [f"There are no MCP servers. refold mcp add NAME -- COMMAND adds one to {file}."])
    assert mcp("add", "evil", "-e", "A=b=c", "--", EVIL["command"], *EVIL["args"])[0] == 0
    assert mcp("add", "far", "http://127.0.0.1:9/mcp", "-H", "Authorization: Bearer ${T:-x}", "-H", "X:y")[0] == 0
    assert mcp("add", "net", "--network", "--", "no-such-program")[0] == 0
    assert json.loads(file.read_text()) == {
        "mcpServers": {
            "evil": {**EVIL, "env": {"A": "b=c"}},
            "far": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${T:-x}", "X": "y"}},
            "net": {"command": "no-such-program", "args": [], "network": True},
        }
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, shown = mcp("list", "--permission-mode", "yolo")
    assert (code, shown) == (
        1,
        [
            f"evil: 2 tools  ({EVIL['command']} {EVIL['args'][0]}; from {file})",
            "  mcp__evil__attempt (reads only)  Only reads.",
            "  mcp__evil__open_attempt  Only reads.",
            f"far: failed  (http://127.0.0.1:9/mcp; from {file})",
            "  ! All connection attempts failed.",
            f"net: failed  (no-such-program; from {file})",
            "  ! it has ended (no-such-program: No such file or directory).",
        ],
    )
    assert mcp("rm", "far") == (0, ["far is removed."])
    assert mcp("rm", "far")[0] == 2
    assert list(json.loads(file.read_text())["mcpServers"]) == ["evil", "net"]
    for wrong in (
        ("add",), ("add", "x"), ("add", "a b", "--", "c"), ("add", "a__b", "--", "c"), ("frob",), ("rm",),
        ("add", "x", "http://y", "more"), ("add", "x", "-H", "A:b", "--", "c"), ("add", "x", "-e", "A", "--", "c"),
    ):  # fmt: skip
        assert mcp(*wrong)[0] == 2, wrong


def test_a_change_keeps_what_else_a_file_holds(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"other": 1, "mcpServers": {"a": {"command": "x", "mine": true}}}')
    change(tmp_path, "b", {"url": "http://x"})
    assert json.loads((tmp_path / "mcp.json").read_text()) == {
        "other": 1,
        "mcpServers": {"a": {"command": "x", "mine": True}, "b": {"url": "http://x"}},
    }
    (tmp_path / "mcp.json").write_text("{")
    with pytest.raises(ConfigError):
        change(tmp_path, "b", None)
    assert (tmp_path / "mcp.json").read_text() == "{"


def test_the_command_of_the_chat_and_the_doctor(tmp_path: Path) -> None:
    run = load_commands()["mcp"].run
    with Desk(tmp_path, "yolo", [], {}) as desk:
        face = desk.face
        asyncio.run(run(face, ""))
        assert face.lines[0].startswith("There are no MCP servers.")
    servers = {"evil": EVIL, "gone": {"command": "no-such-program"}}
    with Desk(tmp_path, "yolo", [], servers) as desk:
        face, source = desk.face, str(desk.own / "mcp.json")
        asyncio.run(run(face, ""))
        asyncio.run(desk.turn())
        asyncio.run(run(face, ""))
        assert face.lines == [
            "server | state | tools | from",
            f"evil | starts with your first message |  | {source}",
            f"gone | starts with your first message |  | {source}",
            "server | state | tools | from",
            f"evil | connected | 2 | {source}",
            f"gone | failed |  | {source}",
            "warn: gone: it has ended (no-such-program: No such file or directory).",
            "tool | its server says",
            "mcp__evil__attempt | reads only: Only reads.",
            "mcp__evil__open_attempt | Only reads.",
        ]
    shown = refold("doctor", cwd=desk.ws, env={"REFOLD_HOME": str(desk.own)}).stdout.splitlines()
    assert [" ".join(line.split()) for line in shown if " mcp " in line] == [
        "+ mcp evil, gone: refold mcp list starts them"
    ]


def test_nothing_is_slower_where_there_are_no_servers(tmp_path: Path) -> None:
    """The package of the SDK is not even imported for a session without servers."""
    (tmp_path / "s.jsonl").write_text('{"text": "done"}\n')
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from main import run; run(sys.argv[1:]); "
        "print(sorted({'mcp', 'pydantic'} & set(sys.modules)), file=sys.stderr)"
    )

    root = Path(__file__).resolve().parents[3]
    words = [sys.executable, "-c", code, str(root), "-p", "go", "-q", "--model", f"scripted:{tmp_path / 's.jsonl'}"]
    env = {**os.environ, "REFOLD_HOME": str(tmp_path / "home")}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, input="")
    assert (done.stdout, done.stderr) == ("done\n", "[]\n")
