"""One sub-agent at work: what it tells while it does, what it reports, and what holds one that only reads."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent import workshop
from agent.permissions import Judgement
from agent.safety import CONFINEMENT, Safety
from agent.subagents import logs as task_logs
from agent.subagents.logs import Found
from runtime.crew import Crew
from runtime.events import (
    AnswerRecorded,
    Event,
    ReasoningDelta,
    TaskEvent,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    Waiting,
)
from runtime.loop import run_turn
from tools.base import EXPLORE, WORK, Tool, ToolContext, ToolOutput
from transcripts.log import LogWriteError
from transcripts.records import ToolCall, Usage, User

_PASSING = (TextDelta, ReasoningDelta, ToolCallDelta, ToolProgress, Waiting)
"""What comes by the hundred while a sub-agent works; nobody follows it word by word."""


@dataclass
class Child:
    """One sub-agent at work."""

    id: str
    call: ToolCall
    crew: Crew
    ctx: ToolContext
    """Of the session's tools: who is told what happens, and where is left what a stop cut short."""
    reads: bool
    own_model: bool
    began: float = field(default_factory=time.monotonic)
    doing: str = "beginning"

    async def work(self, prompt: str) -> ToolOutput:
        """Its report; or, where it did not come to its end, why, and what it had found so far."""
        engine, model = self.crew.engine, self.crew.model
        await workshop.know_window(model)
        engine.set_window(model.window, model.window_source)
        tell = self.ctx.tell
        ended = TurnEnded("interrupted")
        turn = run_turn(self.crew, User(prompt, "task"))
        try:
            async for event in turn:
                ended = event if isinstance(event, TurnEnded) else ended
                if not isinstance(event, _PASSING):
                    tell(TaskEvent(self.call, self.id, event, self.reads, self._line(event)))
        except asyncio.CancelledError:
            with suppress(LogWriteError):
                self.crew.engine.close_open_calls()
            self.ctx.state["interrupted"] = ToolOutput(self._cut_words(), ok=False, meta=self._facts())
            raise
        finally:
            await turn.aclose()
        return self._report(ended)

    def _line(self, event: Event) -> str:
        """What it does now, for the person."""
        match event:
            case ToolStarted():
                self.doing = event.title
            case AnswerRecorded() if not event.message.calls:
                self.doing = "reporting"
            case ToolFinished():
                self.doing = "thinking"
        spent = self.crew.spent
        return f"{requests_words(spent.requests)} · {spent.tokens:,} tokens · {self.doing}"

    def _facts(self) -> dict[str, Any]:
        spent = self.crew.spent
        took = round(time.monotonic() - self.began, 3)
        return {"task": self.id, "steps": spent.requests, "tokens": spent.tokens, "seconds": took}

    def _report(self, ended: TurnEnded) -> ToolOutput:
        tail = tail_words(self.id, self.crew.spent.requests, self.crew.spent.usage)
        said = ended.text.strip()
        if ended.reason == "done":
            return ToolOutput(f"{said or '(it ended without a report)'}\n{tail}", ok=bool(said), meta=self._facts())
        why = ended.message or ended.reason
        words = f"[The sub-agent did not come to an end: {why}.]"
        found = f"\nWhat it had said last:\n{said}" if said else ""
        return ToolOutput(f"{words}{found}\n{tail}", ok=False, meta=self._facts())

    def _cut_words(self) -> str:
        entries = self.crew.engine.log.entries
        found = task_logs.found_in(entries)
        known = {"kind": EXPLORE if self.reads else WORK}
        return fate_words(self.id, known, found)


def judge_reading(safety: Safety, tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> Judgement:
    """What may happen to a call of one that only reads: no more than the session may, and no command does more than it
    may in the mode plan."""
    own = safety.permissions.judge(tool, args, ctx)
    if tool.effect == "read" or own.decision == "deny":
        return own
    plan = copy.copy(safety.permissions)
    plan.set_mode("plan")
    reading = plan.judge(tool, args, ctx)
    if reading.decision == "deny":
        reason = reading.reason.replace("the mode plan", "a sub-agent that explores")
        return replace(reading, reason=reason, mode="")
    return replace(own, sandbox=reading.sandbox, effects=False, danger="")


def wrap_reading(safety: Safety, ctx: ToolContext, argv: list[str], cwd: Path) -> list[str]:
    """Whatever was judged: where there is a sandbox, a command of one that only reads can change nothing."""
    if safety.permissions.confined:
        ctx.state[CONFINEMENT] = "read-only"
    return safety.wrap(ctx, argv, cwd)


def fate_words(ident: str, note: Mapping[str, Any], found: Found) -> str:
    """What the model is told of a sub-agent that was stopped, or that a crash took along."""
    reads = note.get("kind") == EXPLORE
    lines = [f"[This sub-agent did not come to an end. It made {requests_words(found.requests)}.]"]
    lines += [f"Its last calls: {'; '.join(found.calls)}."] if found.calls else []
    lines += [f"What it had said last:\n{found.text}"] if found.text else []
    if reads or not found.began:
        lines.append("[It only read. Give the task again if you still need it.]")
    else:
        lines.append("[It may have done a part of its work or all of it. Look at what it did before you repeat it.]")
    return "\n".join([*lines, f'[recall(id="{ident}") shows all that it said and did]'])


def requests_words(count: int) -> str:
    """A number of requests in words."""
    return "1 request" if count == 1 else f"{count} requests"


def tail_words(ident: str, requests: int, usage: Usage) -> str:
    """The last line of a report: whose it is and what it cost."""
    tokens = (usage.input or 0) + (usage.output or 0)
    return f'[sub-agent {ident}: {requests_words(requests)}, {tokens:,} tokens; recall(id="{ident}") shows what it did]'


def cost_of(ident: str, requests: int, usage: Usage) -> dict[str, Any]:
    """The same for the note in the session's log."""
    counted = {k: v for k, v in vars(usage).items() if v}
    return {"id": ident, "requests": requests, "usage": counted}
