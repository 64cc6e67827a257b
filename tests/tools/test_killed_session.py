"""A session's process is killed with kill -9: what its commands started ends, what was asked to stay stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import CHECKOUT, argv, script
from tests.support.processes import ended, gone, running, within

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
    # Put together here, so that this program's own command line is not taken for the command's.
    await box.run("bash", {"command": "sleep 476{0}; sleep 476{0}".format(1)})
asyncio.run(main())
"""


def killed(folder: Path, kept: str, *commands: str) -> None:
    """Runs the commands in the background, one in the foreground, and kills the program that does."""
    words = [sys.executable, "-c", PROGRAM, str(folder), kept, *commands]
    process = subprocess.Popen(words, cwd=CHECKOUT, env={**os.environ, "TMPDIR": str(folder)})
    wait_for("sleep 4761")
    [keeper] = [found.pid for found in running("_processes.py") if found.parent == process.pid]
    process.kill()
    process.wait()
    assert ended(keeper, 8)


def wait_for(words: str) -> None:
    """Until such a command runs, ten seconds at most."""
    assert within(10, lambda: bool(running(words)))


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
    try:
        killed(tmp_path, "1", "sleep 4763; true", "sleep 4764; true")
        assert gone("sleep 4761") and gone("sleep 4764")
        assert len(running("sleep 4763")) == 2
    finally:
        for left in running("sleep 4763"):
            os.kill(left.pid, signal.SIGKILL)


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
