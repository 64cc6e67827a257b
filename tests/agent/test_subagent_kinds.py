"""Kinds of sub-agents that are files: the person's own, and a folder's once it is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.trust import Trust
from tests.support.tasked import Desk, bash, call, calls, results_of, task

REVIEWER = """---
name: Reviewer
description: Looks over a change
  with care
tools: Read, Grep, Bash(git *)
---
Judge nothing but correctness.
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("home/.refold/agents", "ws/.claude/agents"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def kinds(desk: Desk) -> str:
    """What the model is told of the kinds."""
    return desk.session.toolbox.tools["task"].schema["properties"]["kind"]["description"]


def test_the_persons_own_is_told_what_its_file_says(base: Path) -> None:
    (base / "home" / ".refold" / "agents" / "r.md").write_text(REVIEWER)
    script = [calls(call("write", path="n.txt", content="n"), call("bash", command="echo it ran")), "All is well."]
    with Desk(base, [calls(task("look it over", "reviewer"))], {"look it over": script}, mode="yolo") as desk:
        assert kinds(desk).endswith("work may do all you may. reviewer: Looks over a change with care")
        (result,) = desk.send()
        said = results_of(desk.logs()[0])
        log = desk.logs()[0]
        prompts = [p.read_text() for p in log.with_suffix(".blobs").iterdir() if "a coding agent" in p.read_text()]
    assert result.text.startswith("All is well.\n")
    assert said == ["error: There is no tool 'write'. The tools are: read, bash, grep, recall.", "ok: it ran"]
    assert [p.rstrip().endswith("Judge nothing but correctness.") for p in prompts] == [True]


def test_one_of_a_folder_counts_only_when_it_is_trusted(base: Path) -> None:
    (base / "ws" / ".claude" / "agents" / "r.md").write_text(REVIEWER)
    script = [calls(task("look it over", "reviewer"))]
    with Desk(base, script, {"look it over": ["Hm."]}) as desk:
        assert "reviewer" not in kinds(desk)
        assert [r.text for r in desk.send()] == ["There is no kind 'reviewer' of sub-agent; there are explore, work."]
    Trust(base / "home" / ".refold", base / "ws").grant()
    with Desk(base, script, {"look it over": ["Hm."]}) as desk:
        assert "reviewer: Looks over" in kinds(desk)
        assert [r.status for r in desk.send()] == ["ok"]


def test_none_may_do_more_than_the_session(base: Path) -> None:
    words = "---\ndescription: Does all\ntools: '*'\n---\nYou may do anything."
    (base / "home" / ".refold" / "agents" / "all.md").write_text(words)
    script = [calls(call("write", path="n.txt", content="n"), call("task", description="x", prompt="x")), bash("make")]
    with Desk(base, [calls(task("do all", "all"))], {"do all": [*script, "x"]}, mode="plan") as desk:
        desk.send()
        said = results_of(desk.logs()[0])
    assert said[0].startswith("denied: [Denied: the mode plan only reads; ")
    assert said[1].startswith("error: There is no tool 'task'.")
    assert not (base / "ws" / "n.txt").exists()


def test_what_is_no_definition_is_a_notice(base: Path) -> None:
    folder = base / "home" / ".refold" / "agents"
    for name, text in (("a", "no head"), ("b", "---\ndescription: x\nname: work\n---\n"), ("c", "---\nname: c\n")):
        (folder / f"{name}.md").write_text(text)
    with Desk(base, [], {}) as desk:
        found = [n.removeprefix(f"{folder}/") for n in desk.session.notices if "no sub-agent" in n]
        assert "." not in kinds(desk).removeprefix("explore only reads; several run side by side. ")
    assert found == [
        "a.md is no sub-agent: its front matter has no description.",
        "b.md is no sub-agent: 'work' is no name for one.",
        "c.md is no sub-agent: its front matter has no end (a line with --- only).",
    ]
