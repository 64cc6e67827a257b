"""What becomes of a run where the store of snapshots is damaged, or cannot be written any more."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent.undo import Snapshots
from tests.support.command import refold, script

STEP = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "word\n"}}]}


def test_pruning_goes_past_a_damaged_snapshot(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "store"
    work.mkdir()
    snapshots = Snapshots(work, store)
    idents = []
    for n in range(4):
        (work / "a.txt").write_text(f"state {n}\n")
        idents.append(snapshots.take(f"step {n}"))
    damaged = store / "snapshots" / f"{idents[2]}.z"
    damaged.write_bytes(b"")
    old = time.time() - 3600
    for path in store.rglob("*"):
        os.utime(path, (old, old))
    again = Snapshots(work, store)
    again.prune(7200)
    # The last one was built on the damaged one: nobody could go back to either.
    assert sorted(path.stem for path in (store / "snapshots").iterdir()) == sorted(idents[:2])
    again.restore(idents[1])
    assert (work / "a.txt").read_text() == "state 1\n"


@pytest.mark.parametrize("name", ["snapshots", "cache.z", "pruned"])
def test_a_run_ends_well_whatever_lies_in_the_store(name: str, tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    model = script(tmp_path / "script.jsonl", STEP, "Done.")
    words = ("-p", "x", "--model", model, "--yolo", "-o", "text")
    assert refold(*words, cwd=work).returncode == 0
    (store,) = (home / "undo").iterdir()
    for path in (store / "snapshots").iterdir():
        path.write_bytes(b"")
    (store / "pruned").unlink(missing_ok=True)
    if name != "snapshots":  # what cannot be replaced: a folder with something in it, as on a disk that takes nothing
        (store / name).unlink(missing_ok=True)
        (store / name / "x").mkdir(parents=True)
        os.utime(store / name, (0, 0))
    (work / "a.txt").unlink()
    done = refold(*words, cwd=work)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (0, "Done.\n", 2), done.stderr
