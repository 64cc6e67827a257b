"""A session's process is killed with kill -9: what its commands started ends, what was asked to stay stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import CHECKOUT, argv, script
from tests.support.processes import gone, running

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tools.base import Toolbox, ToolContext, load_tools
async def main():
    ctx = ToolContext(Path(sys.argv[1]), Path(sys.argv[1]))
    box = Toolbox(load_tools(), ctx)
    for command in sys.argv[3:]:
        await box.run("bash", {"command": command, "background": True})
    for job in map(int, sys.argv[2].split()):
        await box.run("jobs", {"action": "keep", "id": job})
    print(ctx.state["jobs"].mark, flush=True)
    await box.run("bash", {"command": "sleep 4761; sleep 4761"})
asyncio.run(main())
"""


def killed(folder: Path, kept: str, *commands: str) -> None:
    """Runs the commands in the background, one in the foreground, and kills the program that does."""
    words = [sys.executable, "-c", PROGRAM, str(folder), kept, *commands]
    process = subprocess.Popen(words, cwd=CHECKOUT, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
    assert process.stdout is not None
    mark = process.stdout.readline().decode().strip()
    wait_for("sleep 4761")
    process.kill()
    process.communicate()
    assert gone(f"_processes.py {mark}", 8)


def wait_for(words: str) -> None:
    """Until such a command runs, ten seconds at most."""
    deadline = time.monotonic() + 10
    while not running(words):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "command",
    [
        "sleep 4762",
        "sleep 4762 & (sleep 4762; sleep 4762) & wait",
        "setsid sleep 4762; true",
        "env -i sleep 4762; true",
        "trap '' TERM; sleep 4762; sleep 4762",
    ],
)
def test_its_commands_end(tmp_path, command):
    killed(tmp_path, "", command)
    assert gone("sleep 4761") and gone("sleep 4762")


def test_a_job_that_was_asked_to_stay_stays(tmp_path):
    killed(tmp_path, "1", "sleep 4763; true", "sleep 4764; true")
    assert gone("sleep 4761") and gone("sleep 4764")
    assert len(running("sleep 4763")) == 2
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if b"4763" in Path("/proc", entry, "cmdline").read_bytes():
            os.kill(int(entry), signal.SIGKILL)


def killed_run(folder: Path, model: str, sign: str, *words: str) -> None:
    """Starts a one-shot run and kills it once a command with this sign runs."""
    env = {**os.environ, "REFOLD_HOME": str(folder / "home")}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        argv("-p", "go", "--model", model, *words), cwd=folder, env=env, stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        wait_for(sign)
    finally:
        process.kill()
        process.wait()


def test_a_one_shot_run_that_is_killed_leaves_no_command(tmp_path):
    calls = [{"name": "bash", "arguments": {"command": "sleep 4765; sleep 4765"}}]
    killed_run(tmp_path, script(tmp_path / "s.jsonl", {"calls": calls}), "sleep 4765", "--permission-mode", "yolo")
    assert gone("sleep 4765")


def test_a_check_ends_with_the_run_that_waits_for_it(tmp_path):
    (tmp_path / "check.sh").write_text("sleep 4766; sleep 4766")
    killed_run(
        tmp_path, script(tmp_path / "s.jsonl", {"text": "done"}), "sleep 4766", "--require-check", "sh check.sh; true"
    )
    assert gone("sleep 4766")
