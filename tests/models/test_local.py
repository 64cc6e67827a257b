"""The built-in model, for real: it needs its weights (REFOLD_LOCAL_MODEL, or the cache under ~/.refold)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.models import make_model
from agent.models.local import Child, Local
from agent.models.weights import find_weights
from runtime.context.budget import ContextSettings
from runtime.context.engine import ContextEngine
from runtime.crew import Crew
from runtime.events import Compacted, TurnEnded, Waiting
from runtime.loop import run_turn
from runtime.model import ModelError, ModelErrorKind
from tests.support.asking import hear, view
from tools.base import Toolbox, ToolContext, load_tools
from transcripts.log import TranscriptLog
from transcripts.records import User

CHECKOUT = Path(__file__).parents[2]
WEIGHTS = find_weights(Path("~/.refold/models").expanduser(), os.environ.get("REFOLD_LOCAL_MODEL", ""))
real = pytest.mark.real_model


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()


def until(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def local(home: Path, **options: Any) -> Local:
    model = make_model("local", home=home, extra={"local_model": str(WEIGHTS)}, **options)
    assert isinstance(model, Local)
    return model


def pid_of(model: Local) -> int:
    assert model.child is not None
    return model.child.pid


def test_a_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        make_model("local:/no/such.gguf", home=tmp_path)
    assert (caught.value.kind, "/no/such.gguf" in caught.value.message) == (ModelErrorKind.CONFIG, True)


def test_a_file_that_is_no_model_is_told_by_the_first_request(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"not a model")

    async def run() -> ModelError:
        model: Any = make_model(f"local:{path}", home=tmp_path)
        heard = await hear(model)
        await model.close()
        assert heard.waits == [Waiting("loading the model")]
        assert heard.error is not None
        return heard.error

    error = asyncio.run(run())
    assert (error.kind, "could not be started" in error.message) == (ModelErrorKind.CONFIG, True)


@real
@pytest.mark.timeout(300)
def test_it_calls_tools_says_what_it_does_and_uses_its_cache(tmp_path: Path) -> None:
    async def run() -> tuple[Any, Any]:
        model = local(tmp_path)
        await model.prepare()
        asked = view([{"role": "user", "content": "List the files of this folder with bash."}], system="")
        first = await hear(model, asked)
        again = await hear(model, asked)
        await model.close()
        return first, again

    first, again = asyncio.run(run())
    assert [c.name for c in first.message.calls] == ["bash"]
    assert "ls" in first.message.calls[0].args["command"]
    assert first.waits[-1].what == "reading the prompt"
    assert first.shown == ""
    assert (again.answer.usage.cached or 0) > 0.9 * again.answer.usage.input


@real
@pytest.mark.timeout(300)
def test_loading_and_stopping_leave_the_terminal_alive(tmp_path: Path) -> None:
    """The event loop is never held up while the weights load, and Esc ends a request within a fifth of a second."""

    async def run() -> tuple[float, list[float]]:
        model = local(tmp_path)
        gaps: list[float] = []

        async def tick() -> None:
            last = time.monotonic()
            while True:
                await asyncio.sleep(0.01)
                gaps.append(time.monotonic() - last)
                last = time.monotonic()

        ticking = asyncio.create_task(tick())
        await model.prepare()
        task = asyncio.create_task(hear(model, view([{"role": "user", "content": "Count to a thousand. " * 60}])))
        await asyncio.sleep(1.0)
        ticking.cancel()
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        took = time.monotonic() - began
        await model.close()
        return took, gaps

    took, gaps = asyncio.run(run())
    assert took < 0.2
    assert max(gaps) < 0.5


@real
@pytest.mark.timeout(120)
def test_its_process_ends_with_us_however_we_end(tmp_path: Path) -> None:
    async def closed() -> int:
        model = local(tmp_path)
        await model.prepare()
        pid = pid_of(model)
        assert alive(pid)
        await model.close()
        return pid

    assert not alive(asyncio.run(closed()))
    code = (
        "import asyncio, sys, time; from pathlib import Path; from agent.models import make_model\n"
        "m = make_model('local', home=Path(sys.argv[1]), extra={'local_model': sys.argv[2]})\n"
        "asyncio.run(m.prepare()); print(m.child.pid, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(WEIGHTS)], cwd=CHECKOUT, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert alive(pid)
        owner.send_signal(signal.SIGKILL)
    assert until(lambda: not alive(pid))


@real
@pytest.mark.timeout(300)
def test_a_real_window_is_learned_and_the_turn_completes(tmp_path: Path) -> None:
    """A llama.cpp server with 2,048 tokens, and a client that believes in far more."""
    settings = {"path": str(WEIGHTS), "alias": "local", "n_ctx": 2048, "batch": 512, "threads": 2, "key": "k"}
    child = Child(settings, tmp_path)
    events: list[Any] = []

    async def run() -> tuple[int, str]:
        url = f"{await child.address()}/v1"
        options = {"tool_protocol": "text", "body": {"max_tokens": 60}}
        model: Any = make_model(
            "openai_chat:local", base_url=url, api_key="k", home=tmp_path, window=100_000, extra=options
        )
        box = Toolbox(load_tools(("bash",)), ToolContext(tmp_path, tmp_path))
        engine = ContextEngine(
            TranscriptLog.memory(),
            system="Answer in one short sentence.",
            specs=box.specs(),
            settings=ContextSettings(summarise=False, token_budget=700),
        )
        engine.set_window(model.window, model.window_source)
        crew = Crew(engine, model, box)
        words = " ".join(f"Fact {n}: the number of house {n} is {n * 7}." for n in range(160))
        for prompt in ("Say hello.", f"How many facts are these? {words}"):
            async for event in run_turn(crew, User(prompt)):
                events.append(event)
        found = model.window, model.window_source
        await model.close()
        return found

    try:
        window = asyncio.run(run())
    finally:
        child.end()
    assert window == (2048, "learned")
    assert any(isinstance(e, Compacted) for e in events)
    ends = [e for e in events if isinstance(e, TurnEnded)]
    assert [e.reason for e in ends] == ["done"] * 2, [e.message for e in ends]
    assert json.loads((tmp_path / "windows.json").read_text())
