"""Servers in a session: their tools, what calls give, and how the session goes on when a server does not."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.commands.base import load_commands
from agent.mcp.names import clean, server_names, tool_names
from agent.permissions.rules import mcp_name
from runtime.events import Event, ToolFinished, ToolProgress, ToolStarted, TurnEnded
from tests.support.command import CHECKOUT
from tests.support.mcp_desk import HELPER, SUPPORT, Desk, call, entry
from tests.support.plain_face import PlainFace
from tests.support.processes import gone

ODD = entry("odd_server")
FLOOD = "import sys; all(map(sys.stdout.write, ['x' * 1_000_000] * 40)); sys.stdout.flush(); input(); input()"


def test_what_a_call_gives(tmp_path: Path) -> None:
    saved = tmp_path / "ws" / "x.txt"
    script = [
        call("helper__add", a=1, b=2),
        call("helper__save", path=str(saved), text="x"),
        call("helper__fail"),
        call("helper__figures"),
        call("helper__add", a="one"),
        call("helper__long_text", count=60_000),
    ]
    with Desk(tmp_path, "auto", script, {"helper": HELPER}) as desk:
        results = desk.send()
        assert results[:2] == ["ok: 3", f"ok: wrote {saved}"]
        assert results[2].startswith("error: ")
        assert json.loads(results[3].removeprefix("ok: ")) == {"answer": 42}
        assert results[4].startswith("error: ")
        assert "line 0\n" in results[5] and "line 59999" in results[5]
        assert len(results[5]) < desk.session.engine.policy.share + 100
        kinds = [e.effect for e in desk.events if isinstance(e, ToolStarted)]
        assert kinds == ["execute"] * 6


def test_what_a_tool_wrote_is_taken_back(tmp_path: Path) -> None:
    saved = tmp_path / "ws" / "x.txt"
    with Desk(tmp_path, "auto", [call("helper__save", path=str(saved), text="x")], {"helper": HELPER}) as desk:
        desk.send()
        assert saved.read_text() == "x"
        asyncio.run(load_commands()["undo"].run(PlainFace(desk.session, [True]), ""))
        assert not saved.exists()


def test_pictures_are_shown_to_a_model_that_takes_them(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [call("helper__picture")], {"helper": HELPER}) as desk:
        desk.model.takes_images = True  # type: ignore[attr-defined]
        assert desk.send() == ["ok: [A picture.]"]
        result = next(e.result for e in desk.events if isinstance(e, ToolFinished))
        assert [(i.media, desk.session.log.blobs.get(i.blob)[:4]) for i in result.images] == [("image/png", b"\x89PNG")]


def test_odd_names_and_schemas(tmp_path: Path) -> None:
    args = {"self": None, "ctx": {"deep": [1, None]}, "a-b c": 3, "more": True}
    with Desk(tmp_path, "auto", [], {"odd one": {**ODD, "args": [*ODD["args"], "--many", "300"]}}) as desk:
        desk.send()
        tools = desk.session.servers.tools
        assert len(tools) == 200
        assert desk.notices[1:] == ["The MCP server odd one: only its first 200 tools are offered."]
        assert all(len(name) <= 64 and name.isascii() and " " not in name for name in tools)
        specs = {s["function"]["name"]: s["function"] for s in desk.model.views[-1].tools}
        by_remote = {t.remote: t.name for t in tools.values()}
        assert specs[by_remote["über.größe"]]["parameters"] == tools[by_remote["über.größe"]].parameters
        assert by_remote["plain"] == "mcp__odd_one__plain"
        assert (by_remote["a_b"], by_remote["with__two"]) == ("mcp__odd_one__a_b", "mcp__odd_one__with_two")
        names = [by_remote[n].removeprefix("mcp__") for n in ("a b", "a/b", "x" * 90, "")]
    with Desk(
        tmp_path, "auto", [call(n, **args) for n in names] + [call("odd_one__plain", self="")], {"odd one": ODD}
    ) as desk:
        results = desk.send()
        given = [json.loads(r.removeprefix("ok: ")) for r in results[:-1]]
        assert given == [[n, args] for n in ("a b", "a/b", "x" * 90, "")]
        assert results[-1] == (
            "error: [A link to x: file:///x]\n[file:///y]\nthe text of y\n[file:///z: application/zip, not shown]\n"
            "[audio (audio/wav), not shown]\n[A picture (image/png) that cannot be shown here.]"
        )


def test_a_result_that_is_no_text_is_mended(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [call("odd__a_b", self="garbled")], {"odd": ODD}) as desk:
        assert desk.send() == ["ok: ? lone, \ufffdNUL \0, \x1b[31mred"]


def test_the_person_knows_how_much_of_the_window_tools_take(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [], {"odd": {**ODD, "args": [*ODD["args"], "--many", "100"]}}, window=16_000) as desk:
        desk.send()
        took = [re.sub("[0-9,]+", "N", n) for n in desk.notices if "every request" in n]
        assert took == ["The tools of MCP servers take N of the window's N tokens in every request."]


def test_names() -> None:
    found = server_names(["a", "a b", "a_b", "b" * 30, "b" * 31, "ü"])
    assert {n: c for n, c in found.items() if len(n) < 30} == {"a": "a", "a b": "a_b_c8687a", "a_b": "a_b", "ü": "x"}
    assert all(len(c) <= 24 for c in found.values())
    assert len(set(found.values())) == len(found)
    assert clean("__a__b--c__") == "a_b--c"
    # Rules of the person's name what theirs are called: a folder's cannot become that.
    assert server_names(["my.docs", "x"], ["my_docs", "y", "x"]) == {
        "my.docs": "my_docs", "x": "x", "my_docs": "my_docs_8287f0", "y": "y",
    }  # fmt: skip
    assert tool_names("s", ["t", "t"]) == {"t": "mcp__s__t"}


@given(st.lists(st.text(max_size=90), max_size=12), st.text(max_size=40))
def test_whatever_servers_call_their_tools_providers_take_it(names: list[str], server: str) -> None:
    called = server_names([server])[server]
    found = tool_names(called, names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(set(names))
    assert all(re.fullmatch(r"mcp__[A-Za-z0-9_-]{1,59}", full) for full in found.values())
    assert all(mcp_name(full).partition("/")[0] == called for full in found.values())


def test_the_prefix_stays_the_same_and_a_resumed_session_goes_on(tmp_path: Path) -> None:
    script = [call("helper__add", a=1, b=2), "three", call("helper__add", a=1, b=3), "four"]
    with Desk(tmp_path, "auto", script, {"helper": HELPER}) as desk:

        async def both() -> list[list[str]]:
            return [await desk.turn(), await desk.turn()]

        assert asyncio.run(both()) == [["ok: 3"], ["ok: 4"]]
        tools = [v.tools for v in desk.model.views]
        assert all(t == tools[0] for t in tools)
        assert len(tools) == 4
        ident = desk.session.id
    with Desk(tmp_path, "auto", [], {}, resume=ident) as desk:
        desk.send()
        assert desk.model.views[-1].system == desk.session.engine.system
        assert len(desk.model.views[-1].tools) == len(tools[0])


def test_another_model_keeps_the_tools(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"text": "other"}\n')
    with Desk(tmp_path, "auto", ["one"], {"helper": HELPER}) as desk:

        async def both() -> None:
            await desk.turn()
            desk.session.use_model(f"scripted:{tmp_path / 'other.jsonl'}")
            await desk.turn()

        asyncio.run(both())
        model = desk.session.model
        assert "mcp__helper__add" in {s["function"]["name"] for s in model.views[-1].tools}  # type: ignore[attr-defined]


def test_a_sub_agent_has_the_tools_too(tmp_path: Path) -> None:
    task = {"name": "task", "arguments": {"description": "sum", "prompt": "add", "kind": "work"}}
    script = [{"calls": [task]}, call("helper__add", a=20, b=3), "it is 23"]
    with Desk(tmp_path, "auto", script, {"helper": HELPER}) as desk:
        assert "it is 23" in desk.send()[0]
        results = [m["content"] for m in desk.model.views[2].messages if m["role"] == "tool"]
        assert results == ["23"]


def test_a_server_that_dies_is_started_again_at_the_next_call(tmp_path: Path) -> None:
    log = tmp_path / "ws" / "starts"
    script = [call("helper__die"), call("helper__add", a=1, b=2)]
    with Desk(tmp_path, "auto", script, {"helper": entry("mcp_server", "--log", str(log))}) as desk:
        assert desk.send() == [
            "error: The MCP server helper: it has ended. It may have done part of this; it is started again at the "
            "next call.",
            "ok: 3",
        ]
    assert len(log.read_text().split()) == 2


def test_a_server_that_cannot_be_started_again_is_an_error_the_model_can_read(tmp_path: Path) -> None:
    program = tmp_path / "ws" / "server.py"
    program.parent.mkdir()
    program.write_text((SUPPORT / "odd_server.py").read_text())
    servers = {"odd": {"command": sys.executable, "args": [str(program)]}}
    with Desk(tmp_path, "auto", [call("odd__a_b", self="x"), "gone", call("odd__a_b", self="x")], servers) as desk:

        async def both() -> list[str]:
            await desk.turn()
            program.write_text("import sys; sys.exit('it is broken now')")
            desk.session.servers.all[0].link.close()  # type: ignore[union-attr]
            return await desk.turn()

        assert asyncio.run(both()) == [
            "error: The MCP server odd cannot be used again: it has ended (it is broken now)."
        ]


def test_slow_and_broken_servers_are_left_out_and_the_others_are_there(tmp_path: Path) -> None:
    servers = {
        "slow": {**entry("mcp_server", "--slow", "30", str(tmp_path)), "startup_timeout": 1.5},
        "other": {**entry("mcp_server", "--slow", "30", str(tmp_path)), "startup_timeout": 1.5},
        "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit('no such thing')"]},
        "silent": {"command": "sleep", "args": ["60"], "startup_timeout": 1},
        "echo": {"command": "cat", "startup_timeout": 15},
        "flood": {"command": sys.executable, "args": ["-c", FLOOD]},
        "odd": ODD,
    }
    began = time.monotonic()
    with Desk(tmp_path, "yolo", [call("odd__a_b", self="x")], servers) as desk:
        assert desk.send() == ['ok: ["a_b", {"self": "x"}]']
        assert time.monotonic() - began < 20
        assert desk.notices == [
            "Starting MCP servers: slow, other, broken, silent, echo, flood, odd",
            "The MCP server slow is left out: it did not start within 1.5 s.",
            "The MCP server other is left out: it did not start within 1.5 s.",
            "The MCP server broken is left out: it has ended (no such thing).",
            "The MCP server silent is left out: it did not start within 1 s.",
            "The MCP server echo is left out: Method not found.",
            "The MCP server flood is left out: it has ended (it sent a message that is too long).",
        ]
    assert gone(str(tmp_path))


def test_a_call_that_takes_too_long(tmp_path: Path) -> None:
    mark = tmp_path / "ws" / "late"
    wait = call("helper__wait", seconds=20, mark=str(mark))
    servers = {"helper": {**HELPER, "timeout": 3}}
    with Desk(tmp_path, "auto", [wait, call("helper__add", a=1, b=1)], servers) as desk:
        assert desk.send() == ["error: The MCP server helper: it did not answer within 3 s.", "ok: 2"]


def test_an_interrupt_stops_a_running_call_at_once_and_the_server_is_told(tmp_path: Path) -> None:
    mark = tmp_path / "ws" / "late"
    wait = call("helper__wait", seconds=20, mark=str(mark))
    with Desk(tmp_path, "auto", [wait, call("helper__add", a=1, b=1)], {"helper": HELPER}) as desk:
        moment: list[float] = []

        def stop(event: Event) -> None:
            if isinstance(event, ToolProgress):
                moment.append(time.monotonic())
                desk.session.interrupt()
            if isinstance(event, TurnEnded):
                moment.append(time.monotonic())

        async def both() -> list[str]:
            await desk.turn(see=stop)
            for _ in range(100):
                if mark.with_name("late.cancelled").exists():
                    break
                await asyncio.sleep(0.02)
            return await desk.turn()

        assert asyncio.run(both()) == ["ok: 2"]
        assert moment[1] - moment[0] < 10
        assert mark.with_name("late.cancelled").exists()
        assert not mark.exists()


def test_an_interrupt_while_servers_start_keeps_the_message_and_they_start_with_the_next(tmp_path: Path) -> None:
    log = tmp_path / "ws" / "starts"
    servers = {"helper": entry("mcp_server", "--slow", "0.5", "--log", str(log))}
    with Desk(tmp_path, "auto", [call("helper__add", a=1, b=1)], servers) as desk:

        async def both() -> tuple[float, list[str]]:
            turn = asyncio.ensure_future(desk.turn("the first"))
            while not log.exists():
                await asyncio.sleep(0.02)
            began = time.monotonic()
            desk.session.interrupt()
            await turn
            return time.monotonic() - began, await desk.turn("the second")

        seconds, results = asyncio.run(both())
        assert (seconds < 10, results) == (True, ["ok: 2"])
        said = [e.record.text for e in desk.session.log.entries if e.kind == "user"]
        assert said == ["the first", "the second"]


@contextmanager
def service(port: int) -> Iterator[None]:
    """A server on this port of the loopback, from when it takes connections."""
    words = [sys.executable, str(SUPPORT / "mcp_server.py"), "--http", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(200):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
        process.kill()


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_a_service_that_was_away_is_connected_again(tmp_path: Path, port: int) -> None:
    far = {"far": {"url": f"http://127.0.0.1:{port}/mcp"}}
    add = call("far__add", a=1, b=2)
    with Desk(tmp_path, "yolo", [add, "ok", add, "ok", add, add], far) as desk:

        async def turns() -> list[str]:
            with service(port):
                first = await desk.turn()
            without = await desk.turn()
            with service(port):
                return [*first, *without, *await desk.turn()]

        results = asyncio.run(turns())
        assert [r.partition(":")[0] for r in results] == ["ok", "error", "ok", "ok"]


def test_a_service_is_asked_about_in_auto_and_goes_by_its_rule(tmp_path: Path, port: int) -> None:
    far = {"far": {"url": f"http://127.0.0.1:{port}/mcp"}, "none": {"url": "http://127.0.0.1:9/mcp"}}
    script = [call("far__add", a=1, b=2), call("far__fail"), call("far__add", a=2, b=2)]
    with service(port), Desk(tmp_path, "auto", script, far, allow=("mcp(far/add)",)) as desk:
        results = desk.send()
        assert results == [
            "ok: 3",
            "denied: [Not allowed, and nobody is here to ask: the MCP server far is a service elsewhere. The rule that "
            "would allow it: mcp(far/fail)]",
            "ok: 4",
        ]
        assert [n for n in desk.notices if "none" in n][1:] == [
            "The MCP server none is left out: All connection attempts failed."
        ]


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    with Desk(tmp_path, "auto", [], {"helper": HELPER}) as desk:
        own = desk.own
    (tmp_path / "s.jsonl").write_text('{"text": "the answer"}\n')
    without = (
        f"import sys; sys.modules['mcp'] = None; sys.path.insert(0, {str(CHECKOUT)!r}); from main import app; app()"
    )
    words = [sys.executable, "-c", without, "-p", "go", "--model", f"scripted:{tmp_path / 's.jsonl'}"]
    env = {**os.environ, "REFOLD_HOME": str(own)}
    done = subprocess.run(words, cwd=tmp_path / "ws", env=env, capture_output=True, text=True, input="")
    assert (done.returncode, done.stdout) == (0, "the answer\n")
    assert [line for line in done.stderr.splitlines() if "mcp" in line] == [
        "MCP servers need what the extra `mcp` brings: pip install 'refold[mcp]'"
    ]
