"""Signals, closed pipes and kill -9: a clean end, no orphan, a session that goes on."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import argv, lines, refold, script

MARK = "131.4159"
"""Seconds of a sleep by which an orphan would be recognised."""
SLEEP = {"text": "I wait.", "calls": [{"name": "bash", "arguments": {"command": f"sleep {MARK}"}}]}
DONE = {"text": "Done."}


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """An empty folder to work in."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def sleepers(folder: Path) -> list[int]:
    """The processes that sleep as SLEEP does and work in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            marked = entry.name.isdigit() and MARK.encode() in (entry / "cmdline").read_bytes()
            if marked and os.readlink(entry / "cwd") == str(folder.resolve()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def start(folder: Path, model: str, *words: str) -> subprocess.Popen[str]:
    """The command, running."""
    return subprocess.Popen(
        argv("-p", "Wait", "--model", model, "--yolo", *words),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(condition: Any, seconds: float = 60) -> None:
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "code", "why"),
    [
        (signal.SIGINT, 130, "interrupted by Ctrl-C (SIGINT)"),
        (signal.SIGTERM, 143, "terminated (SIGTERM)"),
        (signal.SIGHUP, 129, "the terminal went away (SIGHUP)"),
    ],
)
def test_a_signal_ends_it_cleanly(number: int, code: int, why: str, folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", SLEEP, DONE)
    process = start(folder, model, "-o", "json")
    until(lambda: sleepers(folder))
    sent = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1]) == (code, f"refold: {why}")
    assert time.monotonic() - sent < 15
    assert sleepers(folder) == []
    result = json.loads(out)
    assert (result["is_error"], result["meta"]["exit_code"], result["result"]) == (True, code, "I wait.")
    again = refold("-p", "Go on", "-c", cwd=folder)
    assert (again.returncode, again.stdout) == (0, "Done.\n")


def test_a_signal_while_the_model_is_silent(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "late", "delay": 60})
    process = start(folder, model, "-o", "stream-json")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, lines(out)[-1]["meta"]["cause"]) == (130, "sigint")


def test_what_was_half_said_is_kept(folder: Path, tmp_path: Path) -> None:
    long = " ".join(f"word{n}" for n in range(400))
    model = script(tmp_path / "script.jsonl", {"text": long, "stream_delay": 0.05}, DONE)
    process = start(folder, model, "-o", "stream-json", "--include-partial-messages")
    assert process.stdout is not None
    for line in process.stdout:
        if "word20" in line:
            break
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    said = lines(out)[-1]["result"]
    assert process.returncode == 143
    assert long.startswith(said.rstrip()) and "word20" in said
    assert "word20" in refold("sessions", "show", "latest", cwd=folder).stdout


def test_a_reader_that_goes_away(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", SLEEP, DONE)
    line = " ".join(argv("-p", "Wait", "--model", model, "--yolo", "-o", "stream-json"))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} | head -1"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, json.loads(done.stdout)["subtype"]) == (1, "init")
    assert done.stderr.splitlines()[-1] == "refold: standard output was closed by its reader"
    assert sleepers(folder) == []
    again = refold("-p", "Go on", "-c", cwd=folder)
    assert again.returncode == 0


def test_a_reader_that_never_reads_does_not_stop_the_clock(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "x" * 300_000}, DONE)
    process = start(folder, model, "-o", "stream-json", "--include-partial-messages")
    assert process.stdout and process.stderr
    fd = process.stdout.fileno()
    until(lambda: struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"1234"))[0] > 60_000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    process.stdout.close()
    process.stderr.close()


def test_kill_9_loses_nothing_and_repeats_nothing(folder: Path, tmp_path: Path) -> None:
    write = [
        {"calls": [{"name": "bash", "arguments": {"command": f"echo {n} >> done.txt"}}], "text": f"step {n}"}
        for n in range(6)
    ]
    model = script(tmp_path / "script.jsonl", *write, SLEEP, {"text": "I was cut off."})
    process = start(folder, model)
    until(lambda: sleepers(folder))
    process.kill()
    process.communicate()
    for pid in sleepers(folder):
        os.kill(pid, signal.SIGKILL)
    done = refold("-p", "Go on", "--continue", "-o", "stream-json", cwd=folder)
    assert (done.returncode, lines(done.stdout)[-1]["result"]) == (0, "I was cut off.")
    assert (folder / "done.txt").read_text() == "0\n1\n2\n3\n4\n5\n"
    shown = refold("sessions", "show", "latest", cwd=folder).stdout
    assert [n for n in range(6) if f"refold: step {n}" not in shown] == []
    assert "bash unknown:" in shown


def test_two_processes_do_not_share_a_session(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", SLEEP, DONE)
    process = start(folder, model)
    until(lambda: sleepers(folder))
    second = refold("-p", "Me too", "-c", cwd=folder)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert second.returncode == 2
    assert f"process {process.pid}" in second.stderr and "--fork-session" in second.stderr
