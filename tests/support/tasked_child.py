"""A session with a sub-agent at work, in a process that is made to be killed.

    python tasked_child.py BASE KIND

Says on standard output, one line of JSON each, what has been recorded of the sub-agent.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.events import TaskEvent
from tests.support.tasked import Desk, bash, call, calls, task


def answers(base: Path) -> list[object]:
    """It says something, writes, and then runs a command for a long time."""
    ledger = f"echo once >> {base}/ledger; sleep 60"
    return [
        {**calls(call("write", path="n.txt", content="n")), "text": "I write n.txt first."},
        {**bash(ledger), "text": "And now the long one."},
        "Never said.",
    ]


async def play(base: Path, kind: str) -> None:
    """One turn, told."""
    with Desk(base, [calls(task("do it", kind))], {"do it": answers(base)}, mode="yolo") as desk:
        async for event in desk.session.send("go"):
            if isinstance(event, TaskEvent):
                line = {"event": type(event.event).__name__, "task": event.task, "session": desk.session.id}
                os.write(1, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2]))
