"""Damage that was met in the field, done to a log of ours: what is whole is kept, the rest is named, any provider takes
the next request, and no byte of the original is thrown away."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.lived import next_request
from tests.support.mutations import mutate
from tests.support.strict import refusals
from transcripts.catalog import describe
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Record, ToolCall, ToolResult, User

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "recovery.jsonl"


def talk(base: list[dict[str, Any]]) -> list[Record]:
    """A conversation in the form of chat messages as records of ours."""
    out: list[Record] = []
    names: dict[str, str] = {}
    for message in base:
        if message["role"] == "user":
            out.append(User(message["content"]))
        elif message["role"] == "tool":
            out.append(ToolResult(message["tool_call_id"], names[message["tool_call_id"]], message["content"]))
        else:
            calls = tuple(
                ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
                for c in message.get("tool_calls", ())
            )
            names.update({c.id: c.name for c in calls})
            out.append(Assistant(message["content"], calls, finish="tool_calls" if calls else "stop"))
    return out


def _call(ident: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


BASE: list[dict[str, Any]] = [
    {"role": "user", "content": "mend the cart"},
    {"role": "assistant", "content": "I look.", "tool_calls": [_call("a1", "bash", {"command": "make test"})]},
    {"role": "tool", "tool_call_id": "a1", "content": "2 failed: café"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [_call("a2", "read", {"path": "cart.py"}), _call("a3", "read", {"path": "tax.py"})],
    },
    {"role": "tool", "tool_call_id": "a2", "content": "total = 1"},
    {"role": "tool", "tool_call_id": "a3", "content": "rate = 2"},
    {"role": "assistant", "content": "Mended."},
    {"role": "user", "content": "thank you 🏷"},
    {"role": "assistant", "content": "Gladly."},
]


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


OWN: dict[str, tuple[list[dict[str, Any]], int, bool]] = {
    # name: (operations, records kept of 9, whether a problem is told)
    "untouched": ([], 9, False),
    "torn last line": ([{"op": "cut_line", "line": 8, "keep": 0.4}, {"op": "no_final_newline"}], 8, True),
    "torn by one byte": ([{"op": "truncate_tail", "bytes": 2}], 8, True),
    "no newline at the end": ([{"op": "no_final_newline"}], 9, False),
    "bad line in the middle": ([{"op": "cut_line", "line": 4}], 8, True),
    "line glued to the next": ([{"op": "cut_line_join_next", "line": 3}], 8, True),
    "first line bad": ([{"op": "cut_line", "line": 0, "keep": 0.9}], 8, True),
    "NUL line": ([{"op": "nul_line", "line": 3, "len": 4096}], 9, True),
    "NULs behind, at the end": ([{"op": "nul_after", "line": 2, "len": 77}, {"op": "append_nul", "len": 9}], 9, True),
    "NULs before": ([{"op": "nul_prefix", "line": 6, "len": 1000}], 9, True),
    "all NUL": ([{"op": "all_nul"}], 0, True),
    "empty": ([{"op": "empty"}], 0, False),
    "blanks": ([{"op": "whitespace"}], 0, False),
    "blank lines": ([{"op": "blank_lines"}], 9, False),
    "BOM": ([{"op": "bom"}], 9, False),
    "CRLF": ([{"op": "crlf"}], 9, False),
    "BOM, CRLF and NULs": ([{"op": "bom"}, {"op": "crlf"}, {"op": "append_nul", "len": 5}], 9, True),
    "line twice": ([{"op": "dup_line", "line": 4}], 9, True),
    "file twice": ([{"op": "merge_two_files"}], 9, True),
    "swapped": ([{"op": "swap", "a": 4, "b": 7}], 9, True),
    "results gone": ([{"op": "drop_line", "line": 5}, {"op": "drop_line", "line": 4}], 7, True),
    "beginning gone": ([{"op": "drop_line", "line": 0}, {"op": "drop_line", "line": 0}], 7, True),
    "answer gone": ([{"op": "drop_line", "line": 3}], 8, True),
    "question gone": ([{"op": "drop_line", "line": 7}], 8, True),
    "another's line between": ([{"op": "insert_raw", "line": 4, "b64": b64('{"role":"user","content":"x"}')}], 9, True),
    "no object": ([{"op": "insert_raw", "line": 2, "b64": b64("null")}], 9, True),
    "NEL put in": ([{"op": "replace_bytes", "old": b64("2 failed"), "new": b64("2 \u0085failed")}], 9, True),
    "cut inside a character": ([{"op": "replace_bytes", "old": b64("🏷"), "new": b64("🏷".encode()[:2])}], 8, True),
    "half a character in arguments": (
        [{"op": "replace_bytes", "old": b64("make test"), "new": b64("make \\\\ud83e")}], 9, True,
    ),
    "arguments cut": ([{"op": "replace_bytes", "old": b64('make test\\"}'), "new": b64("make")}], 9, True),
}  # fmt: skip


def lay(path: Path, base: list[dict[str, Any]], ops: list[dict[str, Any]]) -> bytes:
    """A log of this conversation, damaged; gives the damaged bytes."""
    log = TranscriptLog.create(path)
    for record in talk(base):
        log.append(record)
    log.close()
    raw = mutate(path.read_bytes(), ops)
    path.write_bytes(raw)
    return raw


def preserved(path: Path, raw: bytes) -> bool:
    """Whether all the bytes there were are in the log or beside it."""
    torn = path.with_suffix(".torn")
    return path.read_bytes().startswith(raw[: len(raw) - (torn.stat().st_size if torn.exists() else 0)]) and (
        not torn.exists() or raw.endswith(torn.read_bytes())
    )


@pytest.mark.parametrize("name", OWN)
def test_a_damaged_log_is_read_mended_and_goes_on(tmp_path: Path, name: str) -> None:
    ops, kept, told = OWN[name]
    path = tmp_path / "20260101-000000-abcd1234.jsonl"
    raw = lay(path, BASE, ops)
    log = TranscriptLog.open(path, readonly=True)
    found = [e.record for e in log.entries if e.kind != "gap"]
    log.close()
    assert (len(found), bool(log.problems)) == (kept, told)
    assert (describe(path) is not None) == bool(raw)
    messages, first, _ = next_request(path)
    assert (refusals(messages), messages[-1]["content"][-6:]) == ([], "Go on.")
    assert preserved(path, raw)
    again = TranscriptLog.open(path)
    again.append(User("and on"))
    again.close()
    log = TranscriptLog.open(path, readonly=True)
    assert log.entries[-1].record == User("and on")
    assert [e.record for e in log.entries if e.record in found] == found
    log.close()


def shared_rows() -> list[dict[str, Any]]:
    """The cases beside the checkout; none where they are not there."""
    if not SHARED.exists():
        return []
    return [json.loads(line) for line in SHARED.read_text(encoding="utf8").splitlines()]


@pytest.mark.parametrize("row", shared_rows(), ids=lambda row: row["id"])
def test_the_shared_cases(tmp_path: Path, row: dict[str, Any]) -> None:
    path, expected = tmp_path / "20260101-000000-abcd1234.jsonl", row["expected"]
    whole = lay(path, row["input"]["base"], [])
    raw = mutate(whole, row["input"]["ops"])
    if row["input"]["ops"] and raw == whole:
        return  # these bytes do not come in a log of ours
    path.write_bytes(raw)
    started = time.perf_counter()
    listed = describe(path)
    assert time.perf_counter() - started < expected.get("listing_time_s_max", 1)
    log = TranscriptLog.open(path, readonly=True)
    kept = [e for e in log.entries if e.kind != "gap"]
    log.close()
    wanted = expected.get("records_kept")
    if isinstance(wanted, int):
        assert len(kept) == wanted
    if expected.get("warn"):
        assert log.problems and listed is not None
    if "next_request_valid" in expected:
        assert (refusals(next_request(path)[0]), preserved(path, raw)) == ([], True)
    assert time.perf_counter() - started < expected.get("time_s_max", 60)


def test_a_huge_line_costs_no_more_memory_than_it_may(tmp_path: Path) -> None:
    """A result of 20 MB, put into the log by hand: the next request is made of it in a process of its own."""
    path = tmp_path / "20260101-000000-abcd1234.jsonl"
    lay(path, BASE, [{"op": "pad_string", "find": "2 failed", "mb": 20}])
    program = f"""
import asyncio, re, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from runtime.context.engine import ContextEngine
from transcripts.log import TranscriptLog
from transcripts.records import User
log = TranscriptLog.open(Path({str(path)!r}))
engine = ContextEngine(log, system="system")
engine.append(User("Go on."))
asyncio.run(engine.compact_if_needed(None))
view = engine.build_model_view()
print(len(view.messages), view.estimate < 128_000, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    count, fits, kilobytes = done.stdout.split()
    assert (int(count) >= 9, fits, int(kilobytes) < 300_000) == (True, "True", True), done.stdout
    assert time.perf_counter() - started < 10


REPLAYED = False  # sessions are damaged and made by hand here
