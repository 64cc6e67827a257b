"""Where a command begins and where it ends: signals while it starts, streams that are closed or cannot be written, and
what the machine refuses. One line, a true exit code, no traceback."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.faults import reason, refused
from tests.support.command import CHECKOUT, argv, refold, script

STOPPED = "refold: interrupted by Ctrl-C (SIGINT)\n"
AT_AN_IMPORT = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
number, place = int(sys.argv.pop(1)), sys.argv.pop(1)
from main import app
class Finder:
    count = 0
    def find_spec(self, name, *more):
        Finder.count += 1
        if place in (name, str(Finder.count)):
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
app()
"""
"""Runs the command and sends it a signal when it imports a module: one with this name, or so many of them."""
COMMANDS = {
    "version": ("--version",),
    "slip": ("sessions", "--nothing-like-it"),
    "sessions": ("sessions",),
    "doctor": ("doctor",),
    "explain": ("permissions", "explain", "ls"),
    "mcp": ("mcp", "list"),
    "completion": ("completion", "bash"),
    "man": ("man",),
    "trust": ("trust",),
    "help": ("--help",),
}


def signalled(number: int, place: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command, sent a signal at an import."""
    line = [sys.executable, "-c", AT_AN_IMPORT, str(CHECKOUT), str(int(number)), place, *words]
    return subprocess.run(line, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("place", [2, 5, 20, 60, 120, 200, 300, 400])
def test_ctrl_c_while_it_starts_is_one_line(place: int, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Done."})
    for words in (*COMMANDS.values(), ("-p", "x", "--model", model)):
        done = signalled(signal.SIGINT, str(place), *words, cwd=tmp_path)
        if done.returncode == 130:
            assert (done.stdout, done.stderr) == ("", STOPPED), words
        else:  # it was not reached: so many modules are not imported
            assert "Traceback" not in done.stderr and STOPPED not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("number", "code", "cause"),
    [(signal.SIGINT, 130, "sigint"), (signal.SIGTERM, 143, "sigterm"), (signal.SIGHUP, 129, "sighup")],
)
def test_a_script_has_its_result_of_a_run_that_was_stopped_before_there_was_a_turn(
    number: int, code: int, cause: str, tmp_path: Path, home: Path
) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Done."})
    words = ("-p", "x", "--model", model, "-o", "json")
    done = signalled(number, "agent.models.scripted", *words, cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["is_error"], result["meta"]["cause"]) == (code, True, cause), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path, home: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = signalled(signal.SIGINT, "60", "sessions", cwd=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr) == (0, "")


# -- streams --------------------------------------------------------------------------------------------------------


def in_shell(ending: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command with the redirections of a shell behind it."""
    line = ["bash", "-c", f'exec "$@" {ending}', "bash", *argv(*words)]
    return subprocess.run(line, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "slip"])
def test_an_answer_that_cannot_be_written(name: str, tmp_path: Path, home: Path) -> None:
    done = in_shell(">/dev/full", *COMMANDS[name], cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.endswith("the disk is full\n")


@pytest.mark.parametrize("ending", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_fault(ending: str, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Done."})
    assert refold("-p", "x", "--model", model, cwd=tmp_path).returncode == 0
    for words in (("sessions", "export", "latest"), ("replay", "--verify"), ("sessions",), ("--version",), ("man",)):
        done = in_shell(ending, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words


@pytest.mark.parametrize("ending", ["2>&-", "2>/dev/full"])
def test_what_cannot_be_complained_about_ends_with_the_same_code(ending: str, tmp_path: Path, home: Path) -> None:
    for words, code in ((("sessions", "--nothing-like-it"), 2), (("sessions", "show", "none"), 2), (("-p", "x"), 41)):
        done = in_shell(ending, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", ""), words


def test_what_an_encoding_has_no_sign_for(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Füße → 足"})
    assert refold("-p", "Größe?", "--model", model, cwd=tmp_path).stdout == "Füße → 足\n"
    done = refold("sessions", "show", "latest", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr, "F??e ? ?" in done.stdout) == (0, "", True)


# -- limits ---------------------------------------------------------------------------------------------------------


def limited(kind: int, most: int, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command under a limit of the system's."""

    def limit() -> None:
        resource.setrlimit(kind, (most, most))

    return subprocess.run(
        argv(*words), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, preexec_fn=limit
    )


@pytest.mark.parametrize("words", [("doctor",), ("permissions", "explain", "ls"), ("sessions",), ("mcp", "list")])
def test_where_no_file_may_be_written(words: tuple[str, ...], tmp_path: Path, home: Path) -> None:
    free = refold(*words, cwd=tmp_path)
    done = limited(resource.RLIMIT_FSIZE, 0, *words, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (free.returncode, False), done.stderr


def test_a_session_that_may_not_be_written(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "Done."})
    done = limited(resource.RLIMIT_FSIZE, 0, "-p", "x", "--model", model, "-o", "json", cwd=tmp_path)
    result: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, result["is_error"], result["meta"]["cause"]) == (1, True, "log")
    assert len(done.stderr.splitlines()) == 1


def test_what_this_machine_refuses_is_no_fault_of_refold() -> None:
    assert [reason(OSError(n, os.strerror(n))) for n in (errno.EMFILE, errno.EFBIG, errno.ENOMEM)] == [
        "this process has as many files open as it may (ulimit -n)",
        "a file may not grow that large (ulimit -f)",
        "there is too little memory",
    ]
    assert reason(FileNotFoundError(errno.ENOENT, "No usable place in /a, /b")) == "no usable place in /a, /b"
    assert reason(MemoryError()) == "there is too little memory"
    assert reason(RuntimeError("can't start new thread")) == "no more processes can be started now (ulimit -u)"
    errors = (
        OSError(5, "x"),
        MemoryError(),
        RuntimeError("can't start new thread"),
        RuntimeError("x"),
        ValueError("x"),
    )
    assert [refused(error) for error in errors] == [True, True, True, False, False]


@pytest.mark.parametrize("place", ["~", "", "/", "/nowhere/at/all", "relative", "/dev/null"])
def test_any_home(place: str, tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"calls": [{"name": "grep", "arguments": {"pattern": "x"}}]}, "Done.")
    done = refold("-p", "x", "--model", model, cwd=tmp_path, env={"HOME": place})
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (0, "Done.\n", False), done.stderr


def test_nobody_else_can_put_anything_into_a_home_that_is_made_whatever_the_umask(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    call = {"calls": [{"name": "bash", "arguments": {"command": "true"}}]}
    model = script(tmp_path / "script.jsonl", call, "Done.")
    line = ["bash", "-c", 'umask 000; exec "$@"', "bash", *argv("-p", "x", "--model", model, "--yolo")]
    env = {**os.environ, "REFOLD_HOME": str(home)}
    subprocess.run(line, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=env, timeout=100)
    folders = [home.parent, home, *(folder for folder in home.rglob("*") if folder.is_dir())]
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders} == {"0o700"}
    assert any(path.suffix == ".jsonl" for path in home.rglob("*"))


@pytest.mark.parametrize(("mode", "sign"), [(0o777, "!"), (0o770, "-"), (0o755, "+")])
def test_doctor_tells_of_a_home_that_others_can_write(mode: int, sign: str, tmp_path: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    home.chmod(mode)
    found = [line for line in refold("doctor", cwd=tmp_path).stdout.splitlines() if "home   " in line]
    said = "" if sign == "+" else ": others can write there, and so change what may run"
    assert found == [f"{sign} home        {home}{said}"]


def test_doctor_looks_at_a_home_that_is_a_loop_or_shut(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    done = refold("doctor", cwd=tmp_path, env={"REFOLD_HOME": str(tmp_path / "loop")})
    assert f"! home        {tmp_path / 'loop'} cannot be written" in done.stdout.splitlines()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions").symlink_to("sessions")
    done = refold("doctor", cwd=tmp_path, env={"REFOLD_HOME": str(tmp_path / "home")})
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_sandbox_works_where_no_program_is_found(path: str, tmp_path: Path, home: Path) -> None:
    usual = [line for line in refold("doctor", cwd=tmp_path).stdout.splitlines() if "sandbox" in line]
    found = refold("doctor", cwd=tmp_path, env={"PATH": path}).stdout.splitlines()
    assert [line for line in found if "sandbox" in line] == usual


# -- folders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [b"bad\xff\xfebytes", b"new\nline", "ü".encode() * 127, b"$(touch x) 'a' \"b\""])
def test_a_folder_of_any_name(name: bytes, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    calls = [
        {"name": "write", "arguments": {"path": "a.txt", "content": "word\n"}},
        {"name": "grep", "arguments": {"pattern": "word"}},
        {"name": "bash", "arguments": {"command": "cat a.txt > b.txt"}},
    ]
    model = script(tmp_path / "script.jsonl", *({"calls": [call]} for call in calls), "Done.")
    done = refold("-p", "x", "--model", model, "--yolo", cwd=folder)
    assert (done.returncode, done.stdout, "error" in done.stderr) == (0, "Done.\n", False), done.stderr
    assert (folder / "b.txt").read_text() == "word\n"
    for words in (("replay", "--verify"), ("sessions",), ("sessions", "export", "latest"), ("mcp", "list"), ("trust",)):
        done = refold(*words, cwd=folder)
        assert (done.returncode, done.stderr) == (0, ""), words


def test_why_a_folder_cannot_be_worked_in(tmp_path: Path, home: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    said = [refold("trust", "--cd", place, cwd=tmp_path).stderr for place in ("loop", "none", "n" * 300)]
    assert said == [
        "refold: the folder loop cannot be used: it is a link that leads back to itself\n",
        "refold: there is no folder none\n",
        f"refold: the folder {'n' * 300} cannot be used: its name is too long\n",
    ]


def test_why_a_file_that_was_named_cannot_be_used(tmp_path: Path, home: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    model = script(tmp_path / "script.jsonl", "Done.")
    words = ("-p", "x", "--model", model)
    done = [
        refold(*words, "--mcp-config", "loop", cwd=tmp_path),
        refold(*words, "--add-dir", "loop", cwd=tmp_path),
        refold(*words, "--resume", "loop.jsonl", cwd=tmp_path),
        refold("replay", "loop.jsonl", cwd=tmp_path),
    ]
    link = "it is a link that leads back to itself\n"
    assert [(one.returncode, one.stderr) for one in done] == [
        (2, f"refold: the file {tmp_path / 'loop'} cannot be used: {link}"),
        (2, f"refold: the folder {tmp_path / 'loop'} cannot be used: {link}"),
        (2, "refold: loop.jsonl cannot be read: too many levels of symbolic links.\n"),
        (2, "refold: loop.jsonl cannot be read: too many levels of symbolic links.\n"),
    ]


def test_output_that_was_lost_is_told_of(tmp_path: Path, home: Path) -> None:
    call = {"name": "bash", "arguments": {"command": "seq 1 20000"}}
    model = script(tmp_path / "script.jsonl", {"calls": [call]}, "Done.")
    words = ("-p", "x", "--model", model, "--yolo", "--no-session-persistence", "-o", "stream-json")
    done = limited(resource.RLIMIT_FSIZE, 50_000, *words, cwd=tmp_path)
    (said,) = [c["content"] for m in map(json.loads, done.stdout.splitlines()) if m["type"] == "user"
               for c in m["message"]["content"] if c["type"] == "tool_result"]  # fmt: skip
    assert done.returncode == 0, done.stderr
    lost, ended = said.splitlines()[-2:]
    assert lost.endswith(" takes nothing more: what it printed after this is lost]")
    assert ended == f"[killed by signal {signal.SIGXFSZ.value}]"
