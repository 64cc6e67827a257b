"""A session whose commands reach the hosts that rules allow: what the model is told of those that were refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.permissions.reach import FILTERING
from agent.sandbox import RUNGS, Rung, Sandbox
from tests.support.command import argv, refold, script
from tests.support.doorway import Site
from tests.support.extended import Talk, World, call
from tests.support.processes import gone, running, within

PRESENT = [rung for rung in RUNGS if rung.kind in FILTERING and not rung.why_not()]
GET = "import sys, urllib.request\nfor url in sys.argv[1:]:\n    "
GET += "try: print(urllib.request.urlopen(url).read().decode().strip())\n    "
GET += "except OSError as error: print(type(error).__name__)\n"


@pytest.fixture(params=PRESENT, ids=lambda rung: rung.kind)
def rung(request: pytest.FixtureRequest) -> Rung:
    return request.param


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.put("get.py", GET)
    return made


def confine(talk: Talk, world: World, rung: Rung) -> None:
    """Puts the session on one rung."""
    safety = talk.session.safety
    box = Sandbox(world.ws, world.own, rungs=[rung], temporary=[world.ws.parent / "temp"])
    box.rules, box.doors, safety.sandbox = safety.permissions, safety.sandbox.doors, box


def get(*urls: str) -> str:
    return f"{sys.executable} get.py {' '.join(urls)}"


def refusal(host: str, rule: str = "") -> str:
    return f"[the sandbox refused {host}; a rule fetch({rule or host}) would allow it]"


def test_the_model_is_told_what_was_refused_and_which_rule_would_allow_it(world: World, rung: Rung) -> None:
    (world.ws.parent / "temp").mkdir()
    with Site() as site:
        urls = [f"http://localhost:{site.port}/a", "http://localhost:1/b", "https://pypi.example/c"]
        plays = [call("bash", command=get(*urls)), call("bash", command=get(*urls[:2])), call("bash", command="true")]
        with world.open(*plays, mode="auto", allow=(f"fetch(localhost:{site.port})",)) as talk:
            confine(talk, world, rung)
            talk.say()
            told = [refusal("localhost:1"), refusal("pypi.example:443", "pypi.example")]
            assert talk.results == [
                "\n".join(["ok: page /a", "HTTPError", "URLError", *told]),
                "\n".join(["ok: page /a", "HTTPError", refusal("localhost:1")]),
                "ok: (no output), exit code 0",
            ]
        assert site.heard == ["GET /a"] * 2


def test_a_background_command_tells_it_when_it_is_read(world: World, rung: Rung) -> None:
    (world.ws.parent / "temp").mkdir()
    slow = f"sleep 2; {get('http://docs.example/b')}"
    plays = [call("bash", command=slow, background=True), call("jobs", action="wait", id=1, seconds=60)]
    with world.open(*plays, mode="auto", allow=("fetch(example.org)",)) as talk:
        confine(talk, world, rung)
        talk.say()
        started, waited = talk.results
    assert started.startswith("ok: (no output)\n[runs in the background as job 1;")
    told = refusal("docs.example:80", "docs.example")
    assert waited == f"ok: HTTPError\n{told}\n[exit code 0]"


@pytest.mark.parametrize("mode", ["plan", "auto"])
def test_in_plan_and_without_a_rule_nothing_is_reached(world: World, rung: Rung, mode: str) -> None:
    (world.ws.parent / "temp").mkdir()
    with Site() as site:
        allow = (f"fetch(localhost:{site.port})",) if mode == "plan" else ()
        plays: list[Any] = [call("bash", command=get(f"http://localhost:{site.port}/a"))]
        with world.open(*plays, mode=mode, allow=allow) as talk:
            confine(talk, world, rung)
            talk.say()
            assert talk.results == ["ok: URLError"]
        assert site.heard == []


def test_a_rule_counts_from_the_next_request_on(world: World, rung: Rung) -> None:
    (world.ws.parent / "temp").mkdir()
    with Site() as site:
        again = call("bash", command=get(f"http://localhost:{site.port}/a"))
        with world.open(again, {"text": "refused"}, again, mode="auto", allow=("fetch(localhost:1)",)) as talk:
            confine(talk, world, rung)
            talk.say()
            first = talk.results
            talk.session.permissions.remember(f"fetch(localhost:{site.port})", "user")
            talk.say()
            host = f"localhost:{site.port}"
            assert (first, talk.results) == ([f"ok: HTTPError\n{refusal(host)}"], ["ok: page /a"])


def test_what_goes_on_in_plan_reaches_nothing_from_then_on(world: World, rung: Rung) -> None:
    (world.ws.parent / "temp").mkdir()
    with Site() as site:
        address = f"http://localhost:{site.port}/a"
        waiting = f"until [ -e go ]; do sleep 0.1; done; {get(address)}"
        plays = [call("bash", command=waiting, background=True), {"text": "it runs"}]
        plays += [call("jobs", action="wait", id=1, seconds=60)]
        with world.open(*plays, mode="auto", allow=(f"fetch(localhost:{site.port})",)) as talk:
            confine(talk, world, rung)
            talk.say()
            talk.session.permissions.set_mode("plan")
            world.put("go", "")
            talk.say()
            told = f"[the sandbox refused localhost:{site.port}; the mode plan reaches no host]"
            assert talk.results == [f"ok: HTTPError\n{told}\n[exit code 0]"]
        assert site.heard == []


def test_after_kill_9_its_command_is_gone_and_the_next_session_clears_up(world: World, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", call("bash", command="touch begun; sleep 4772; true"))
    words = argv("-p", "go", "--model", model, "--permission-mode", "auto", "--allow", "fetch(example.org)")
    env = {**os.environ, "REFOLD_HOME": str(world.own), "REFOLD_ENV_FILE": ""}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, cwd=world.ws, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        assert within(60, lambda: (world.ws / "begun").exists())
    finally:
        process.kill()
        process.wait()
    assert gone(str(world.ws), 30)
    [left] = (world.own / "net").iterdir()
    with world.open(call("bash", command="true"), mode="auto", allow=("fetch(example.org)",)) as talk:
        talk.say()
        assert not left.exists()


def test_the_doors_of_a_session_end_with_it(world: World, rung: Rung) -> None:
    (world.ws.parent / "temp").mkdir()
    with world.open(call("bash", command="true"), mode="auto", allow=("fetch(example.org)",)) as talk:
        confine(talk, world, rung)
        talk.say()
        assert len(list((world.own / "net").iterdir())) == 1
    assert (list((world.own / "net").iterdir()), running(str(world.ws))) == ([], [])


def test_explain_names_the_hosts(world: World, rung: Rung) -> None:
    world.put("~/permissions.toml", '[user]\nallow = ["fetch(docs.example)"]\n')
    env = {"REFOLD_HOME": str(world.own), "REFOLD_ENV_FILE": ""}
    done = refold("permissions", "explain", "make", "--permission-mode", "auto", cwd=world.ws, env=env)
    assert done.stdout.splitlines() == [
        "It runs unasked (mode auto): it runs in the sandbox.",
        "  runs: in the sandbox, where it can change the workspace and reaches only these hosts: docs.example",
    ]
