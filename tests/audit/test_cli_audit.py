"""`refold audit` as a person runs it, over a session that was really folded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command import refold
from tests.support.recorded import Played, play
from tests.support.workload import Workload


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """72 steps in a window of 12,000 tokens; the session is still open, and so its log is held."""
    return play(
        Workload(steps=72), tmp_path_factory.mktemp("audited"), window=12_000, notes="Nothing to note but this."
    )


def run(played: Played, *words: str) -> str:
    path = played.session.path
    assert path is not None
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    env = {"REFOLD_HOME": str(path.parents[2])}
    done = refold("audit", *words, cwd=played.work, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    return done.stdout


def test_as_a_table(played):
    lines = run(played, played.session.id[:6]).splitlines()
    assert lines[0].startswith(f"Session {played.session.path.stem}: scripted:")
    assert lines[1] == f"72 answers under {len(played.folds) + 1} views, {len(played.folds)} folds"
    for fold in played.folds:
        row = next(line for line in lines if line.startswith(fold.checkpoint.id))
        assert f"{fold.checkpoint.tokens_before:,}" in row and f"{fold.checkpoint.tokens_after:,}" in row
    assert "What went wrong, as far as code can tell" in lines


def test_as_json(played):
    found = json.loads(run(played, "--json"))
    assert [f["id"] for f in found["folds"]] == [f.checkpoint.id for f in played.folds]
    assert [(s["first"], s["last"]) for s in found["stretches"]][-1][1] == 72
    assert len([r for r in found["requests"] if r["purpose"] == "step"]) == 72
    assert {r["window"] for r in found["requests"]} == {12_000}
    assert all(f["shrink"] >= 0.25 and f["kept"]["total"] > 0 for f in found["folds"])


def test_as_a_picture(played, tmp_path: Path):
    out = run(played, "latest", "--svg", str(tmp_path / "window.svg"))
    assert out.rstrip().endswith(f"The picture is in {tmp_path / 'window.svg'}")
    root = ElementTree.fromstring((tmp_path / "window.svg").read_text())
    ns = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{ns}svg"
    titles = [t.text or "" for t in root.iter(f"{ns}title")]
    for fold in played.folds:
        assert any(t.startswith(f"{fold.checkpoint.id}: ") for t in titles)
    assert "window: 12,000 tokens" in titles


def test_what_cannot_be_audited(tmp_path: Path, home: Path):
    done = refold("audit", "nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing" in done.stderr
