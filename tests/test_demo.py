"""The recorded tour, as a newcomer runs it."""

from __future__ import annotations

import re
import resource
from pathlib import Path

from agent.demo.tour import DATA
from tests.support.command import refold
from transcripts.log import TranscriptLog


def spent() -> float:
    """Seconds of processor time of all processes started so far; other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_tour(tmp_path: Path, home: Path) -> None:
    before = spent()
    done = refold("demo", "--recorded", cwd=tmp_path, env={"TMPDIR": str(tmp_path)}, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = dict(re.findall(r"^  ([a-z ]+): +(.*)$", done.stdout.partition("What was seen")[2], re.M))
    assert facts["tests before"].startswith("FAIL") and facts["tests after"].startswith("pass")
    assert "within reach of recall" in facts["folded"]
    assert facts["recalled"].startswith("1 ")
    assert "recorded" in done.stdout
    assert spent() - before < 10, "it promises to take some seconds on a quiet machine"
    log = TranscriptLog.open(Path(facts["transcript"]), readonly=True)
    kinds = [entry.kind for entry in log.entries]
    log.close()
    assert ("checkpoint" in kinds, kinds.count("user"), kinds.count("turn_end")) == (True, 2, 1)


def test_without_a_model_the_demo_says_what_to_do(tmp_path: Path, home: Path) -> None:
    env = {"TMPDIR": str(tmp_path), "REFOLD_LOCAL_MODEL": str(tmp_path / "none.gguf"), "REFOLD_MODEL": ""}
    done = refold("demo", cwd=tmp_path, env=env, timeout=60)
    assert done.returncode in (1, 41, 52)
    assert done.stderr.splitlines()[-1].startswith("refold: ")


def test_the_sample_project_is_no_code_of_ours() -> None:
    assert sorted(p.suffix for p in DATA.iterdir()) == [".jsonl"] + [".txt"] * 6
