"""kill -9 while something slow begins: what the person said is in the log before it, and a resume goes on with it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from agent.hearing import Lines, left_lines
from tests.support.command import argv, refold, script
from transcripts.log import TranscriptLog
from transcripts.records import TurnEnd, User

WORDS = "Mend the cart, and never touch pay.py."

REPLAYED = False  # the first of these sessions made no request


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the slow thing has begun."""
    end = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.005)


def killed_at(begun: Path, words: list[str], cwd: Path, data: bytes = b"") -> None:
    """Runs the command until the slow thing has begun, then kills it and all it started."""
    process = subprocess.Popen(
        argv(*words), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(data)
    process.stdin.flush()
    if not data:
        process.stdin.close()
    try:
        wait_for(begun, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if data:
            process.stdin.close()


def goes_on(tmp_path: Path, cwd: Path) -> None:
    """The message is there, and the next one comes behind it."""
    listed = refold("sessions", cwd=cwd).stdout
    assert WORDS[:30] in listed
    assert f"you: {WORDS}\n" in refold("sessions", "show", "latest", cwd=cwd).stdout
    model = script(tmp_path / "later.jsonl", "It is mended.")
    done = refold("-p", "Go on.", "-c", "--no-mcp", "--no-hooks", "--model", model, cwd=cwd)
    assert (done.returncode, done.stdout) == (0, "It is mended.\n")
    asked = json.loads(refold("replay", "latest", "--step", "1", cwd=cwd).stdout)
    assert [m["content"] for m in asked["messages"][1:]] == [f"{WORDS}\n\nGo on."]


@pytest.fixture
def slow(tmp_path: Path, home: Path) -> tuple[Path, str]:
    """A file that is made when it begins, and a command that then takes for ever."""
    begun = tmp_path / "begun"
    program = f"touch {shlex.quote(str(begun))}; exec sleep 600"
    return begun, program


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to work in."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def servers(home: Path, program: str) -> None:
    table = {"mcpServers": {"slow": {"command": "bash", "args": ["-c", program]}}}
    home.mkdir(exist_ok=True)
    (home / "mcp.json").write_text(json.dumps(table))


def hooks(home: Path, event: str, program: str) -> None:
    table = {"hooks": {event: [{"hooks": [{"type": "command", "command": program}]}]}}
    home.mkdir(exist_ok=True)
    (home / "hooks.json").write_text(json.dumps(table))


def line(text: str) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"


@pytest.mark.parametrize("way", ["words", "stdin", "conversation"])
def test_while_mcp_servers_start(tmp_path: Path, home: Path, work: Path, slow: tuple[Path, str], way: str) -> None:
    begun, program = slow
    servers(home, program if way != "conversation" else f"sleep 2; {program}")
    model = ["--model", script(tmp_path / "s.jsonl", "One.")]
    if way == "words":
        killed_at(begun, ["-p", WORDS, *model], work)
    elif way == "stdin":
        (tmp_path / "prompt.txt").write_text(WORDS)
        killed_at(begun, ["-p", "--prompt-file", str(tmp_path / "prompt.txt"), *model], work)
    else:
        words = ["-p", "--input-format", "stream-json", "-o", "stream-json", *model]
        killed_at(begun, words, work, line(WORDS) + line("and more"))
    goes_on(tmp_path, work)


def test_while_hooks_run_at_the_beginning(tmp_path: Path, home: Path, work: Path, slow: tuple[Path, str]) -> None:
    begun, program = slow
    hooks(home, "SessionStart", program)
    killed_at(begun, ["-p", WORDS, "--model", script(tmp_path / "s.jsonl", "One.")], work)
    goes_on(tmp_path, work)


def test_while_a_server_is_asked_for_its_window(tmp_path: Path, home: Path, work: Path, mute: socket.socket) -> None:
    address = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
    words = ["-p", WORDS, "--model", "openai_chat:some", "--set", f"base_url={address}", "--set", "api_key=abcdefghij"]
    process = subprocess.Popen(argv(*words), cwd=work, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mute.settimeout(60)
    mute.accept()[0].close()
    process.kill()
    process.wait()
    goes_on(tmp_path, work)


def test_in_a_chat(tmp_path: Path, home: Path, work: Path, slow: tuple[Path, str]) -> None:
    begun, program = slow
    servers(home, program)
    words = argv("--model", script(tmp_path / "s.jsonl", "One."))
    child = pexpect.spawn(sys.executable, words[1:], cwd=str(work), env={**os.environ, "TERM": "dumb"}, timeout=60)
    child.expect("> ")
    child.sendline(WORDS)
    end = time.monotonic() + 60
    while not begun.exists():
        assert child.isalive() and time.monotonic() < end
        time.sleep(0.005)
    child.kill(signal.SIGKILL)
    child.wait()
    child.close()
    goes_on(tmp_path, work)


def test_what_a_hook_refuses_reaches_no_log(tmp_path: Path, home: Path, work: Path) -> None:
    """The one thing that is asked before a message is written down: a hook may refuse it for what stands in it."""
    hooks(home, "UserPromptSubmit", "grep -q Mend && { echo not now >&2; exit 2; }; exit 0")
    model = script(tmp_path / "s.jsonl", "One.")
    done = refold("-p", WORDS, "--model", model, cwd=work)
    assert (done.returncode, "not now" in done.stderr) == (3, True)
    assert not any(b"Mend" in p.read_bytes() for p in home.rglob("*.jsonl"))
    assert refold("-p", "Hello", "--model", model, cwd=work).stdout == "One.\n"


def test_a_line_said_while_it_works(tmp_path: Path, home: Path, work: Path) -> None:
    """It waits for the next step, and the step for a command; what was taken back is not taken up."""
    begun = tmp_path / "begun"
    wait = {"calls": [{"name": "bash", "arguments": {"command": f"touch {begun}; exec sleep 600"}}]}
    model = script(tmp_path / "s.jsonl", wait, "One.", "Two.")
    words = argv("--model", model, "--yolo")
    child = pexpect.spawn(sys.executable, words[1:], cwd=str(work), env={**os.environ, "TERM": "dumb"}, timeout=60)
    child.expect("> ")
    child.sendline("Begin.")
    end = time.monotonic() + 60
    while not begun.exists():
        assert child.isalive() and time.monotonic() < end
        time.sleep(0.01)
    child.sendline("And never touch pay.py.")
    log = next((home / "sessions").glob("*/*.jsonl"))
    while b"never touch" not in log.read_bytes():
        assert child.isalive() and time.monotonic() < end
        time.sleep(0.01)
    child.kill(signal.SIGKILL)
    child.wait()
    child.close()
    done = refold("-p", "Go on.", "-c", "--model", model, cwd=work)
    assert (done.returncode, "Said while it worked, and taken up now: And never touch pay.py." in done.stderr) == (
        0,
        True,
    )
    shown = refold("sessions", "show", "latest", cwd=work).stdout
    assert [row.partition(" ")[2] for row in shown.splitlines() if "you: " in row or "steered: " in row] == [
        "you: Begin.",
        "steered: And never touch pay.py.",
        "you: Go on.",
    ]
    again = refold("-p", "More.", "-c", "--model", model, cwd=work)
    assert "taken up" not in again.stderr


def test_a_line_that_was_taken_back_or_handed_over_is_not_taken_up() -> None:
    log = TranscriptLog.memory()
    lines = Lines(log.append)
    for text in ("one", "two", "three"):
        lines.add(text)
    assert (left_lines(log.entries), lines.take_back()) == (["one", "two", "three"], "three")
    assert (left_lines(log.entries), lines.taken()) == (["one", "two"], ["one", "two"])
    log.append(User("one", "steered"))
    assert left_lines(log.entries) == ["two"]
    log.append(TurnEnd("error"))
    lines.add("one")
    assert left_lines(log.entries) == ["two", "one"]
    log.append(TurnEnd("done"))
    assert left_lines(log.entries) == []
