"""Rows of commands with what has to come of them: an attacker's and an annoyed developer's (tests/permissions/rows)."""

import json
from pathlib import Path

import pytest

from agent.permissions.commands import decide
from agent.permissions.shell import analyse

ROWS = Path(__file__).with_name("rows")


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", rows("rules"), ids=lambda row: row["id"])
def test_what_rules_decide(row: dict) -> None:
    found = decide(row["command"], allow=row["allow"], deny=row["deny"], ask=row["ask"])
    assert found.decision == row["decision"]


@pytest.mark.parametrize("row", rows("dangerous"), ids=lambda row: row["id"])
def test_what_is_dangerous(row: dict) -> None:
    assert bool(analyse(row["command"]).danger) is row["dangerous"]
