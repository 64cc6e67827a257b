"""The estimate against a real tokenizer: after three turns it is within a tenth, whatever the text is made of."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import inspect
import json
import os
import random
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.models.local import Child
from agent.models.weights import find_weights
from runtime.context.engine import ContextEngine
from runtime.model import ModelView
from tools.base import load_tools
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Usage, User

ENGLISH = " ".join(inspect.cleandoc(m.__doc__ or "") for m in (argparse, http.client, random, inspect, json, asyncio))
CODE = inspect.getsource(argparse) + inspect.getsource(http.client)
CHINESE = (
    "模型先读取文件，然后修改代码。",
    "上下文窗口有限，旧的内容会被折叠。",
    "如果测试失败，请检查日志再决定下一步。",
    "用户希望程序稳定、快速、容易理解。",
    "所有的记录都保存在磁盘上，不会丢失。",
)


def piece(text: str) -> Callable[[random.Random, int], str]:
    def draw(r: random.Random, size: int) -> str:
        start = r.randrange(max(1, len(text) - size))
        return text[start : start + size]

    return draw


def sentences(r: random.Random, size: int) -> str:
    return "".join(r.choice(CHINESE) for _ in range(size // 15 + 1))[:size]


def rows(r: random.Random, size: int) -> str:
    found = [
        {"id": r.randrange(10**6), "name": f"n{r.randrange(99)}", "score": r.random()} for _ in range(size // 40 + 1)
    ]
    return json.dumps(found, indent=r.choice((None, 2)))[:size]


KINDS = {"english": piece(ENGLISH), "code": piece(CODE), "chinese": sentences, "json": rows}


@contextmanager
def tokenizer(folder: Path) -> Iterator[Callable[[str], int]]:
    """Counts tokens with the built-in model's own tokenizer."""
    weights = find_weights(Path("~/.refold/models").expanduser(), os.environ.get("REFOLD_LOCAL_MODEL", ""))
    child = Child({"path": str(weights), "alias": "m", "n_ctx": 512, "batch": 64, "threads": 1, "key": "k"}, folder)
    try:
        url = asyncio.run(child.address())

        def count(text: str) -> int:
            headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
            request = urllib.request.Request(f"{url}/tokenize", json.dumps({"content": text}).encode(), headers)
            with urllib.request.urlopen(request) as response:
                return len(json.load(response)["tokens"])

        yield count
    finally:
        child.end()


def truth(view: ModelView, count: Callable[[str], int]) -> int:
    texts = [view.system, json.dumps(list(view.tools)), *(m["content"] for m in view.messages)]
    return sum(map(count, texts)) + 4 * len(view.messages)


def session(draw: Callable[[random.Random, int], str], seed: int, count: Callable[[str], int]) -> list[float]:
    """How far the estimate was off in each turn after the third, as a share of the truth."""
    r = random.Random(seed)
    specs = [t.spec() for t in load_tools(("read", "bash", "write")).values()]
    engine = ContextEngine(TranscriptLog.memory(), system="You are a coding agent. " * 20, specs=specs)
    engine.set_window(200_000, "test")
    out = []
    for turn in range(9):
        engine.append(User(draw(r, r.randrange(50, 3000))))
        view = engine.build_model_view()
        reported = truth(view, count)
        if turn >= 3:
            out.append(abs(view.estimate - reported) / reported)
        engine.record_request(view, "m")
        engine.append(Assistant(draw(r, r.randrange(20, 800))))
        engine.append(Usage(input=reported, output=5))
    return out


@pytest.mark.real_model
@pytest.mark.timeout(240)
def test_the_estimate_is_within_a_tenth_after_three_turns(tmp_path: Path) -> None:
    with tokenizer(tmp_path) as count:
        off = {name: [e for seed in range(3) for e in session(draw, seed, count)] for name, draw in KINDS.items()}
        mixed = [
            e for seed in range(3) for e in session(lambda r, n: r.choice(list(KINDS.values()))(r, n), seed, count)
        ]
    for name, errors in off.items():
        assert sorted(errors)[int(len(errors) * 0.95)] < 0.10, name
    assert max(mixed) < 0.15  # another kind of text in each turn
