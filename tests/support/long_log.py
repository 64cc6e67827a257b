"""A session of any length, made without being lived: records of the usual sizes in the usual order, with folds."""

from __future__ import annotations

import json
from pathlib import Path

from transcripts.catalog import project_folder
from transcripts.lines import encode
from transcripts.records import (
    Assistant,
    Checkpoint,
    Note,
    Record,
    Request,
    SessionStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
)

AT = "2026-01-01T00:00:00.000Z"
TURN = 20
"""Steps of a turn."""
FOLD = 100
"""Steps between folds."""


def long_log(home: Path, cwd: Path, records: int, size: int, folds: bool = True) -> Path:
    """The log of about that many records and bytes; its id is aaaa0001. Without `folds` none of it was ever folded."""
    path = project_folder(home, cwd) / "20260101-000000-aaaa0001.jsonl"
    path.parent.mkdir(parents=True)
    words = "a line of output that a command printed, with a path src/shop/cart.py:12 and a number\n"
    body = words * max(1, size // records * 5 // len(words))
    seq = 0
    steps: list[tuple[int, int]] = []
    with path.open("wb") as file:

        def put(record: Record) -> int:
            nonlocal seq
            seq += 1
            file.write(encode(record, seq, AT))
            return seq

        put(SessionStart("aaaa0001", str(cwd), model="scripted:x"))
        while seq < records:
            n = len(steps) + 1
            if n % TURN == 1:
                put(User(f"Do part {n} of the task, and never touch pay.py."))
            put(Request("0" * 64, "a" * 32, "b" * 32, "scripted:x", 20_000, "step", 40, 20_000.0))
            name = "bash" if n % 2 else "read"
            call = ToolCall(f"c{n}", name, json.dumps({"path": f"f{n % 300}.py"}))
            first = put(Assistant(f"I do step {n} now.", (call,), finish="tool_calls"))
            put(Usage(20_000, 30, 19_000))
            if name == "bash":
                put(ToolStarted(call.id, "bash", "execute"))
            meta = {"path": f"{cwd}/f{n % 300}.py", "sha": "a" * 64, "lines": "1-80"}
            steps.append((first, put(ToolResult(call.id, name, f"{n}\n{body}", meta=meta))))
            if n % TURN == 0:
                put(TurnEnd("done", steps=TURN))
                totals = {"input": 20_000 * n, "output": 30 * n}
                put(
                    Note(
                        "state", {"name": "", "model": "scripted:x", "messages": seq, "usage": totals, "cwd": str(cwd)}
                    )
                )
            if folds and n % FOLD == 0:
                put(_fold(n // FOLD, steps[:-10]))
    return path


def _fold(n: int, gone: list[tuple[int, int]]) -> Checkpoint:
    spans: list[list[int]] = []
    for first, last in gone:
        if spans and first - spans[-1][1] <= 3:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    return Checkpoint(
        f"f{n}", gone[-1][1], {f"{a}-{b}": "sliding_window" for a, b in spans}, state="state", cause="threshold",
        strategies=("sliding_window",), tokens_before=100_000, tokens_after=40_000,
    )  # fmt: skip
