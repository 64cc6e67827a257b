"""Sessions with a past: real runs of the product with real tools, made once and then damaged in every way."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.models.scripted import Scripted
from agent.session import Session
from agent.settings import Settings
from runtime.context.engine import ContextEngine
from runtime.events import Event
from transcripts.log import TranscriptLog
from transcripts.records import User

FAST = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
"""Where files that are written thousands of times lie."""


def settings(home: Path, **flags: Any) -> Settings:
    """Settings that ask nobody and read nothing of the person's."""
    flags = {"permission_mode": "yolo", "model": "scripted:x", **flags}
    return Settings.load(flags, {"REFOLD_HOME": str(home), "REFOLD_ENV_FILE": ""}, home)


def live(folder: Path, steps: Sequence[Any], prompts: Sequence[str], **flags: Any) -> tuple[Path, list[Event]]:
    """Runs a session over a script; gives its log and all events."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    model = Scripted(steps, window=flags.pop("window", None))

    async def run() -> tuple[Path, list[Event]]:
        events: list[Event] = []
        with Session.start(settings(folder / "home", **flags), cwd=work, model=model) as session:
            for prompt in prompts:
                events += [event async for event in session.send(prompt)]
            assert session.path is not None
            return session.path, events

    return asyncio.run(run())


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of an answer."""
    return {"name": name, "arguments": arguments}


def work_of(rounds: int) -> tuple[list[Any], list[str]]:
    """(answers, prompts) of a session that reads, writes, runs and folds: some 2.5 KB of log a round."""
    steps: list[Any] = []
    for n in range(rounds):
        listing = f"for i in $(seq 40); do echo line $i of round {n} äöü 中文; done"
        steps += [
            {"text": f"Round {n}.", "calls": [call("write", path=f"f{n}.py", content=f"x = {n}\n" * 20)]},
            {"calls": [call("bash", command=listing), call("read", path=f"f{n}.py"), call("grep", pattern="x")]},
            f"Round {n} is done.",
        ]
    return steps, [f"Do round {n}, and never touch the file keep.txt." for n in range(rounds)]


def next_request(path: Path) -> tuple[list[Any], str, list[str]]:
    """(messages, hash, problems of the log) of the request that a resume would send."""
    log = TranscriptLog.open(path)
    try:
        engine = ContextEngine(log, system="system")
        engine.close_open_calls()
        engine.append(User("Go on."))
        view = engine.build_model_view()
        return list(view.messages), view.sha, log.problems
    finally:
        log.close()
