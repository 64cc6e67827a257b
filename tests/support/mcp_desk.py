"""A session with MCP servers and a scripted model, in a workspace beside a person's home."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent.models.scripted import Scripted
from agent.permissions import Approval, Verdict
from agent.sandbox import RUNGS, Rung, Sandbox
from agent.session import Session
from agent.settings import Settings
from runtime.events import Event, Notice, ToolFinished
from tests.support.plain_face import PlainFace

SUPPORT = Path(__file__).parent


def entry(name: str, *words: str, **more: Any) -> dict[str, Any]:
    """The configuration of a server that is a script of this folder."""
    return {"command": sys.executable, "args": [str(SUPPORT / f"{name}.py"), *words], **more}


HELPER = entry("mcp_server")
EVIL = entry("evil_server")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer of the model that calls one tool of a server: `helper__add`."""
    return {"calls": [{"name": f"mcp__{name}", "arguments": arguments}]}


class Desk:
    """`base` holds ws, home and temp. `servers` are the person's own. Use as a context manager."""

    def __init__(
        self,
        base: Path,
        mode: str,
        script: Sequence[Any],
        servers: dict[str, Any],
        *,
        rung: Rung | None = None,
        answers: Sequence[Verdict | Callable[[Desk], Verdict]] = (),
        resume: str = "",
        window: int = 128_000,
        **flags: Any,
    ) -> None:
        for folder in ("ws", "home/.refold", "temp"):
            (base / folder).mkdir(parents=True, exist_ok=True)
        self.base, self.ws, self.own = base, base / "ws", base / "home" / ".refold"
        if servers:
            (self.own / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        settings = Settings.load({"permission_mode": mode, **flags}, {"REFOLD_HOME": str(self.own)}, self.ws)
        self.model = Scripted([*script, "done"], window=window)
        self.asked, self._answers = list[Approval](), list(answers)
        approve = self._approve if answers else None
        self.session = Session.start(settings, cwd=self.ws, model=self.model, approve=approve, resume=resume)
        # The temporary folder of the tests, where all of this lies, is not writable by itself.
        box = Sandbox(self.ws, self.own, rungs=[rung] if rung else RUNGS, temporary=[base / "temp"])
        box.rules = self.session.permissions
        self.session.safety.sandbox = box
        self.events: list[Event] = []

    async def _approve(self, approval: Approval) -> Verdict:
        self.asked.append(approval)
        answer = self._answers.pop(0)
        return answer if isinstance(answer, Verdict) else answer(self)

    async def turn(self, text: str = "go", see: Callable[[Event], None] = lambda event: None) -> list[str]:
        """The results of the calls of one turn, each "status: text"; `see` is shown each event as it comes."""
        events: list[Event] = []
        async for event in self.session.send(text):
            events.append(event)
            see(event)
        self.events += events
        return [f"{e.result.status}: {e.result.text}" for e in events if isinstance(e, ToolFinished)]

    def send(self, text: str = "go") -> list[str]:
        """`turn` in a loop of its own."""
        return asyncio.run(self.turn(text))

    @property
    def notices(self) -> list[str]:
        """What was said beside the events, and the notices among them."""
        return [*self.session.notices, *(e.text for e in self.events if isinstance(e, Notice))]

    @property
    def face(self) -> PlainFace:
        return PlainFace(self.session)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()
