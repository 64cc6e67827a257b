"""Random histories: what people, models, tools and crashes leave in a log. One seed, one history."""

from __future__ import annotations

import json
from random import Random

from runtime.context.budget import ContextSettings
from runtime.context.engine import ContextEngine
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Image, Record, ToolCall, ToolResult, User

WORDS = (
    "never delete the file a.txt ",
    "import os\nprint(1)\n",
    "中文字符内容测试",
    '{"a": [1, 2, {"b": null}]}',
    "😀 ok ",
    "\ud800x",
)
SOURCES = ("typed", "typed", "steered", "shell", "harness")


WINDOWS = (2_000, 4_000, 8_000, 2_000, 4_000, 8_000, 16_000, 40_000, 200_000, 1_000_000)
"""Tokens; small ones more than once, for in them everything happens sooner and costs less time to try."""


class History:
    """Draws steps for a window (tokens). `steps` begins with the person's words."""

    def __init__(self, seed: int, window: int, most: int = 25) -> None:
        self.seed, self.window = seed, window
        self.random = Random(seed)
        self._calls = 0
        self.steps: list[list[Record]] = [[User(self.text() or "go")]]
        self.steps += [self.step() for _ in range(self.random.randint(1, most))]

    def __repr__(self) -> str:
        return f"History({self.seed}, {self.window})"

    def size(self) -> int:
        """Characters: mostly few, some as many as a window has, now and then ten windows of them."""
        r = self.random
        kind = r.random()
        if kind < 0.6:
            return r.randint(0, 300)
        if kind < 0.85:
            return r.randint(300, 4_000)
        return r.randint(0, self.window * 2) if kind < 0.98 else min(self.window * 40, 2_000_000)

    def text(self, size: int | None = None) -> str:
        """Text of one of several kinds."""
        size = self.size() if size is None else size
        word = self.random.choice(WORDS)
        return (word * (size // len(word) + 1))[:size]

    def step(self) -> list[Record]:
        """Words of the person, or an answer with some calls (rarely 200) and their results."""
        r = self.random
        if r.random() < 0.25:
            images = (Image("missing", "image/png"),) if r.random() < 0.08 else ()
            return [User(self.text(), r.choice(SOURCES), images)]
        count = r.choice((0, 1, 1, 1, 1, 2, 3, 6)) if r.random() < 0.98 else 200
        calls = [self.call(10 if count > 10 else self.size()) for _ in range(count)]
        finish = "tool_calls" if calls else r.choice(("stop", "length", "interrupted", "cut"))
        return [
            Assistant(self.text(), tuple(calls), finish=finish),
            *(self.result(c, 400 if count > 10 else None) for c in calls),
        ]

    def call(self, size: int) -> ToolCall:
        """A call with an id that nobody else has."""
        self._calls += 1
        name = self.random.choice(("read", "bash", "write", "recall"))
        arguments = json.dumps({"path": f"/f{self._calls % 7}.py", "content": "x" * size})
        return ToolCall(f"c{self._calls}", name, arguments)

    def result(self, call: ToolCall, size: int | None) -> ToolResult:
        """Its result."""
        meta = (
            {"command": "ls", "exit_code": 1} if call.name == "bash" else {"path": call.args["path"], "sha": "0" * 64}
        )
        return ToolResult(call.id, call.name, self.text(size), meta=meta)


def engine_for(window: int, settings: ContextSettings | None = None) -> ContextEngine:
    """An engine in memory with a small system prompt and one tool."""
    specs = [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {}}}]
    engine = ContextEngine(TranscriptLog.memory(), system="You help.", specs=specs, settings=settings)
    engine.set_window(window, "test")
    return engine


def put(engine: ContextEngine, records: list[Record]) -> None:
    """Appends records the way the loop does: results through the door."""
    for record in records:
        engine.append_result(record) if isinstance(record, ToolResult) else engine.append(record)
