"""What a killed copy leaves is removed once it is certain that nobody comes back to it, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.abandoned import abandoned, clear, without_log
from agent.doctor import of_sessions
from tests.support.command import CHECKOUT, refold
from tests.support.lived import live
from transcripts.catalog import list_sessions

KILLED = """
import os, sys
from pathlib import Path
from agent.sessions import write_all
from transcripts.blobs import Blobs
class Deadly(Blobs):
    def get(self, name):
        {stop}
source = Deadly(None)
write_all(Path(sys.argv[1]), [b'{{"blob": "' + b"0" * 32 + b'"}}'], source)
"""


def old(path: Path) -> None:
    """As if nothing of it had been written for two hours."""
    for p in (path, *(path.rglob("*") if path.is_dir() else ())):
        os.utime(p, (time.time() - 7200,) * 2)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A home with one session in it, which stays as it is."""
    path, _ = live(tmp_path, [{"text": "hi"}], ["go"])
    return path


def test_a_copy_that_was_killed_goes_when_it_is_old(tmp_path: Path, kept: Path) -> None:
    home, copy = tmp_path / "home", kept.with_name("20260101-000000-abcdabcd.jsonl")
    code = KILLED.format(stop="os.kill(os.getpid(), 9)")
    subprocess.run([sys.executable, "-c", code, str(copy)], cwd=CHECKOUT)
    part, blobs = copy.with_suffix(".part"), copy.with_suffix(".blobs")
    blobs.mkdir(exist_ok=True)
    (blobs / "body").write_bytes(b"x")
    assert part.exists() and list(abandoned(home)) == []
    old(part), old(blobs)
    assert list(abandoned(home)) == [blobs, part]
    said = refold("doctor", cwd=tmp_path, env={"REFOLD_HOME": str(home)}).stdout
    assert f"- sessions    an interrupted copy has left {blobs}, {part}\n" in said
    done = refold("sessions", "--all", cwd=tmp_path, env={"REFOLD_HOME": str(home)})
    assert done.stderr == f"refold: removed what an interrupted copy had left: {blobs}, {part}\n"
    assert not part.exists() and not blobs.exists()
    assert [s.path for s in list_sessions(home)] == [kept]


def test_a_copy_that_is_being_made_stays_however_old_it_looks(tmp_path: Path, kept: Path) -> None:
    copy = kept.with_name("20260101-000000-abcdabcd.jsonl")
    code = KILLED.format(stop="print('ready', flush=True); sys.stdin.read(); raise KeyError")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(copy)], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    old(copy.with_suffix(".part"))
    assert clear(tmp_path / "home") == []
    process.communicate()
    assert copy.exists() and not copy.with_suffix(".part").exists()


def test_parts_of_bodies_go_and_what_belongs_to_a_session_stays(tmp_path: Path, kept: Path) -> None:
    home, blobs = tmp_path / "home", kept.with_suffix(".blobs")
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, written = blobs / f"{'a' * 32}.{ended.pid}.part", blobs / f"{'b' * 32}.{os.getpid()}.part"
    lost = kept.with_name("20250101-000000-aaaaaaaa.blobs")
    lost.mkdir()
    for path in (left, written):
        path.write_bytes(b"x")
    bodies = set(blobs.iterdir()) - {left}
    for path in (left, written, lost, kept, blobs):
        old(path)
    assert clear(home) == [left]
    assert set(blobs.iterdir()) == bodies and kept.exists()
    assert without_log(home) == [lost]
    said = [f.text for f in of_sessions(home)]
    assert said == [f"{lost} belongs to 20250101-000000-aaaaaaaa.jsonl, which is gone"]
