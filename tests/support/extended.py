"""A workspace and a person's home with extensions in them, and sessions of a scripted model there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.models.scripted import Scripted
from agent.permissions import Approval, Verdict
from agent.session import Session
from agent.settings import Settings
from agent.trust import Trust
from runtime.events import Event, Notice, ToolFinished, TurnEnded


class World:
    """`ws` is the workspace, `own` refold's folder of the person."""

    def __init__(self, base: Path) -> None:
        self.ws, self.own = base / "ws", base / "home" / ".refold"
        self.ws.mkdir()
        self.own.mkdir(parents=True)

    def put(self, path: str, text: str | dict[str, Any]) -> Path:
        """Writes a file of the workspace; one whose path begins with ~/ is the person's (below refold's folder)."""
        where = self.own / path[2:] if path.startswith("~/") else self.ws / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text if isinstance(text, str) else json.dumps(text))
        return where

    def trust(self) -> None:
        """Trusts all that the workspace brings along, as it is now."""
        Trust(self.own, self.ws).grant()

    def settings(self, mode: str = "ask", **flags: Any) -> Settings:
        """The settings of a session in the workspace."""
        env = {"REFOLD_HOME": str(self.own), "REFOLD_ENV_FILE": ""}
        return Settings.load({"permission_mode": mode, **flags}, env, self.ws)

    def open(
        self, *script: Any, mode: str = "ask", answers: Sequence[Verdict] = (), resume: str = "", **flags: Any
    ) -> Talk:
        """A session whose model plays a script."""
        return Talk(self, script, mode, answers, resume, flags)


class Talk:
    """One session, what was asked in it and what the model was shown."""

    def __init__(
        self, world: World, script: Sequence[Any], mode: str, answers: Sequence[Verdict], resume: str, flags: Any
    ) -> None:
        self.model = Scripted([*script, {"text": "done"}])
        self.asked: list[Approval] = []
        self.answers = list(answers)
        self.events: list[Event] = []
        approve = self._approve if answers else None
        settings = world.settings(mode, **flags)
        self.session = Session.start(settings, cwd=world.ws, model=self.model, approve=approve, resume=resume)

    async def _approve(self, approval: Approval) -> Verdict:
        self.asked.append(approval)
        return self.answers.pop(0)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()

    def say(self, text: str = "go", stop_after: float = 0) -> TurnEnded:
        """One turn, interrupted after some seconds where a number is given; its end."""

        async def turn() -> list[Event]:
            if stop_after:
                asyncio.get_running_loop().call_later(stop_after, self.session.interrupt)
            return [event async for event in self.session.send(text)]

        self.events = asyncio.run(turn())
        assert isinstance(self.events[-1], TurnEnded)
        return self.events[-1]

    @property
    def results(self) -> list[str]:
        """The results of the last turn's calls, each "status: text"."""
        return [f"{e.result.status}: {e.result.text}" for e in self.events if isinstance(e, ToolFinished)]

    @property
    def notices(self) -> list[str]:
        """What the person was told in the last turn beside the conversation."""
        return [e.text for e in self.events if isinstance(e, Notice)]

    @property
    def notes(self) -> list[dict[str, Any]]:
        """What the log says of hooks that ran."""
        return [e.record.value for e in self.session.log.entries if e.kind == "note" and e.key == "hook"]

    @property
    def said(self) -> list[str]:
        """The texts in the user's role that the last request showed."""
        shown = [m["content"] for m in self.model.views[-1].messages if m["role"] == "user"]
        return [s if isinstance(s, str) else "".join(p.get("text", "") for p in s) for s in shown]

    @property
    def system(self) -> str:
        """The system prompt that was sent."""
        return self.model.views[-1].system


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer with one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}
