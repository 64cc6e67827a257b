"""kill -9 at every record of a fold, and its log cut inside of each: before the checkpoint is whole nothing has
changed, after it everything has.

EVERY_BYTE=1 cuts at every byte of the records of a fold; else at some hundred of them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shutil import copytree, rmtree

import pytest

from agent.models.scripted import Scripted
from runtime.context.engine import ContextEngine
from runtime.model import ModelError, ModelErrorKind
from tests.support.lived import FAST
from transcripts.log import Entry, TranscriptLog
from transcripts.records import Assistant, ToolCall, ToolResult, Usage, User

ROOT = Path(__file__).resolve().parents[2]
WINDOW = 16_000
NOTES = "It was found that all is well so far, and the next step is the next one. " * 3
CAUSES = ("threshold", "no notes", "refused", "silently cut", "asked", "cheap")


def engine_over(log: TranscriptLog, on_write=lambda entry: None) -> ContextEngine:
    """An engine over a log, the same for whoever writes it and whoever reads it again."""
    engine = ContextEngine(log, system="You help.", on_write=on_write)
    engine.set_window(WINDOW, "test")
    return engine


def fill(engine: ContextEngine, tokens: int, lines: int = 90) -> None:
    """Goes on with the history, with results of that many lines, until a request would have that many tokens."""
    n = len(engine.history)
    while engine.estimate() < tokens:
        n += 1
        engine.append(User(f"Do part {n}, and never touch pay.py."))
        call = ToolCall(f"c{n}", "read", f'{{"path": "part_{n}.py"}}')
        engine.append(Assistant(f"I look at part {n}.", (call,), finish="tool_calls"))
        text = f"value = {n}\n" * lines
        engine.append_result(ToolResult(call.id, "read", text, meta={"path": f"/w/part_{n}.py", "sha": "0" * 64}))


def lived(folder: Path, cause: str) -> ContextEngine:
    """A session that has been folded once and is full again, so that a fold is due; for a cheap one, a session with
    large results that is nearly full."""
    engine = engine_over(TranscriptLog.create(folder / "log.jsonl"))
    if cause == "cheap":
        fill(engine, 11_000, 400)
        return engine
    fill(engine, 13_000)
    asyncio.run(fold(engine, "threshold"))
    assert engine.store.active_checkpoint is not None
    fill(engine, 13_000)
    if cause == "silently cut":
        engine.record_request(engine.build_model_view(), "m")
        engine.append(Usage(engine.estimate(), 30, None))
        fill(engine, engine.estimate() + 2_000)
        engine.record_request(engine.build_model_view(), "m")
        engine.append(Usage(4_000, 30, None))
    return engine


async def fold(engine: ContextEngine, cause: str) -> None:
    """The fold that is to be killed."""
    model = Scripted(["Go on."], head={"notes": {"error": "server_error"} if cause == "no notes" else NOTES})
    if cause == "refused":
        await engine.reactive_compact(model, ModelError(ModelErrorKind.PROMPT_TOO_LONG, "too long", limit=12_000))
    elif cause == "asked":
        await engine.compact(model, cause="asked", focus="pay.py")
    elif cause == "cheap":
        await engine.prune_when_cheap()
    else:
        await engine.compact_if_needed(model)


def die_at(folder: Path, cause: str, records: int) -> None:
    """Folds the session in `folder` and is killed when so many records of the fold are on disk."""
    written: list[Entry] = []

    def count(entry: Entry) -> None:
        written.append(entry)
        if len(written) == records:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(fold(engine_over(TranscriptLog.open(folder / "log.jsonl"), count), cause))


def seen(folder: Path) -> tuple[str, str]:
    """(hash of the view, id of the active fold) as a process that opens this log sees them."""
    log = TranscriptLog.open(folder / "log.jsonl")
    engine = engine_over(log)
    checkpoint = engine.store.active_checkpoint
    found = engine.build_model_view().sha, checkpoint.id if checkpoint else ""
    log.close()
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder where writing is quick."""
    folder = Path(tempfile.mkdtemp(prefix="refold-fold-", dir=FAST))
    yield folder
    rmtree(folder)


@pytest.mark.parametrize("cause", CAUSES)
def test_at_every_record_and_inside_of_each(place: Path, cause: str) -> None:
    (place / "before").mkdir()
    lived(place / "before", cause).log.close()
    before = seen(place / "before")
    size = (place / "before" / "log.jsonl").stat().st_size
    kinds: list[str] = []
    codes: list[int] = []
    while not codes or codes[-1] == -signal.SIGKILL:
        folder = place / str(len(codes) + 1)
        copytree(place / "before", folder)
        argv = [sys.executable, "-m", "tests.recovery.test_kill_in_a_fold", str(folder), cause, str(len(codes) + 1)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        codes.append(done.returncode)
        log = TranscriptLog.open(folder / "log.jsonl", readonly=True)
        kinds = [e.kind for e in log.entries if e.offset >= size]
        assert (seen(folder) != before) == ("checkpoint" in kinds), kinds
        assert seen(folder) == seen(folder)
    assert codes == [-signal.SIGKILL] * len(kinds) + [0]
    assert kinds.count("checkpoint") == 1 and kinds[-1] == "checkpoint"
    cut_inside(folder, size, before, seen(folder))


def cut_inside(folder: Path, size: int, before: tuple[str, str], after: tuple[str, str]) -> None:
    """Cuts the log of a finished fold inside of its records."""
    path = folder / "log.jsonl"
    whole = path.read_bytes()
    assert before != after and whole.endswith(b"\n")
    cuts = range(size, len(whole) + 1)
    if not os.environ.get("EVERY_BYTE"):
        ends = [n for n in cuts if whole[n - 1 : n] == b"\n"]
        cuts = sorted({*Random(1).sample(cuts, 60), *ends, *(n - 1 for n in ends), *(n + 1 for n in ends[:-1])})
    wrong = []
    for cut in cuts:
        path.write_bytes(whole[:cut])
        if seen(folder) != (after if cut >= len(whole) - 1 else before):
            wrong.append(cut)
    assert wrong == []


if __name__ == "__main__":
    die_at(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
