"""Everyday cases collected from others, where they lie beside the checkout: those that are about tools."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.processes import gone
from tools.bash import close_jobs

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "everyday.jsonl"
ALL = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.is_file() else []
ROWS = [r for r in ALL if "call" in r["input"] or isinstance(r["input"].get("calls"), list)]


def prepare(ws, given) -> None:
    for name, value in given.get("files", {}).items():
        ws.put(name, base64.b64decode(value["base64"]))
    if "setup" in given:
        subprocess.run(["bash", "-c", given["setup"]], cwd=ws.root, check=True)


@pytest.mark.parametrize("row", ROWS, ids=[r["id"] for r in ROWS])
def test_row(ws, row) -> None:
    given, expected = row["input"], row["expected"]
    prepare(ws, given)
    files = {p: p.read_bytes() for p in ws.root.rglob("*") if p.is_file()}
    started = time.monotonic()
    for call in given.get("calls") or [given["call"]]:
        out = ws.call(call["tool"], **{k: v for k, v in call.items() if k != "tool"})
    seconds = time.monotonic() - started
    assert expected.get("output_contains", "") in out.text
    assert seconds < expected.get("time_s_max", 30)
    if "cwd" in str(expected.get("says")) or "timed out" in str(expected.get("says")):
        assert expected["says"].removesuffix(" s") in out.text
    if "truncated" in str(expected.get("says")):
        assert "[truncated: head and tail kept" in out.text
    if "bytes_b64" in expected:
        assert ws.bytes(given["call"]["path"]) == base64.b64decode(expected["bytes_b64"])
    if "U+FFFD" in str(expected.get("never")):
        assert not any("\ufffd".encode() in p.read_bytes() for p in files)
    if "check" in expected:
        subprocess.run(["bash", "-c", expected["check"]], cwd=ws.root, check=True)
    if row["area"] == "tui":
        assert not set(out.text) & {chr(n) for n in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}
    close_jobs(ws.ctx)
    if "after" in expected:
        assert gone("98765")
