"""What the system says of files and servers is told in words, with the path, by every command that a person calls."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.faults import reason
from tests.support.command import refold, script


@pytest.mark.parametrize(
    ("error", "about", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"), "/a", "there is no such file or folder"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/a"), "", "/a: it is a folder"),
        (OSError(errno.EBADF, "Bad file descriptor"), "", "bad file descriptor"),
        (OSError("odd"), "", "odd"),
        (ValueError("at line 1"), "", "at line 1"),
        (ValueError(), "", "ValueError"),
        (UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "x"), "", "it is not UTF-8 text (byte 3)"),
    ],
)
def test_reasons(error: Exception, about: str, words: str) -> None:
    assert reason(error, about) == words


NO, DIR = "{w}/none", "{w}/folder"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (f"-p hi --model scripted:{NO}", 52, f"The script {NO} cannot be read: there is no such file or folder"),
        (f"-p hi --model scripted:{DIR}", 52, f"The script {DIR} cannot be read: it is a folder"),
        (f"batch {NO}", 2, f"the file of tasks {NO} cannot be read: there is no such file or folder"),
        (f"batch {DIR}", 2, f"the file of tasks {DIR} cannot be read: it is a folder"),
        (f"batch {{w}}/tasks --results {DIR}", 1, f"{DIR}: it is a folder"),
        ("batch {w}/tasks --work {w}/tasks", 1, "{w}/tasks: it is there already"),
        (f"-p hi --prompt-file {NO}", 2, f"the prompt file {NO} cannot be read: there is no such file or folder"),
        (f"-p hi --json-schema {NO}", 2, f"--json-schema cannot be used: {NO}: there is no such file or folder"),
        (f"-p hi --output-last-message {DIR}", 1, f"the answer could not be written to {DIR}: it is a folder"),
        (f"sessions export latest -o {DIR}", 1, f"sessions export failed: {DIR}: it is a folder"),
        (f"sessions import {NO}", 1, f"sessions import failed: {NO}: there is no such file or folder"),
        (f"audit latest --svg {DIR}", 1, f"The picture cannot be written to {DIR}: it is a folder"),
        (f"doctor -C {NO}", 2, f"there is no folder {NO}"),
        (f"sessions -C {NO}", 2, f"there is no folder {NO}"),
        ("sessions rm {w}/data.jsonl", 2, "{w}/data.jsonl is not the log of a session: it holds no record of one."),
        ("-p hi --resume {w}/data.jsonl", 2, "{w}/data.jsonl is not the log of a session: it holds no record of one."),
        ("replay {w}/data.jsonl", 2, "{w}/data.jsonl is not the log of a session: it holds no record of one."),
    ],
)
def test_commands_say_it_in_words(tmp_path: Path, home: Path, words: str, code: int, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "tasks").write_text('{"prompt": "x"}\n')
    (tmp_path / "data.jsonl").write_text('{"somebody": "else\'s"}\n')
    env = {"REFOLD_MODEL": script(tmp_path / "s.jsonl", {"text": "hi"})}
    if "latest" in words:
        assert refold("-p", "hi", cwd=tmp_path, env=env).returncode == 0
    done = refold(*words.format(w=tmp_path).split(), cwd=tmp_path, env=env)
    assert done.stderr.splitlines()[-1] == f"refold: {said.format(w=tmp_path)}"
    assert (done.returncode, "Errno" in done.stderr) == (code, False)
    assert os.path.exists(tmp_path / "data.jsonl")
