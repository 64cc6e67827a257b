"""bash: real commands, real processes."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import gone, running
from tools._jobs import jobs_of
from tools.base import ToolFailure
from tools.bash import close_jobs


def test_output_exit_code_and_facts(ws):
    out = ws.call("bash", command="echo out; echo err >&2; exit 3")
    assert (out.text, out.ok) == ("out\nerr\n[exit code 3]", False)
    seconds = out.meta["seconds"]
    assert out.meta == {
        "command": "echo out; echo err >&2; exit 3",
        "exit_code": 3,
        "seconds": seconds,
        "cwd": str(ws.root),
    }
    assert 0 <= seconds < 5


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("true", "(no output), exit code 0"),
        ("false", "(no output)\n[exit code 1]"),
        ("cat", "(no output), exit code 0"),
        ('read -p "Proceed? " x; echo got:$x', "got:"),
        ("cat <<'EOF'\na $b\nEOF", "a $b"),
        ("echo $#", "1"),
        ("nosuchcommand", "bash: line 1: nosuchcommand: command not found\n[exit code 127]"),
        ("kill -9 $$", "(no output)\n[killed by signal 9]"),
        ("printf 'a\\tb\\n\\n\\n'", "a\tb"),
    ],
)
def test_what_a_command_says(ws, command, text):
    started = time.monotonic()
    assert ws.call("bash", command=command).text == text
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "command",
    [
        "sleep 31 & echo done",
        "(while :; do echo tick; sleep 0.05; done) & sleep 0.3; echo done",
        "setsid sleep 31 & echo done",
        "nohup sleep 31 >/dev/null 2>&1 & echo done",
    ],
)
def test_it_waits_for_the_command_and_not_for_its_pipe(ws, command):
    started = time.monotonic()
    out = ws.call("bash", command=command, timeout=20)
    assert "done" in out.text and out.ok and time.monotonic() - started < 10


def test_what_a_command_left_running_is_a_job(ws):
    out = ws.call("bash", command="sleep 4711 & echo done")
    assert out.text == "done\n[it left processes running: job 1; jobs can read and stop it]"
    assert ws.call("jobs", action="stop", id=1).text == "(no new output)\n[job 1 was stopped]"
    assert gone("sleep 4711")


def test_on_timeout_it_goes_on_in_the_background(ws):
    started = time.monotonic()
    out = ws.call("bash", command="echo before; sleep 3; echo after; exit 7", timeout=1)
    assert time.monotonic() - started >= 1
    assert out.text == (
        "before\n"
        "[timed out after 1 s and goes on in the background as job 1; jobs can read it, wait for it and stop it]"
    )
    assert (out.meta["exit_code"], out.meta["job"]) == (None, 1)
    assert ws.call("jobs", action="wait", id=1).text == "after\n[exit code 7]"
    assert ws.call("jobs").text == "No background jobs."


def test_background(ws):
    out = ws.call("bash", command="echo up; sleep 4712", background=True)
    assert out.text == "up\n[runs in the background as job 1; jobs can read it, wait for it and stop it]"
    assert ws.call("jobs").text.endswith(" s  3 bytes  echo up; sleep 4712")
    assert ws.call("jobs", action="read", id=1).text.startswith("(no new output)\n[job 1 is running, ")
    assert ws.call("jobs", action="stop", id=9).text == "There is no job 9; there are: 1."


def test_a_background_command_that_fails_at_once_says_so(ws):
    out = ws.call("bash", command="echo no >&2; exit 2", background=True)
    assert (out.text, out.ok) == ("no\n[exit code 2]", False)


def test_the_end_of_a_job_is_told_once(ws):
    ws.call("bash", command="sleep 1; exit 4", background=True)
    time.sleep(1.5)
    notice = "[job 1 has ended: exit code 4; jobs can read its output]"
    assert ws.call("bash", command="echo x").text == f"x\n{notice}"
    assert ws.call("bash", command="echo x").text == "x"


def test_no_job_outlives_the_session(ws):
    ws.call("bash", command="sleep 4713", background=True)
    ws.call("bash", command="setsid sleep 4714 & sleep 4715 & echo ok")
    ws.call("bash", command="trap '' TERM; sleep 4716 & wait; sleep 4716", timeout=1)
    assert len(running("sleep 471")) >= 4
    folder = jobs_of(ws.ctx).folder
    started = time.monotonic()
    close_jobs(ws.ctx)
    assert time.monotonic() - started < 15
    assert not folder.exists()
    for n in range(4713, 4717):
        assert gone(f"sleep {n}")


def test_a_job_that_was_asked_to_stay_stays(ws):
    ws.call("bash", command="exec sleep 4717", background=True)
    assert ws.call("jobs", action="keep", id=1).text == "Job 1 stays when the session ends."
    pid = jobs_of(ws.ctx).jobs[1].process.pid
    close_jobs(ws.ctx)
    assert running("sleep 4717")
    os.kill(pid, 9)
    os.waitpid(pid, 0)


async def interrupted(ws, command: str, after: float) -> float:
    task = asyncio.create_task(ws.box.run("bash", {"command": command}))
    await asyncio.sleep(after)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - started


@pytest.mark.parametrize(
    "command",
    [
        "for i in 1 2 3 4 5; do sleep 4720 & done; (sleep 4720; sleep 4720) & sleep 4720",
        "setsid bash -c 'sleep 4720; true' & sleep 4720",
        f"{sys.executable} -c 'import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(4720)'",
        "trap 'echo cleaning; sleep 4720' TERM; sleep 4720 & wait",
    ],
)
def test_cancelling_ends_everything_it_started(ws, command):
    assert asyncio.run(interrupted(ws, f"echo hello; {command}", 0.7)) < 15
    assert gone("4720")
    assert ws.ctx.state["interrupted"].text.startswith("hello\n")
    assert ws.call("jobs").text == "No background jobs."


def test_term_comes_before_kill(ws):
    command = "trap 'rm -f lock; exit' TERM; touch lock; sleep 30 & wait"
    asyncio.run(interrupted(ws, command, 0.7))
    assert not (ws.root / "lock").exists()


def test_the_directory_is_kept_and_found_again_when_it_is_gone(ws):
    out = ws.call("bash", command="mkdir deep && cd deep && pwd")
    assert out.text == f"{ws.root}/deep\n[cwd: {ws.root}/deep]"
    assert ws.call("bash", command="pwd").text == f"{ws.root}/deep"
    assert ws.call("bash", command="cd ..; false").text == f"(no output)\n[exit code 1]\n[cwd: {ws.root}]"
    ws.call("bash", command="cd deep; exit 0")
    ws.call("bash", command=f"rm -rf {ws.root}/deep")
    assert ws.call("bash", command="echo alive").text == (
        f"(cwd was reset to {ws.root}: {ws.root}/deep no longer exists)\nalive"
    )


def test_a_directory_with_odd_characters(ws):
    ws.call("bash", command="mkdir $'a b\\n\"c$' && cd $'a b\\n\"c$'")
    assert ws.ctx.cwd == ws.root / 'a b\n"c$'
    assert ws.call("bash", command="touch here").ok and (ws.ctx.cwd / "here").exists()


def test_nobody_is_asked(ws):
    ws.call("bash", command="git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
    assert ws.call("bash", command="git log --oneline | cat; git log -1 --format=%s").text.endswith("x")
    out = ws.call("bash", command="echo $GIT_TERMINAL_PROMPT $PAGER $GIT_PAGER; tty; ps -o tty= -p $$")
    assert out.text.split("\n")[:2] == ["0 cat cat", "not a tty"]


def test_only_the_given_environment_reaches_a_command(ws):
    ws.ctx.env = {"PATH": os.environ["PATH"], "HELLO": "there"}
    out = ws.call("bash", command="echo $HELLO ${OPENAI_API_KEY:-unset} ${HOME:-unset}; tr '\\0' ' ' </proc/$$/cmdline")
    assert out.text.startswith("there unset unset\n") and "there" not in out.text.split("\n")[1]


def test_the_sandbox_gets_the_command_line(ws):
    ws.ctx.wrap = lambda argv, cwd: ["env", f"WRAPPED={cwd}", *argv]
    assert ws.call("bash", command="echo $WRAPPED").text == str(ws.root)


def test_what_the_sandbox_stopped_says_how_to_ask(ws):
    assert "outside=true" not in ws.call("bash", command="echo Read-only file system; false").text
    ws.ctx.wrap = lambda argv, cwd: ["env", "A=b", *argv]
    hint = "[it ran in the sandbox; outside=true asks the person to let it run outside]"
    said = ws.call("bash", command="echo 'touch: x: Read-only file system'; false").text
    assert said == f"touch: x: Read-only file system\n[exit code 1]\n{hint}"
    assert "outside=true" not in ws.call("bash", command="echo 'Read-only file system'").text
    assert "outside=true" not in ws.call("bash", command="echo other; false").text


def test_a_sandbox_that_refuses(ws):
    def refuse(argv, cwd):
        raise ToolFailure("Not run: there is no sandbox.")

    ws.ctx.wrap = refuse
    before = len(os.listdir("/proc/self/fd"))
    assert ws.call("bash", command="echo x").text == "Not run: there is no sandbox."
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_character_that_comes_in_two_pieces(ws):
    out = ws.call("bash", command="printf '\\360\\237'; sleep 0.3; printf '\\217\\267\\n'")
    assert out.text == "🏷" and "".join(ws.live) == "🏷\n"


def test_bytes_that_are_no_text(ws):
    assert ws.call("bash", command="printf 'a\\377b\\n'").text == "a\ufffdb"


def test_output_is_live(ws):
    async def watch() -> list[str]:
        task = asyncio.create_task(ws.box.run("bash", {"command": "echo one; sleep 1.6; echo two"}))
        await asyncio.sleep(0.9)
        early = list(ws.live)
        await task
        return early

    assert asyncio.run(watch()) == ["one\n"]
    assert ws.live == ["one\n", "two\n"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("printf '\\033[31mred\\033[0m \\033[1;2Hat'", "red at"),
        ("printf '\\033]52;c;cm0gLXJm\\007\\033[2J\\033]0;pwn\\007x\\033[6n\\033Pq\\033\\\\ \\302\\233 31m'", "x 31m"),
        ("printf '\\033]0;never ends'; echo; echo next", "\nnext"),
        ("printf '10%%\\r50%%\\r100%%\\n'", "100%"),
        ("printf 'long line\\rshort\\n'", "shortline"),
        ("printf 'N\\bNA\\bA\\n'", "NA"),
        ("printf 'a\\0b\\a\\n'", "ab"),
        ("printf 'a\\r\\nb\\r\\n'", "a\nb"),
    ],
)
def test_terminal_codes_are_not_for_the_model(ws, command, text):
    assert ws.call("bash", command=command).text == text


def test_colours_are_kept_for_the_screen(ws):
    ws.call("bash", command="printf '\\033[31mred\\033[0m'")
    assert "".join(ws.live) == "\x1b[31mred\x1b[0m"


def test_a_long_single_line_is_cut_in_the_middle_and_the_rest_is_on_disk(ws):
    started = time.monotonic()
    out = ws.call("bash", command="head -c 200000000 /dev/zero | tr '\\0' x; echo END")
    assert time.monotonic() - started < 20
    assert len(out.text) < 16_001_000
    assert out.text.startswith("xxx") and "[184,000,004 bytes left out here]" in out.text
    assert "xEND\n[truncated: head and tail kept; till the session ends, the whole output is in " in out.text
    assert Path(out.meta["output"]).stat().st_size == 200_000_004
    assert max(map(len, ws.live)) <= 65_536


FORGETFUL = """
import asyncio, sys
from pathlib import Path
from tools.base import Toolbox, ToolContext, load_tools
ctx = ToolContext(Path(sys.argv[1]), Path(sys.argv[1]))
asyncio.run(Toolbox(load_tools(), ctx).run("bash", {"command": "sleep 4718", "background": True}))
print(ctx.state["jobs"].folder)
"""


def test_a_program_that_forgets_to_close_leaves_nothing(ws):
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", FORGETFUL, str(ws.root)], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() and not Path(done.stdout.strip()).exists() and gone("sleep 4718")


KILLED = f"""{FORGETFUL}
import os
asyncio.run(Toolbox(load_tools(), ctx).run("jobs", {{"action": "keep", "id": 1}}))
print(ctx.state["jobs"].jobs[1].process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_program_left_is_removed_by_the_next(ws, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tmp")
    root, env = Path(__file__).resolve().parents[2], {**os.environ, "TMPDIR": str(folder)}

    def run(code: str) -> str:
        argv = [sys.executable, "-c", code, str(ws.root)]
        return subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True).stdout

    job = int(run(KILLED).split()[-1])
    run(FORGETFUL)
    assert len(list(folder.iterdir())) == 1  # its job still writes there
    os.killpg(job, 9)
    assert gone("sleep 4718")
    run(FORGETFUL)
    assert list(folder.iterdir()) == []


PROBE = """
import asyncio, resource, sys
from pathlib import Path
from tools.base import Toolbox, ToolContext, load_tools
from tools.base import ToolFailure
from tools.bash import close_jobs
async def main():
    ctx = ToolContext(Path(sys.argv[1]), Path(sys.argv[1]))
    box = Toolbox(load_tools(), ctx)
    await box.run("bash", {"command": "echo warm"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out = await box.run("bash", {"command": "yes 0123456789abcdef | head -c 1000000000; echo; echo LAST"})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, "3456\\nLAST\\n[trunc" in out.text)
    print((await box.run("bash", {"command": "echo next"})).text)
    close_jobs(ctx)
asyncio.run(main())
"""


def test_a_gigabyte_takes_less_than_60_megabytes_of_memory(ws):
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(ws.root)], cwd=root, capture_output=True, text=True, timeout=100
    )
    kilobytes, tail, following = (done.stdout + done.stderr).split()
    assert int(kilobytes) < 60_000 and (tail, following) == ("True", "next")


def test_a_timeout_in_milliseconds_is_understood(ws):
    out = ws.call("bash", command="sleep 5", timeout=4000)
    assert out.text.startswith("(no output)\n[timed out after 4 s")


def test_bad_input(ws):
    assert ws.call("bash", command="  ").text == "The command is empty."
    assert ws.call("bash", command="echo a\0b").text == "A command cannot contain a NUL character."


def test_no_descriptor_is_left_open(ws):
    ws.call("bash", command="true")
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        ws.call("bash", command="echo x; false")
        ws.call("bash", command="sleep 0.6; echo x", background=True)
        ws.call("jobs", action="wait", id=jobs_of(ws.ctx).last)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_nswap == 0


@pytest.mark.parametrize(
    ("command", "said", "pipe"),
    [
        ("false | true", "(no output), exit code 0\n[exit codes in the pipe: 1, 0]", [1, 0]),
        (
            "cd /; (exit 4) | cat | cat # why",
            "(no output), exit code 0\n[exit codes in the pipe: 4, 0, 0]\n[cwd: /]",
            [4, 0, 0],
        ),
        ("(exit 3) | (exit 7)", "(no output)\n[exit code 7]\n[exit codes in the pipe: 3, 7]", [3, 7]),
        ("exit 5 | true", "(no output), exit code 0\n[exit codes in the pipe: 5, 0]", [5, 0]),
        ("yes | head -1", "y", None),
        ("true | true", "(no output), exit code 0", None),
        ("false | true; echo done", "done", None),
        ("false || true", "(no output), exit code 0", None),
        ("echo a | cat \\", "a", None),
        ("cat <<E\na | b\nE", "a | b", None),
    ],
)
def test_a_failure_inside_of_a_pipe_is_told(ws, command, said, pipe):
    output = ws.call("bash", command=command)
    assert (output.text, output.meta.get("pipe")) == (said, pipe)
