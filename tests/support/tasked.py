"""A session whose model gives tasks to sub-agents, and what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.models.scripted import Scripted
from agent.permissions import Approval, Verdict
from agent.sandbox import Rung, Sandbox
from agent.session import Session
from agent.settings import Settings
from runtime.events import Event, ToolFinished, TurnEnded
from transcripts.catalog import tasks_of
from transcripts.log import TranscriptLog
from transcripts.records import ToolResult


def call(name: str, **arguments: object) -> dict[str, Any]:
    """One call of an answer."""
    return {"name": name, "arguments": arguments}


def calls(*made: dict[str, Any], text: str = "") -> dict[str, Any]:
    """An answer with these calls."""
    return {"text": text, "calls": list(made)}


def bash(command: str, **more: object) -> dict[str, Any]:
    """An answer with one command."""
    return calls(call("bash", command=command, **more))


def task(description: str, kind: str = "explore", prompt: str = "Find it out.") -> dict[str, Any]:
    """A call that gives a task."""
    return call("task", description=description, prompt=prompt, kind=kind)


class Desk:
    """A session in base/ws beside a person's home; `tasks` are the answers of its sub-agents, by description."""

    def __init__(
        self, base: Path, script: Sequence[object], tasks: Mapping[str, Sequence[object]], *, mode: str = "auto",
        answer: Callable[[Approval], Verdict] | None = None, rung: Rung | None = None, resume: str = "",
        persist: bool = True, model: Any = None, **flags: object,
    ) -> None:  # fmt: skip
        self.base, self.asked = base, list[Approval]()
        self.events: list[Event] = []
        self._answer = answer
        (base / "ws").mkdir(exist_ok=True)
        home = base / "home" / ".refold"
        self.settings = Settings.load({"permission_mode": mode, **flags}, {"REFOLD_HOME": str(home)}, base / "ws")
        self.model = model or Scripted([*script, "done"], head={"tasks": dict(tasks)})
        self.session = Session.start(
            self.settings, cwd=base / "ws", model=self.model, approve=self._approve if answer else None,
            resume=resume, persist=persist,
        )  # fmt: skip
        if rung is not None:
            box = Sandbox(base / "ws", home, rungs=[rung], temporary=[base / "temp"])
            box.rules = self.session.permissions
            self.session.safety.sandbox = box
            self.session.permissions.temporary = (str(base / "temp"),)

    async def _approve(self, approval: Approval) -> Verdict:
        self.asked.append(approval)
        await asyncio.sleep(0)
        assert self._answer is not None
        return self._answer(approval)

    async def turn(self, text: str = "go") -> list[ToolResult]:
        """The results of the session's own calls in one turn."""
        self.events = [e async for e in self.session.send(text)]
        return [e.result for e in self.events if isinstance(e, ToolFinished)]

    def send(self, text: str = "go") -> list[ToolResult]:
        """One turn in a loop of its own."""
        return asyncio.run(self.turn(text))

    @property
    def ended(self) -> TurnEnded:
        """How the last turn ended."""
        assert isinstance(self.events[-1], TurnEnded)
        return self.events[-1]

    def logs(self) -> list[Path]:
        """The logs of the sub-agents, oldest first."""
        assert self.session.path is not None
        return tasks_of(self.session.path)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()


def results_of(path: Path) -> list[str]:
    """The results in a sub-agent's log, each "status: text"."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        return [f"{e.record.status}: {e.record.text}" for e in log.entries if e.kind == "tool_result"]
    finally:
        log.close()
