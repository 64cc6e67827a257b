"""What a server tries that it should not, from inside its tools, through a whole session; and that it ends with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.permissions import Verdict
from agent.sandbox import RUNGS, Rung
from agent.trust import Trust
from runtime.events import Event, ToolProgress
from tests.support.command import argv, lines, refold, script
from tests.support.mcp_desk import EVIL, HELPER, Desk, call, entry
from tests.support.processes import gone, running, within

PRESENT = [rung for rung in RUNGS if not rung.why_not()]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("home/.ssh", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("the private key")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def listening() -> Iterator[int]:
    """The port of a server on this machine that would take a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def attempt(*what: object) -> dict[str, object]:
    return call("evil__attempt", what=what)


@pytest.mark.parametrize("mode", ["plan", "edits", "auto"])
@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_what_a_server_tries_beyond_the_workspace_fails(base: Path, rung: Rung, mode: str, listening: int) -> None:
    own, datagrams = base / "home" / ".refold", socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.mkdir()
    datagrams.bind(("127.0.0.1", 0))
    datagrams.setblocking(False)
    (own / ".env").write_text("SOME_API_KEY=the api key")
    tries = [
        attempt("write", str(base / "ws" / "inside.txt")),
        attempt("write", str(base / "outside" / "theirs.txt")),
        attempt("write", str(base / "home" / "x.txt")),
        attempt("read", str(base / "home" / ".ssh" / "id_rsa")),
        attempt("read", str(own / ".env")),
        attempt("read", str(own / "mcp.json")),
        attempt("connect", "127.0.0.1", listening),
        attempt("connect", "192.0.2.1", 80),
        attempt("datagram", "127.0.0.1", datagrams.getsockname()[1]),
    ]
    witness = str(base / "outside" / "started.txt")
    servers = {"evil": entry("evil_server", witness)}
    with Desk(base, mode, tries, servers, rung=rung, answers=[Verdict(True)] * len(tries)) as desk:
        results = desk.send()
    assert len(desk.asked) == (len(tries) if mode == "edits" else 0)
    assert len(results) == len(tries)
    assert [r for r in results if not r.startswith("ok: ")] == []
    assert (results[0] == "ok: done") == (mode != "plan")
    assert [r for r in results[1:-1] if not r.endswith(("Error", "timeout"))] == []
    with datagrams, pytest.raises(BlockingIOError):  # inside, there may be a loopback of its own
        datagrams.recv(1)
    assert (base / "ws" / "inside.txt").exists() == (mode != "plan")
    assert sorted(os.listdir(base / "outside")) == []
    assert not (base / "home" / "x.txt").exists()
    assert gone(f"evil_server.py {witness}")


@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_the_hint_of_a_server_loosens_nothing(base: Path, rung: Rung) -> None:
    tries = [call("evil__open_attempt", what=["write", str(base / "ws" / "x")])]
    with Desk(base, "plan", tries, {"evil": EVIL}, rung=rung) as desk:
        (result,) = desk.send()
    assert result.startswith("denied: [Denied: the mode plan only reads, and this tool does not say that it does")


@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_plan_after_auto_leaves_no_child_that_can_write(base: Path, rung: Rung) -> None:
    written = str(base / "ws" / "x.txt")
    tries = [attempt("write", written), "ok", attempt("write", written)]
    with Desk(base, "auto", tries, {"evil": EVIL}, rung=rung) as d:

        async def both() -> tuple[list[str], list[str]]:
            first = await d.turn()
            (d.ws / "x.txt").unlink()
            before = d.session.servers.all[0].link
            d.session.set_mode("plan")
            assert before is not None and before.child is not None
            await asyncio.wait_for(before.child.ended.wait(), 2)
            return first, await d.turn()

        first, then = asyncio.run(both())
        assert (first, (d.ws / "x.txt").exists()) == (["ok: done"], False)
        assert then[0].startswith("ok: ") and then[0].endswith("Error")


def test_a_mode_that_confines_no_less_leaves_a_server_as_it_is(base: Path) -> None:
    log = base / "ws" / "starts"
    tries = [attempt("environ"), "one", attempt("environ"), "two", attempt("environ")]
    servers = {"evil": entry("evil_server", str(log))}
    with Desk(base, "auto", tries, servers, answers=[Verdict(True)]) as desk:

        async def turns() -> list[bool]:
            await desk.turn()
            first = desk.session.servers.all[0].link
            desk.session.set_mode("edits")
            await desk.turn()
            same = desk.session.servers.all[0].link is first
            desk.session.set_mode("yolo")
            await desk.turn()
            return [same, desk.session.servers.all[0].link is first]

        assert asyncio.run(turns()) == [True, False]


def test_a_server_that_was_starting_when_the_mode_became_stricter_starts_anew(base: Path) -> None:
    log, written = base / "ws" / "starts", base / "ws" / "x.txt"
    slow = entry("mcp_server", "--log", str(log), "--slow", "1")
    with Desk(base, "auto", [call("helper__save", path=str(written), text="x")], {"helper": slow}) as desk:

        async def stricter() -> tuple[list[str], str]:
            turn = asyncio.ensure_future(desk.turn())
            while not log.exists():
                await asyncio.sleep(0.02)
            desk.session.set_mode("plan")
            results, link = await turn, desk.session.servers.all[0].link
            return results, link.confinement if link else ""

        results, confinement = asyncio.run(stricter())
    assert ([r.partition(":")[0] for r in results], confinement) == (["denied"], "read-only")
    assert len(log.read_text().split()) == 1
    assert not written.exists()


def test_a_running_call_is_ended_by_a_stricter_mode(base: Path) -> None:
    wait = call("helper__wait", seconds=30, mark=str(base / "ws" / "late"))
    with Desk(base, "auto", [wait], {"helper": HELPER}) as desk:

        def stricter(event: Event) -> None:
            if isinstance(event, ToolProgress):
                assert event.text == "half (1 of 2)\n"
                desk.session.set_mode("plan")

        assert asyncio.run(desk.turn(see=stricter)) == [
            "error: The MCP server helper was stopped, for the mode is now plan. What the call did until then stays."
        ]


def test_a_call_allowed_in_the_sandbox_runs_there_whatever_the_mode_is_by_then(base: Path) -> None:
    def loosened(desk: Desk) -> Verdict:
        desk.session.set_mode("yolo")
        return Verdict(True)

    outside, servers = base / "outside" / "x", {"evil": {**EVIL, "network": True}}
    with Desk(base, "auto", [attempt("write", str(outside))], servers, answers=[loosened]) as desk:
        assert desk.send()[0].endswith("Error")
    assert not outside.exists()


def test_in_ask_each_call_is_asked_about_and_the_rule_remembered(base: Path) -> None:
    adds = [call("helper__add", a=1, b=2), call("helper__add", a=2, b=2), call("helper__figures")]
    answers = [Verdict(True, "session"), Verdict(False, message="not now")]
    with Desk(base, "ask", adds, {"helper": HELPER}, answers=answers) as desk:
        results = desk.send()
        assert results == ["ok: 3", "ok: 4", "denied: [The person did not allow this call. They said: not now]"]
        assert [(a.title, a.preview, a.judgement.rule) for a in desk.asked] == [
            ("helper/add a: 1, b: 2", '{\n "a": 1,\n "b": 2\n}', "mcp(helper/add)"),
            ("helper/figures", "{}", "mcp(helper/figures)"),
        ]
        assert {a.judgement.reason for a in desk.asked} == {"the mode ask asks before each call"}


def test_a_program_with_the_network_is_asked_about_in_auto_and_refused_in_plan(base: Path, listening: int) -> None:
    servers = {"evil": {**EVIL, "network": True}}
    tries = [attempt("connect", "127.0.0.1", listening), attempt("write", str(base / "outside" / "x"))]
    with Desk(base, "auto", tries, servers, answers=[Verdict(True), Verdict(True)]) as desk:
        results = desk.send()
        assert results[0] == "ok: done"
        assert results[1].endswith("Error")
        assert [a.judgement.reason for a in desk.asked] == ["the MCP server evil may use the network"] * 2
    with Desk(base, "plan", tries, servers) as desk:
        assert [r.partition(":")[0] for r in desk.send()] == ["denied", "denied"]


def test_no_key_of_ours_is_in_the_environment_of_a_server(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key-itself")
    monkeypatch.setenv("GITHUB_TOKEN", "gh-token")
    monkeypatch.setenv("THEIR_TOKEN", "meant-for-it")
    servers = {"evil": {**EVIL, "env": {"GIVEN": "${THEIR_TOKEN}", "ALSO": "${NONE:-other}"}}}
    with Desk(base, "yolo", [attempt("environ")], servers) as desk:
        found = json.loads(desk.send()[0].removeprefix("ok: "))
    assert (found["GIVEN"], found["ALSO"]) == ("meant-for-it", "other")
    assert not {"sk-the-key-itself", "gh-token"} & set(found.values())


@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_what_steers_the_loader_counts_inside_of_the_sandbox_only(base: Path, rung: Rung) -> None:
    """A folder's server could name a library of its own, to be loaded into what sets up the sandbox."""
    steers = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(base / "outside" / "loaded"), "PLAIN": "x"}
    with Desk(base, "auto", [attempt("environ")], {"evil": {**EVIL, "env": steers}}, rung=rung) as desk:
        found = json.loads(desk.send()[0].removeprefix("ok: "))
    assert {name: found[name] for name in steers} == steers
    assert [p.name for p in (base / "outside").iterdir() if p.name.startswith("loaded")] == []


def test_odd_places_and_texts_are_one_line_each(base: Path) -> None:
    servers = {
        "no home": {**EVIL, "cwd": "~nobody-of-this-name/x"},
        "half": {**EVIL, "args": ["\ud800"]},
        "home of none": {"command": "~nobody-of-this-name/x"},
    }
    with Desk(base, "auto", [], servers) as desk:
        desk.send()
        left_out = [n.partition(":")[0] for n in desk.notices if "left out" in n]
    assert left_out == [f"The MCP server {name} is left out" for name in servers]


@pytest.mark.parametrize("name", [".mcp.json", ".refold/mcp.json"])
def test_the_servers_of_a_folder_start_only_once_it_is_trusted(base: Path, name: str) -> None:
    with Desk(base, "yolo", [], {}) as desk:
        witness, file = base / "outside" / "started", desk.ws / name
    file.parent.mkdir(exist_ok=True)
    servers = {"evil": {**entry("evil_server", str(witness)), "env": {"STOLEN": "${HOME}"}}}
    file.write_text(json.dumps({"mcpServers": servers}))
    with Desk(base, "yolo", [attempt("environ")], {}) as desk:
        assert desk.send()[0].startswith("error: There is no tool 'mcp__evil__attempt'")
        assert [n for n in desk.notices if "MCP" in n and "/trust" in n] != []
    assert not witness.exists()
    Trust(desk.own, desk.ws).grant()
    with Desk(base, "yolo", [attempt("environ")], {}) as desk:
        assert json.loads(desk.send()[0].removeprefix("ok: "))["STOLEN"] == "${HOME}"
    assert witness.exists()
    witness.unlink()
    file.write_text(file.read_text() + "\n")
    with Desk(base, "yolo", [], {}) as desk:
        desk.send()
    assert not witness.exists()


def test_a_folder_cannot_take_the_place_of_a_server_of_the_persons(base: Path) -> None:
    with Desk(base, "yolo", [], {}) as desk:
        (desk.ws / ".mcp.json").write_text(json.dumps({"mcpServers": {"helper": EVIL}}))
    Trust(desk.own, desk.ws).grant()
    with Desk(base, "yolo", [call("helper__add", a=1, b=1)], {"helper": HELPER}) as desk:
        assert desk.send() == ["ok: 2"]


@pytest.mark.parametrize("mode", ["auto", "yolo"])
def test_nothing_of_a_server_outlives_a_killed_session(base: Path, mode: str) -> None:
    mark = f"{base}/mark"
    with Desk(base, mode, [], {"evil": entry("evil_server", mark)}) as desk:
        pass
    model = script(base / "s.jsonl", attempt("daemon", mark), {"text": "", "delay": 60})
    words = argv("-p", "go", "--model", model, "--permission-mode", mode, "-o", "stream-json")
    env = {**os.environ, "REFOLD_HOME": str(desk.own)}
    with subprocess.Popen(words, cwd=desk.ws, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while b'"tool_result"' not in process.stdout.readline():
            assert process.poll() is None
        assert within(10, lambda: any("time.sleep(120)" in found.line for found in running(mark)))
        process.send_signal(signal.SIGKILL)
    assert gone(mark)


def test_a_session_that_ends_leaves_nothing(base: Path) -> None:
    mark = f"{base}/mark"
    with Desk(base, "yolo", [attempt("daemon", mark)], {"evil": entry("evil_server", mark)}) as desk:
        assert desk.send() == ["ok: done"]
    assert gone(mark)


@pytest.mark.parametrize("mode", ["auto", "yolo"])
def test_a_server_that_obeys_nothing_ends_with_its_session_while_the_loop_goes_on(base: Path, mode: str) -> None:
    mark = f"{base}/mark"
    with Desk(base, mode, [attempt("environ")], {"evil": entry("evil_server", mark, "--stubborn")}) as desk:

        async def closed() -> bool:
            await desk.turn()
            desk.session.close()
            for _ in range(150):
                if not running(mark):
                    break
                await asyncio.sleep(0.02)
            return running(mark) == []

        assert asyncio.run(closed())


def test_the_real_command_names_servers_and_tools_first(base: Path) -> None:
    with Desk(base, "auto", [], {"evil": EVIL, "gone": {"command": "no-such-program"}}) as desk:
        pass
    model = script(base / "s.jsonl", attempt("write", str(base / "outside" / "x")), {"text": "done"})
    words = ("-p", "go", "--model", model, "--permission-mode", "auto", "-o", "stream-json")
    done = refold(*words, cwd=desk.ws, env={"REFOLD_HOME": str(desk.own)})
    first = lines(done.stdout)[0]
    assert first["mcp_servers"] == [{"name": "evil", "status": "connected"}, {"name": "gone", "status": "failed"}]
    assert first["tools"][-2:] == ["mcp__evil__attempt", "mcp__evil__open_attempt"]
    assert [e["meta"]["text"][:47] for e in lines(done.stdout) if e.get("subtype") == "notice"] == [
        "Starting MCP servers: evil, gone", "The MCP server gone is left out: it has ended (",
    ]  # fmt: skip
    assert done.returncode == 0
    done = refold(*words, "--no-mcp", cwd=desk.ws, env={"REFOLD_HOME": str(desk.own)})
    assert lines(done.stdout)[0]["mcp_servers"] == []


def test_a_leash_ends_what_a_program_left_behind(tmp_path: Path) -> None:
    leash = Path(__file__).resolve().parents[3] / "agent" / "leash.py"
    left = f"import os, time; os.setsid(); time.sleep(60) # {tmp_path}"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {left!r}])"
    read_end, write_end = os.pipe()
    began = time.monotonic()
    words = [sys.executable, "-I", "-S", str(leash), str(read_end), sys.executable, "-c", program]
    done = subprocess.run(words, pass_fds=[read_end])
    os.close(read_end)
    os.close(write_end)
    assert (done.returncode, gone(str(tmp_path))) == (0, True)
    assert time.monotonic() - began < 5
