"""docs/edit-policy.md is the law: its table is run here, row by row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "edit-policy.md"
ROW = re.compile(r"^\| ([^|`]+) \| `(\".*?\")` \| `(\".*?\")` \| `(\".*?\")` \| (?:`(\".*?\")`|refused) \|$", re.M)
ROWS = [m.groups() for m in ROW.finditer(PAGE.read_text("utf-8"))]


def test_every_line_of_the_table_is_a_row() -> None:
    lines = [line for line in PAGE.read_text("utf-8").split("\n") if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1 == 43


@pytest.mark.parametrize(("case", "file", "old", "new", "result"), ROWS, ids=[r[0] for r in ROWS])
def test_row(ws, case, file, old, new, result) -> None:
    before = json.loads(file).encode()
    ws.put("f", before)
    out = ws.call("edit", path="f", old=json.loads(old), new=json.loads(new))
    expected = json.loads(result).encode() if result else before
    assert (out.ok, ws.bytes("f")) == (bool(result), expected), out.text
