"""What a step costs beside the model, at step 50, 1,000 and 10,000 of one session.

Once the context engine alone (log in memory, log on disk), once the whole loop with the scripted model and a tool that
reads a file. Run: python benchmarks/steps.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import asyncio  # noqa: E402

from agent.models.scripted import Scripted  # noqa: E402
from agent.session import Session  # noqa: E402
from agent.settings import Settings  # noqa: E402
from runtime.context.engine import ContextEngine  # noqa: E402
from transcripts.log import TranscriptLog  # noqa: E402
from transcripts.records import Assistant, ToolCall, ToolResult, Usage, User  # noqa: E402

MARKS = (50, 1_000, 10_000)
SAMPLE = 40
"""Steps that are timed at each mark; the figure is their median."""
HUGE, USUAL = 50_000_000, 128_000
"""Windows in tokens: one that is never folded, one that is folded about every 500 steps."""
RESULT = "".join(f"{n:>5}\tvalue_{n} = {n * 7}\n" for n in range(30))


def step(engine: ContextEngine, number: int) -> None:
    """What the loop does with the engine in one step, a result of about 700 characters in it."""
    if number % 20 == 0:
        engine.append(User(f"Go on with part {number // 20}."))
    asyncio.run(fold(engine))
    view = engine.build_model_view()
    engine.record_request(view, "bench")
    call = ToolCall(f"call_{number}", "read", f'{{"path": "part_{number}.py"}}')
    engine.append(Assistant(f"I look at part {number}.", (call,), finish="tool_calls"))
    engine.append(Usage(view.estimate, 30, None))
    meta = {"path": f"/w/part_{number}.py", "sha": "0" * 64}
    engine.append_result(ToolResult(call.id, "read", RESULT, meta=meta))


async def fold(engine: ContextEngine) -> None:
    """Folds where it is due."""
    await engine.compact_if_needed(None)


Span = tuple[float, float]
"""(wall, processor) milliseconds. Under load the second is the one to believe; waiting for the disk is in the first."""


def clock() -> Span:
    """Now."""
    return time.perf_counter() * 1_000, time.process_time() * 1_000


def since(start: Span, steps: int = 1) -> Span:
    """What a step took of the time since then."""
    wall, cpu = clock()
    return (wall - start[0]) / steps, (cpu - start[1]) / steps


def middle(spans: list[Span]) -> Span:
    """The medians."""
    return median(w for w, _ in spans), median(c for _, c in spans)


def engine_times(log: TranscriptLog, window: int) -> Iterator[Span]:
    """The time of a step at each mark."""
    engine = ContextEngine(log, system="You help.\n" * 300)
    engine.set_window(window, "bench")
    number = 0
    for mark in MARKS:
        while number < mark:
            step(engine, number := number + 1)
        yield timed(engine, mark)


def timed(engine: ContextEngine, number: int) -> Span:
    """The time of a step from here on."""
    spans: list[Span] = []
    for _ in range(SAMPLE):
        start = clock()
        step(engine, number)
        spans.append(since(start))
    return middle(spans)


def loop_times(folder: Path, window: int) -> Iterator[Span]:
    """The time of a step of the whole loop at each mark: turns of some reading calls, divided by their number."""
    work = folder / "work"
    work.mkdir()
    (work / "part.py").write_text(RESULT)
    flags = {"model": "scripted:bench", "permission_mode": "yolo", "context_window": window}
    settings = Settings.load(flags, {"REFOLD_HOME": str(folder / "home")}, folder)
    usage = {"input_tokens": 0, "output_tokens": 9}  # said, so that the script need not count the whole view
    read = {"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "part.py"}}], "usage": usage}
    turn = [*([read] * SAMPLE), {"text": "Done.", "usage": usage}]
    session = Session.start(settings, cwd=work, model=Scripted(turn * len(MARKS) * 5, window=window))
    number = 0
    with session:
        for mark in MARKS:
            while number < mark:
                step(session.engine, number := number + 1)
            yield middle([asyncio.run(one_turn(session)) for _ in range(5)])


async def one_turn(session: Session) -> Span:
    """The time of a step of one turn."""
    start = clock()
    async for _ in session.send("Go on."):
        pass
    return since(start, SAMPLE + 1)


def row(name: str, times: Iterator[Span]) -> None:
    """One line: wall and processor milliseconds at each mark, and how many times the first the last is."""
    found = list(times)
    cells = (f"{f'{wall:.2f} ({cpu:.2f})':>17}" for wall, cpu in found)
    print(f"{name:40}{''.join(cells)}{found[-1][1] / found[0][1]:>14.1f}", flush=True)


def main() -> None:
    """All of it."""
    marks = "".join(f"{f'step {mark:,}':>17}" for mark in MARKS)
    print(f"{'milliseconds a step: wall (processor)':40}{marks}{'last / first':>14}")
    row("engine, log in memory, never folded", engine_times(TranscriptLog.memory(), HUGE))
    row("engine, log in memory, window 128,000", engine_times(TranscriptLog.memory(), USUAL))
    with tempfile.TemporaryDirectory() as folder:
        log = TranscriptLog.create(Path(folder) / "log.jsonl")
        row("engine, log on disk, never folded", engine_times(log, HUGE))
        log.close()
    for window, name in ((HUGE, "never folded"), (USUAL, "window 128,000")):
        with tempfile.TemporaryDirectory() as folder:
            row(f"whole loop with a read, {name}", loop_times(Path(folder), window))


if __name__ == "__main__":
    main()
