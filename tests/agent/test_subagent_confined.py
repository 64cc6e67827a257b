"""A sub-agent is held by what holds its session: it really tries, on every rung that is present."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.permissions import Approval, Verdict
from agent.sandbox import RUNGS, Rung
from tests.support.tasked import Desk, bash, call, calls, results_of, task

PRESENT = [rung for rung in RUNGS if not rung.why_not()]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("ws", "home/.ssh", "home/.refold", "outside", "temp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("the private key\n")
    (tmp_path / "home" / ".refold" / ".env").write_text("SOME_API_KEY=the api key\n")
    (tmp_path / "outside" / "b.txt").write_text("b\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A server on this machine that would take a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def python(code: str) -> dict[str, object]:
    """A script of Python's; where it comes to its end it says so."""
    return bash(
        f"python3 - <<'END'\nimport os, socket\nhome = os.environ['HOME']\n{code}\nprint('it ' + 'worked')\nEND"
    )


def tries(base: Path, port: int) -> list[dict[str, object]]:
    """Attempts; paths are put together at run time, so that nothing but the sandbox can know them."""
    return [
        bash(f"F={base}/outside/b.txt; echo x >> $F && echo it 'work'ed"),
        bash(f"D={base}/outside; mkdir $D/made && echo it 'work'ed"),
        bash('cat "$HOME"/.s?h/id_* "$HOME"/.ref?ld/.e*'),
        python("open(home + '/x', 'w')"),
        python("print(open(home + '/.s' + 'sh/id_' + 'rsa').read())"),
        python("print(open(home + '/.ref' + 'old/.e' + 'nv').read())"),
        python(f"socket.create_connection(('127.0.0.1', {port}), 1)"),
        python("socket.create_connection(('192.0.2.1', 80), 1)"),
        calls(call("write", path=str(base / "outside" / "new.txt"), content="x")),
        calls(call("edit", path=str(base / "outside" / "b.txt"), old="b", new="x")),
        calls(call("read", path=str(base / "home" / ".ssh" / "id_rsa"))),
        calls(call("read", path=str(base / "home" / ".refold" / ".env"))),
        calls(call("grep", pattern="key", path=str(base / "home" / ".ssh"))),
        calls(call("fetch", url=f"http://127.0.0.1:{port}/")),
        bash("touch /etc/refold-was-here", outside=True),
    ]


def untouched(base: Path, listening: socket.socket) -> None:
    """Nothing outside of the workspace has changed, and nobody has connected."""
    assert {p.name: p.read_text() for p in (base / "outside").iterdir()} == {"b.txt": "b\n"}
    assert sorted(os.listdir(base / "home")) == [".refold", ".ssh"]
    assert not Path("/etc/refold-was-here").exists()
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("kind", ["explore", "work"])
@pytest.mark.parametrize("mode", ["plan", "auto"])
@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_what_a_sub_agent_tries_beyond_the_workspace_fails(
    base: Path, rung: Rung, mode: str, kind: str, listening: socket.socket
) -> None:
    script = tries(base, listening.getsockname()[1])
    with Desk(
        base, [calls(task("break out", kind))], {"break out": [*script, "I tried."]}, mode=mode, rung=rung
    ) as desk:
        (result,) = desk.send()
        (log,) = desk.logs()
        said = results_of(log)
    assert (result.status, result.text.partition("\n")[0]) == ("ok", "I tried.")
    assert len(said) == len(script)
    assert [line for line in said if line.startswith("ok")] == []
    whole = log.read_text() + desk.session.path.read_text()
    assert not [words for words in ("it worked", "private key", "the api key") if words in whole]
    untouched(base, listening)


@pytest.mark.parametrize("mode", ["ask", "edits", "auto", "yolo"])
@pytest.mark.parametrize("rung", PRESENT, ids=lambda rung: rung.kind)
def test_one_that_explores_changes_nothing_in_any_mode(
    base: Path, rung: Rung, mode: str, listening: socket.socket
) -> None:
    script = [
        bash("cat a.txt; echo x > new.txt"),
        bash("rm a.txt"),
        python("open('by-python.txt', 'w')"),
        bash("D=.; mkdir $D/made", outside=True),
        calls(call("write", path="w.txt", content="w")),
        calls(call("edit", path="a.txt", old="a", new="b")),
        calls(call("apply_patch", patch="*** Begin Patch\n*** Add File: p.txt\n+p\n*** End Patch")),
        calls(call("task", description="deeper", prompt="x", kind="work")),
        python(f"socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}), 1)"),
    ]
    desk = Desk(
        base, [calls(task("look"))], {"look": [*script, "Seen."]}, mode=mode, rung=rung, answer=lambda a: Verdict(True)
    )
    with desk:
        (result,) = desk.send()
        said = results_of(desk.logs()[0])
    assert (result.status, {a.call.name for a in desk.asked}) == ("ok", {"bash"} if mode in ("ask", "edits") else set())
    assert [line for line in said if line.startswith("ok")] == []
    assert said[0].startswith("error: a\n")
    assert said[3] == "denied: [Denied: a sub-agent that explores never leaves the sandbox]"
    known = "The tools are: read, bash, grep, glob, todo, recall, jobs."
    assert said[4:8] == [f"error: There is no tool {n!r}. {known}" for n in ("write", "edit", "apply_patch", "task")]
    assert {p.name: p.read_text() for p in (base / "ws").iterdir()} == {"a.txt": "a\n"}
    untouched(base, listening)


def test_without_a_sandbox_one_that_explores_runs_only_what_is_known_to_read(base: Path) -> None:
    script = [bash("cat a.txt"), bash("echo x > new.txt"), bash('python3 -c \'open("p", "w")\'')]
    with Desk(base, [calls(task("look"))], {"look": [*script, "Seen."]}, mode="yolo") as desk:
        desk.session.safety.sandbox._rungs = ()
        desk.send()
        said = results_of(desk.logs()[0])
    assert [line.partition(":")[0] for line in said] == ["ok", "denied", "denied"]
    assert said[1].startswith("denied: [Denied: a sub-agent that explores only reads: ")
    assert sorted(os.listdir(base / "ws")) == ["a.txt"]


@pytest.mark.parametrize("rung", PRESENT[:1], ids=lambda rung: rung.kind)
def test_several_side_by_side_change_nothing(base: Path, rung: Rung) -> None:
    tasks = {f"n{n}": [bash(f"sleep 0.0{n}; echo x > by{n}.txt; echo end") for _ in range(6)] for n in range(4)}
    answer = calls(*(task(name) for name in tasks), call("glob", pattern="*"))
    with Desk(base, [answer], {k: [*v, "ok"] for k, v in tasks.items()}, mode="yolo", rung=rung) as desk:
        assert [r.status for r in desk.send()] == ["ok"] * 5
        assert len(desk.logs()) == 4
    assert sorted(os.listdir(base / "ws")) == ["a.txt"]


def test_questions_name_the_sub_agent_and_a_denial_reaches_it(base: Path) -> None:
    def answer(approval: Approval) -> Verdict:
        return Verdict(approval.call.name == "write", message="not that")

    script = [calls(call("write", path="n.txt", content="n")), bash("make all"), "Half of it."]
    with Desk(base, [calls(task("do it", "work"))], {"do it": script}, mode="ask", answer=answer) as desk:
        (result,) = desk.send()
        said = results_of(desk.logs()[0])
    assert [(a.by, a.title) for a in desk.asked] == [
        ("sub-agent: do it", "write n.txt"),
        ("sub-agent: do it", "$ make all"),
    ]
    assert said[1] == "denied: [The person did not allow this call. They said: not that]"
    assert (result.status, (base / "ws" / "n.txt").read_text()) == ("ok", "n")


def test_a_change_of_the_mode_holds_at_once(base: Path) -> None:
    def answer(approval: Approval) -> Verdict:
        desk.session.set_mode("plan")
        return Verdict(True)

    script = [calls(call("write", path=n, content="n")) for n in ("one.txt", "two.txt")]
    with Desk(base, [calls(task("do it", "work"))], {"do it": [*script, "x"]}, mode="ask", answer=answer) as desk:
        desk.send()
        said = results_of(desk.logs()[0])
    assert [line.partition(":")[0] for line in said] == ["ok", "denied"]
    assert sorted(os.listdir(base / "ws")) == ["a.txt", "one.txt"]


def test_a_rule_can_forbid_sub_agents(base: Path) -> None:
    with Desk(base, [calls(task("look"))], {}, deny=("task",)) as desk:
        assert [(r.status, r.text) for r in desk.send()] == [("denied", "[Denied: your rule task says so]")]


@pytest.mark.parametrize("kind", ["explore", "work"])
def test_hooks_hold_for_it(base: Path, kind: str) -> None:
    guard = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo not here >&2; exit 2"}]}
    after = {"matcher": "Read", "hooks": [{"type": "command", "command": "echo look twice >&2; exit 2"}]}
    hooks = {"hooks": {"PreToolUse": [guard], "PostToolUse": [after]}}
    (base / "home" / ".refold" / "hooks.json").write_text(json.dumps(hooks))
    script = [bash("ls"), calls(call("read", path="a.txt")), "x"]
    with Desk(base, [calls(task("do it", kind))], {"do it": script}, mode="yolo") as desk:
        desk.send()
        said = results_of(desk.logs()[0])
    assert said[0].startswith("denied: [Denied: the hook `echo not here >&2; exit 2` refuses it: not here")
    assert said[1].endswith("[The PostToolUse hook `echo look twice >&2; exit 2` says: look twice]")
