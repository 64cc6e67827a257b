"""One session, two processes: the second is told who has it, may read and may fork; nothing is ever interleaved."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from agent import sessions
from agent.export.forms import export
from agent.models.scripted import Scripted
from agent.session import Session
from tests.support.command import refold, script
from tests.support.lived import settings
from transcripts.catalog import list_sessions
from transcripts.log import TranscriptLog
from transcripts.records import User

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from transcripts.log import LogHeld, TranscriptLog
from transcripts.records import User
while True:
    try:
        log = TranscriptLog.open(Path({path!r}))
        break
    except LogHeld:
        pass
for n in range(60):
    log.append(User(f"{name}{{n}} " + "x" * 20_000))
log.close()
"""


def test_writers_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    TranscriptLog.create(path).close()
    programs = [WRITER.format(root=str(ROOT), path=str(path), name=name) for name in "ab"]
    running = [subprocess.Popen([sys.executable, "-c", p]) for p in programs]
    assert [p.wait(timeout=60) for p in running] == [0, 0]
    log = TranscriptLog.open(path, readonly=True)
    said = [e.record.text.split()[0] for e in log.entries]
    log.close()
    a, b = ([f"{name}{n}" for n in range(60)] for name in "ab")
    assert (said in (a + b, b + a), log.problems) == (True, [])


def test_a_held_session_is_read_and_forked_but_not_taken(tmp_path: Path, home: Path) -> None:
    """The first process waits for its model in the middle of a turn, the second comes from the command line."""
    slow = script(tmp_path / "slow.jsonl", {"text": "Hello."}, {"text": "Slowly.", "delay": 30})
    assert refold("-p", "Hi", "--model", slow, "-n", "cart", cwd=tmp_path).returncode == 0
    argv = [sys.executable, str(ROOT / "main.py"), "-p", "Again", "--resume", "cart"]
    holder = subprocess.Popen(
        argv, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    try:
        path = list_sessions(home)[0].path
        while b'"text":"Again"' not in path.read_bytes():
            time.sleep(0.05)
        refused = refold("-p", "Me too", "--resume", "cart", cwd=tmp_path)
        assert (refused.returncode, f"is held by process {holder.pid} since 20" in refused.stderr) == (2, True)
        assert "Close it there, or go on in a copy with --fork-session." in refused.stderr
        for words in (["rename", "cart", "dog"], ["rm", "cart", "--yes"]):
            kept = refold("sessions", *words, cwd=tmp_path)
            assert (kept.returncode, "is held by process" in kept.stderr) == (2, True)
        assert "you: Again" in refold("sessions", "show", "cart", cwd=tmp_path).stdout
        assert "## refold\n\nHello." in export(path, "md")
        fast = script(tmp_path / "fast.jsonl", {"text": "Hello."}, {"text": "From the copy."})
        forked = refold("-p", "Me too", "--resume", "cart", "--fork-session", "--model", fast, cwd=tmp_path)
        assert (forked.returncode, forked.stdout) == (0, "From the copy.\n")
    finally:
        holder.kill()
        holder.wait()
    log = TranscriptLog.open(path)
    assert [e.record.text for e in log.entries if e.kind == "user"] == ["Hi", "Again"]
    log.close()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    program = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from transcripts.log import TranscriptLog
log = TranscriptLog.create(Path({str(path)!r}))
print("held", flush=True)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "held\n"
    log = TranscriptLog.open(path)
    log.append(User("mine"))
    log.close()


def test_two_sessions_in_one_process_write_to_their_own_files(tmp_path: Path) -> None:
    one, two = TranscriptLog.create(tmp_path / "1.jsonl"), TranscriptLog.create(tmp_path / "2.jsonl")
    for n in range(3):
        one.append(User(f"one {n}"))
        two.append(User(f"two {n}"))
    one.close()
    two.close()
    kept = [[e.record.text for e in TranscriptLog.open(p, readonly=True).entries] for p in (one.path, two.path) if p]
    assert kept == [["one 0", "one 1", "one 2"], ["two 0", "two 1", "two 2"]]


def test_a_message_goes_to_the_session_that_was_switched_to(tmp_path: Path) -> None:
    """One process goes from one session to another and back, as /resume does."""
    work = tmp_path / "work"
    work.mkdir()

    def say(text: str, resume: str = "", name: str = "") -> Path:
        model = Scripted(["Yes."] * 9)
        with Session.start(settings(tmp_path / "home"), cwd=work, model=model, resume=resume, name=name) as session:

            async def turn() -> None:
                async for _ in session.send(text):
                    pass

            asyncio.run(turn())
            assert session.path is not None
            return session.path

    one, two = say("one", name="one"), say("two", name="two")
    paths = [say("one again", "one"), say("two again", "two"), say("one more", "one")]
    assert paths == [one, two, one]
    kept = []
    for path in (one, two):
        log = TranscriptLog.open(path, readonly=True)
        kept.append([e.record.text for e in log.entries if e.kind == "user"])
        log.close()
    assert kept == [["one", "one again", "one more"], ["two", "two again"]]


def test_removing_takes_the_lock(tmp_path: Path, home: Path) -> None:
    assert refold("-p", "Hi", "--model", script(tmp_path / "s.jsonl", "Hello."), cwd=tmp_path).returncode == 0
    path = list_sessions(home)[0].path
    sessions.remove(home, path)
    assert (path.exists(), list(path.parent.iterdir())) == (False, [])
