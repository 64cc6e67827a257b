"""Standard input of `refold -p`: closed, empty, a terminal, an open pipe, huge, binary: never a hang."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.command import argv, refold, script

ECHO = [{"text": "Done."}]


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """An empty folder to work in, with a script beside it."""
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model with one answer."""
    return script(tmp_path / "script.jsonl", *ECHO)


def prompt_of(folder: Path) -> str:
    """The person's words as the newest session keeps them."""
    shown = refold("sessions", "show", "latest", cwd=folder).stdout
    return shown.partition("you: ")[2].partition("\n#")[0]


@pytest.mark.parametrize(
    ("words", "data", "prompt"),
    [
        (["do it"], b"", "do it"),
        ([], b"from the pipe\n", "from the pipe\n"),
        (["-"], b"from the pipe\n", "from the pipe\n"),
        (["look at", "this"], b"a\nb\n", "look at this\n\n<stdin>\na\nb\n\n</stdin>"),
        (["x"], "\ufeffh\xe9".encode(), "x\n\n<stdin>\nh\xe9\n</stdin>"),
        (["x"], "h\xe9".encode("utf-16"), "x\n\n<stdin>\nh\xe9\n</stdin>"),
        (["x"], b"caf\xe9", "x\n\n<stdin>\ncaf\ufffd\n</stdin>"),
    ],
)
def test_what_is_piped(words: list[str], data: bytes, prompt: str, folder: Path, model: str) -> None:
    done = refold("-p", *words, "--model", model, cwd=folder, input=data)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert prompt_of(folder).strip() == prompt.strip()


def test_a_file_as_standard_input_and_a_prompt_file(folder: Path, model: str, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("from a file\n")
    with (tmp_path / "task.md").open() as file:
        done = subprocess.run(argv("-p", "--model", model), cwd=folder, stdin=file, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, prompt_of(folder).strip()) == (0, b"Done.\n", "from a file")
    named = refold("-p", "--prompt-file", str(tmp_path / "task.md"), "--model", model, cwd=folder)
    assert (named.returncode, prompt_of(folder).strip()) == (0, "from a file")


def test_binary_is_refused(folder: Path, model: str) -> None:
    done = refold("-p", "x", "--model", model, cwd=folder, input=b"\x7fELF\x00\x01\x02" * 100)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "refold: standard input is not text: it has NUL bytes"


def test_closed_streams_are_no_trouble(folder: Path, model: str) -> None:
    line = " ".join(argv("-p", "x", "--model", model))
    done = subprocess.run(["bash", "-c", f"{line} <&-"], cwd=folder, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    silent = subprocess.run(["bash", "-c", f"{line} 2>&- <&-"], cwd=folder, capture_output=True, timeout=60)
    assert (silent.returncode, silent.stdout) == (0, b"Done.\n")
    alone = subprocess.run(["bash", "-c", f"{' '.join(argv('-p', '--model', model))} <&-"], cwd=folder, timeout=60)
    assert alone.returncode == 2


def test_a_terminal_is_not_read(folder: Path, model: str) -> None:
    ours, theirs = pty.openpty()
    try:
        with_prompt = subprocess.run(argv("-p", "x", "--model", model), cwd=folder, stdin=theirs, timeout=60)
        without = subprocess.run(argv("-p", "--model", model), cwd=folder, stdin=theirs, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (with_prompt.returncode, without.returncode) == (0, 2)


@pytest.mark.parametrize(("words", "code", "least", "most"), [(["x"], 0, 2.5, 30), ([], 2, 9, 40)])
def test_an_inherited_pipe_that_nobody_writes_to(
    words: list[str], code: int, least: float, most: float, folder: Path, model: str
) -> None:
    started = time.monotonic()
    process = subprocess.Popen(
        argv("-p", *words, "--model", model),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr and process.stdin
    out, err = process.stdout.read(), process.stderr.read().decode()
    took = time.monotonic() - started
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    assert (process.wait(), out) == (code, b"Done.\n" if code == 0 else b"")
    assert least < took < most
    assert "an open pipe to which nobody writes" in err


def test_a_pipe_left_open_after_the_prompt(folder: Path, model: str) -> None:
    process = subprocess.Popen(
        argv("-p", "x", "--model", model),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr and process.stdin
    process.stdin.write(b"some words")
    process.stdin.flush()
    out = process.stdout.read()
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    assert (process.wait(), out, "some words" in prompt_of(folder)) == (0, b"Done.\n", True)


def test_a_pipeline_that_works_is_waited_for(folder: Path, model: str) -> None:
    slow = "import time; t = time.time()\nwhile time.time() < t + 6: pass\nprint('late words')"
    line = f'python3 -c "{slow}" | {" ".join(argv("-p", "x", "--model", model))}'
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    assert "late words" in prompt_of(folder)


def test_a_pipeline_that_sleeps_is_given_up(folder: Path, model: str) -> None:
    started = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", f"sleep 80 | {' '.join(argv('-p', 'x', '--model', model))}; kill $(jobs -p) 2>/dev/null"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout
    line = process.stdout.readline()
    took = time.monotonic() - started
    os.killpg(process.pid, 9)
    process.wait()
    process.stdout.close()
    assert (line, took < 60) == (b"Done.\n", True)


def test_fifty_megabytes(folder: Path, model: str) -> None:
    data = b"0123456789 the quick brown fox jumps over it\n" * (50 * 1024 * 1024 // 45)
    done = refold("-p", "x", "--model", model, cwd=folder, input=data, timeout=110)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr[-2000:]
