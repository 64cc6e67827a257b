"""kill -9 at random moments of real runs: no record that was told is lost, nothing with effects runs twice, what the
model is told of an open call is true, any provider takes the next request, and two resumes in a row show the same.

KILLS sets how often (300 for a full run).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from agent.replay import verify
from tests.support.lived import FAST, next_request
from tests.support.strict import refusals
from transcripts.log import TranscriptLog
from transcripts.records import ToolResult

KILLS = int(os.environ.get("KILLS", "20"))
CHILD = Path(__file__).resolve().parents[1] / "support" / "killed.py"
MOMENTS = (
    "Open",
    "TextDelta",
    "ToolCallDelta",
    "AnswerRecorded",
    "ToolStarted",
    "ToolFinished",
    "Compacting",
    "RequestSent",
)
TURNS = 60


class Run:
    """One process that plays a session until it is killed. `told` are the events that it told before that."""

    def __init__(self, folder: Path) -> None:
        argv = [sys.executable, str(CHILD), str(folder), str(TURNS)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.told: list[dict] = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.news:
                self.told.append(json.loads(line))
                self.news.notify()

    def wait_for(self, event: str, count: int) -> None:
        """Until this event was told that often, or the process is over."""
        with self.news:
            while sum(t["event"] == event for t in self.told) < count and self.process.poll() is None:
                self.news.wait(0.2)

    def kill(self) -> None:
        """Kills the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        assert self.process.stdout is not None and self.process.stderr is not None
        self.error = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def path(self) -> Path | None:
        """The log, where it got that far."""
        return next((Path(t["path"]) for t in self.told if t["event"] == "Open"), None)


def faults(folder: Path, run: Run) -> list[str]:
    """What is wrong after a kill."""
    if run.path is None:
        return []
    log = TranscriptLog.open(run.path, readonly=True)
    kinds = {e.seq: e.kind for e in log.entries}
    log.close()
    out = [f"{told} is not in the log" for told in run.told if told.get("seq") and told["seq"] not in kinds]
    ledger = (folder / "ledger").read_text().split() if (folder / "ledger").exists() else []
    out += [f"{name} ran {count} times" for name, count in Counter(ledger).items() if count > 1]
    copy = folder / "copy" / run.path.name
    shutil.rmtree(copy.parent, ignore_errors=True)
    copy.parent.mkdir()
    shutil.copy(run.path, copy)
    shutil.copytree(run.path.with_suffix(".blobs"), copy.with_suffix(".blobs"))
    before = copy.read_bytes()
    messages, sha, _ = next_request(copy)
    out += [f"next request: {what}" for what in refusals(messages)]
    out += [f"a call: {what}" for what in untrue(copy, max(kinds, default=0), ledger, folder)]
    log = TranscriptLog.open(copy, readonly=True)
    checked = verify(log)
    log.close()
    out += list(checked.differences)
    copy.write_bytes(before)
    copy.with_suffix(".torn").unlink(missing_ok=True)
    if next_request(copy)[1] != sha:
        out.append("a second resume shows something else")
    return out


def untrue(path: Path, last: int, ledger: list[str], folder: Path) -> list[str]:
    """What the model is told of calls that had no result, and is not so."""
    log = TranscriptLog.open(path, readonly=True)
    calls = {c.id: (n, c) for n, c in _calls(log)}
    out: list[str] = []
    for entry in log.entries:
        if entry.seq <= last or entry.kind != ToolResult.kind:
            continue
        n, call = calls[entry.record.call_id]
        ran = f"b{n}" in ledger
        target = folder / "work" / call.args.get("path", "none")
        written = target.exists() and target.read_text() == call.args.get("content")
        status = entry.record.status
        if call.name == "bash" and status == "not_run" and ran:
            out.append(f"b{n} ran and is said not to have run")
        if call.name == "write" and (status, written) in (("not_run", True), ("ok", False)):
            out.append(f"{target.name} is {'' if written else 'not '}written and said to be {status}")
        if call.name in ("bash", "write") and status not in ("not_run", "ok", "unknown"):
            out.append(f"{call.name} is said to be {status}")
    log.close()
    return out


def _calls(log: TranscriptLog):
    answers = [e.record for e in log.entries if e.kind == "assistant"]
    return [(n, call) for n, answer in enumerate(answers, 1) for call in answer.calls]


@pytest.mark.timeout(3600 if KILLS > 50 else 180)
def test_killed_at_any_moment() -> None:
    random = Random(os.environ.get("SEED", "8"))
    place = Path(tempfile.mkdtemp(prefix="refold-killed-", dir=FAST))
    wrong: list[str] = []
    moments: Counter[str] = Counter()
    try:
        for n in range(KILLS):
            folder = place / str(n // 5)
            folder.mkdir(exist_ok=True)
            run = Run(folder)
            moment = random.choice(MOMENTS)
            run.wait_for(moment, random.randint(1, 6) if moment != "Open" else 1)
            time.sleep(random.choice((0, random.random() * 0.01, random.random() * 0.5)))
            run.kill()
            moments[run.told[-1]["event"] if run.told else "before"] += 1
            wrong += [f"kill {n} at {moment}: {what}" for what in faults(folder, run)]
            wrong += [f"kill {n}: {run.error}"] if run.error else []
    finally:
        shutil.rmtree(place)
    print(dict(moments))
    assert wrong == []
