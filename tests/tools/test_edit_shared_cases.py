"""Edit cases collected from others, where they lie beside the checkout; nothing is run where they do not."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "edits.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.is_file() else []

OURS = {
    "opencode-replacer-07": 'function test() {\n\tconsole.log("world");\n}',
    "opencode-replacer-25": "  function test() {\n    return false;\n  }",
    "opencode-replacer-27": "\n  if (condition) {\n    doNothing();\n  }\n",
    "qwen-nbsp": 'const label = "hi world";\n',
    "qwen-delete-whole-line": '\nconsole.log("bye")\n',
}
"""Rows that are a matter of policy and that we decide otherwise than by refusing or as they do: the file afterwards."""


def content(value) -> bytes:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode()


def files(ws) -> dict[str, bytes]:
    return {str(p.relative_to(ws.root)): p.read_bytes() for p in ws.root.rglob("*") if p.is_file()}


def run(ws, row):
    edit = row["input"]["edit"]
    if "patch" in edit:
        return ws.call("apply_patch", patch=edit["patch"])
    if row["kind"] == "multi_edit":
        return ws.call("edit", path=edit["path"], edits=[pair(e) for e in edit["edits"]])
    if "edits" in edit:
        return asyncio.run(side_by_side(ws, edit))
    return ws.call("edit", path=edit["path"], replace_all=edit.get("replace_all", False), **pair(edit))


def pair(edit) -> dict[str, str]:
    return {"old": edit.get("old_string", ""), "new": edit["new_string"]}


async def side_by_side(ws, edit):
    calls = [ws.box.run("edit", {"path": edit["path"], **pair(e)}) for e in edit["edits"]]
    return (await asyncio.gather(*calls))[-1]


@pytest.mark.parametrize("row", ROWS, ids=[r["id"] for r in ROWS])
def test_row(ws, row) -> None:
    for name, value in row["input"]["files"].items():
        ws.put(name, content(value))
    before = files(ws)
    edit = row["input"]["edit"]
    if "mode" in edit:
        os.chmod(ws.root / edit["path"], int(edit["mode"], 8))
    out = run(ws, row)
    expected = {name: content(value) for name, value in row["expected"]["files"].items()}
    if row["cls"] == "lossy" or (row["cls"] == "policy" and not out.ok):
        assert (out.ok, files(ws)) == (False, before)
    elif row["id"] in OURS:
        assert (out.ok, files(ws)) == (True, {edit["path"]: OURS[row["id"]].encode()})
    else:
        assert (out.ok, files(ws)) == (row["expected"]["ok"], expected)
    if "mode" in edit:
        assert oct((ws.root / edit["path"]).stat().st_mode & 0o7777) == f"0o{edit['mode'].lstrip('0')}"
