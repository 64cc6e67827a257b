"""A disk that fills up in the middle of work: what was completed is kept, effects stop, the person is told the real
reason, and the session goes on when there is room.

A limit on the size of files stands for the disk: it hits the log where the log is the largest file, and it needs no
rights. Where a small file system can be mounted, it is tried as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lived import next_request
from tests.support.strict import refusals
from transcripts.catalog import list_sessions
from transcripts.log import TranscriptLog

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, json, resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from agent.models.scripted import Scripted
from agent.session import Session
from runtime.events import TurnEnded
from tests.support.lived import call, settings
folder = Path({folder!r})
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def fill(view):
    limit(session.path.stat().st_size + {room})
    return {{"text": "I go on.", "calls": [call("bash", command="echo ran >> {folder}/work/ledger")]}}
steps = ["Hello.", fill, "After it.", "Last."]
(folder / "work").mkdir(exist_ok=True)
async def turn(text):
    ended = [e async for e in session.send(text) if isinstance(e, TurnEnded)]
    print(json.dumps([ended[-1].reason, ended[-1].kind, ended[-1].message]), flush=True)
async def main():
    await turn("Hi")
    await turn("Run it")
    await turn("Is there room?")
    limit(resource.RLIM_INFINITY)
    await turn("Now there is")
with Session.start(settings(folder / "home"), cwd=folder / "work", model=Scripted(steps)) as session:
    asyncio.run(main())
"""


def run(folder: Path, room: int) -> list[list[str]]:
    """Plays four turns, the second of them in so many bytes of room, and the fourth with room again."""
    program = PROGRAM.format(root=str(ROOT), folder=str(folder), room=room)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("room", [0, 100, 280, 420, 560, 700, 900, 1100])
def test_the_disk_fills_up_in_the_middle_of_a_turn(tmp_path: Path, room: int) -> None:
    first, second, third, fourth = run(tmp_path, room)
    assert (first, second[:2], third[:2], fourth) == (
        ["done", "", ""], ["error", "log"], ["error", "log"], ["done", "", ""],
    )  # fmt: skip
    assert second[2] in ("the log could not be written: File too large",)
    path = list_sessions(tmp_path / "home")[0].path
    log = TranscriptLog.open(path, readonly=True)
    said = [
        (e.kind, getattr(e.record, "text", "")) for e in log.entries if e.kind in ("user", "assistant", "tool_result")
    ]
    log.close()
    ledger = tmp_path / "work" / "ledger"
    ran = ledger.exists()
    assert (log.problems, said[:3]) == ([], [("user", "Hi"), ("assistant", "Hello."), ("user", "Run it")])
    assert [text for kind, text in said if kind == "assistant"] == ["Hello.", "I go on.", "After it."]
    (result,) = [text for kind, text in said if kind == "tool_result"]
    assert ran == (not result.startswith("[Interrupted before this call had any effect"))
    assert (ledger.read_text() if ran else "ran\n") == "ran\n"
    messages, _, _ = next_request(path)
    assert refusals(messages) == []


def test_a_small_disk_that_is_full(tmp_path: Path) -> None:
    """A file system of 300 KB, where one may be mounted: the answer, the result and the blob that find no room are
    written as soon as there is some."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(place)], capture_output=True)
    if mounted.returncode:
        return
    try:
        program = f"""
import asyncio, contextlib, json, os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from agent.models.scripted import Scripted
from agent.session import Session
from runtime.events import TurnEnded
from tests.support.lived import call, settings
folder, ballast = Path({str(place)!r}), Path({str(place)!r}) / "ballast"
work = Path({str(tmp_path)!r}) / "work"
work.mkdir()
run = call("bash", command="echo ran >> ledger; seq 30000")
steps = ["Hello.", {{"text": "I run it.", "calls": [run]}}, "Done.", "Last."]
async def turn(text):
    ended = [e async for e in session.send(text) if isinstance(e, TurnEnded)]
    print(json.dumps([ended[-1].reason, ended[-1].message]), flush=True)
async def main():
    await turn("Hi")
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(fd, b"x" * 4096):
            pass
    os.ftruncate(fd, os.fstat(fd).st_size - 24 * 1024)
    await turn("Run it")
    os.truncate(ballast, 0)
    await turn("Go on")
with Session.start(settings(folder), cwd=work, model=Scripted(steps)) as session:
    asyncio.run(main())
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [row[0] for row in rows] == ["done", "error", "done"]
        assert "No space left on device" in rows[1][1]
        log = TranscriptLog.open(list_sessions(place)[0].path, readonly=True)
        (result,) = [e.record for e in log.entries if e.kind == "tool_result"]
        assert (result.status, result.chars > 100_000, log.problems) == ("ok", True, [])
        assert len(log.blobs.get(result.blob)) == result.chars
        log.close()
        assert (tmp_path / "work" / "ledger").read_text() == "ran\n"
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_folder_that_takes_nothing_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sessions").write_text("a file is in the way")
    argv = [sys.executable, str(ROOT / "main.py"), "-p", "Hi", "--model", "scripted:x.jsonl"]
    (tmp_path / "x.jsonl").write_text('"Hello."\n')
    env = {**os.environ, "REFOLD_HOME": str(tmp_path / "home")}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) != (0, "")
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr
