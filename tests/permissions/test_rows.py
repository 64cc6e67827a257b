"""Rows of commands with what has to come of them: an attacker's and an annoyed developer's (tests/permissions/rows)."""

import json
from pathlib import Path

import pytest

from agent.permissions import Permissions, parse_rule
from agent.permissions.commands import decide
from agent.permissions.rules import name_matches, path_matches
from agent.permissions.shell import analyse
from tools.base import ToolContext, load_tools

ROWS = Path(__file__).with_name("rows")
TOOLS = load_tools()


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", rows("readonly"), ids=lambda row: row["id"])
def test_what_runs_unasked(row: dict) -> None:
    found = analyse(row["command"])
    assert ("ask" if found.why_not_safe else "safe") == row["verdict"]


@pytest.mark.parametrize("row", rows("rules"), ids=lambda row: row["id"])
def test_what_rules_decide(row: dict) -> None:
    found = decide(row["command"], allow=row["allow"], deny=row["deny"], ask=row["ask"])
    assert found.decision == row["decision"]


@pytest.mark.parametrize("row", rows("dangerous"), ids=lambda row: row["id"])
def test_what_is_dangerous(row: dict) -> None:
    assert bool(analyse(row["command"]).danger) is row["dangerous"]


@pytest.mark.parametrize("row", rows("hosts"), ids=lambda row: row["id"])
def test_which_host_a_rule_speaks_of(row: dict, tmp_path: Path) -> None:
    extra = [parse_rule(r, "allow", "session") for r in row["allow"]]
    extra += [parse_rule(r, "deny", "session") for r in row["deny"]]
    gate = Permissions("ask", root=tmp_path, home=tmp_path / "own", extra=extra, temporary=[])
    found = gate.judge(TOOLS["fetch"], {"url": row["url"]}, ToolContext(root=tmp_path, cwd=tmp_path))
    assert found.decision == row["decision"]


@pytest.mark.parametrize("row", rows("paths"), ids=lambda row: row["id"])
def test_which_paths_an_allow_speaks_of(row: dict) -> None:
    path = (Path("/w/ws") / Path(row["path"]).expanduser()).resolve()
    assert path_matches(parse_rule(f"edit({row['rule']})").pattern, str(path), "/w/ws") is row["fits"]


@pytest.mark.parametrize("row", rows("servers"), ids=lambda row: row["id"])
def test_which_tools_of_servers_a_rule_speaks_of(row: dict) -> None:
    rule = parse_rule(row["rule"])
    assert (rule.tool, name_matches(rule.pattern, row["tool"])) == ("mcp", row["fits"])
