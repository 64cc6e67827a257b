"""The three faces of a one-shot run: text, json, stream-json. Answers go to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from agent.clean import one_line, plain
from agent.headless.guard import Guard
from agent.headless.outcome import Outcome
from agent.headless.pipes import Pipe
from agent.headless.stream_json import SCHEMA_VERSION, StreamJson, model_usage, usage_of
from agent.terminal.words import facts, lines_of
from runtime.events import (
    AnswerRecorded,
    Compacted,
    CompactFailed,
    Event,
    Notice,
    Retrying,
    TaskEvent,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from runtime.folding import failed_line
from transcripts.records import ToolResult

TROUBLE = 300
"""Characters of what went wrong that a line of progress has."""


class Output(Protocol):
    """Shows one run. `stdout` raises OutputClosed; what goes to stderr never does."""

    async def start(self, facts: Mapping[str, Any]) -> None:
        """The session is open: its id, model, folder and tools. What starts its tools is told before."""
        ...

    async def event(self, event: Event) -> None:
        """One event of the loop."""
        ...

    async def result(self, outcome: Outcome, guard: Guard | None) -> None:
        """What became of one prompt; guard is None where no session could be opened."""
        ...

    async def answer(self, line: Mapping[str, Any]) -> None:
        """What a request of the conversation is answered; only stream-json has a place for it."""
        ...

    def hurry(self) -> None:
        """The run was stopped: nothing waits for a reader that does not read."""
        ...


class Progress:
    """What a person sees on stderr while it works; nothing with `quiet`."""

    def __init__(self, quiet: bool) -> None:
        self.pipe = Pipe(2)
        self.quiet = quiet
        self.terminal = os.isatty(2)
        self._waiting = 0.0
        self._drawn = False

    def say(self, text: str) -> None:
        """One line."""
        if not self.quiet:
            self.pipe.offer(f"{self._cleared()}{plain(text)}\n")

    def why(self, text: str) -> None:
        """The last line of a run that failed: said whatever happens."""
        self.pipe.offer(f"{self._cleared()}refold: {plain(text)}\n")

    def waiting(self, event: Waiting) -> None:
        """A bar that is redrawn in a terminal, a line every few seconds elsewhere."""
        now = time.monotonic()
        if self.quiet or now - self._waiting < (0.1 if self.terminal else 5):
            return
        self._waiting = now
        if not self.terminal:
            share = f" {100 * event.done // event.total} %" if event.total else ""
            self.say(f"  {event.what}{share}")
            return
        line = f"  {event.what}" + (f" {bar(event.done, event.total)}" if event.total else " ...")
        self.pipe.offer(f"{self._cleared()}{line}", patience=0.1)
        self._drawn = True

    def _cleared(self) -> str:
        """What takes a bar away again; "" where none is drawn."""
        drawn, self._drawn = self._drawn, False
        return "\r\x1b[K" if drawn else ""

    def event(self, event: Event) -> None:
        """One line for what a person would want to know of."""
        match event:
            case ToolStarted():
                self.say(f"> {event.title}")
            case TaskEvent(event=ToolStarted(title=title)):
                self.say(f"  > {title}")
            case ToolFinished() if event.result.status != "ok":
                self.say(f"  {trouble(event.result)}")
            case AnswerRecorded() if event.message.calls and event.message.text.strip():
                self.say(event.message.text.strip())
            case Compacted():
                self.say(f"~ {event.line}")
            case CompactFailed():
                self.say(f"~ folding did not help: {failed_line(event.why, event.floor)}")
            case Retrying():
                self.say(f"! {event.reason}; again in {event.wait:.1f} s (attempt {event.attempt} of {event.attempts})")
            case Notice():
                self.say(event.text)
            case Waiting():
                self.waiting(event)
            case _ if self._drawn:
                self.pipe.offer(self._cleared(), patience=0.1)


def trouble(result: ToolResult) -> str:
    """Why a call did not do what it should, in one line: of a command its exit code and the last thing that it said,
    for there stands what went wrong; of all else the words of the result."""
    if result.meta.get("exit_code") is None:
        return f"{result.status}: {one_line(result.text, TROUBLE)}"
    said = [line for line in lines_of(result) if line.strip()]
    return ": ".join((facts(result), *(one_line(line, TROUBLE) for line in said[-1:])))


def bar(done: int, total: int, width: int = 30) -> str:
    """How much of something is done, as a bar and in percent."""
    share = min(1.0, max(0.0, done / total))
    return f"[{'#' * round(width * share):<{width}}] {100 * share:3.0f} %"


class Text:
    """The final answer on stdout, progress on stderr."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.pipe = Pipe(1)

    def hurry(self) -> None:
        """See Output."""
        self.pipe.hurry()

    async def start(self, facts: Mapping[str, Any]) -> None:
        """Names the session, so that it can be found again."""
        self.progress.say(f"refold · {facts['model']} · session {facts['meta']['short']}")

    async def event(self, event: Event) -> None:
        """Progress only."""
        self.progress.event(event)

    async def answer(self, line: Mapping[str, Any]) -> None:
        """See Output."""

    async def result(self, outcome: Outcome, guard: Guard | None) -> None:
        """The answer, also one that came before a failure; structured output as JSON."""
        text = outcome.text if outcome.structured is None else json.dumps(outcome.structured, ensure_ascii=False)
        if text:
            await self.pipe.write(text if text.endswith("\n") else text + "\n")


class Json:
    """One JSON object on stdout at the end: the result line of stream-json."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.pipe = Pipe(1)
        self.maker = StreamJson("")
        self._writing = asyncio.Lock()

    def hurry(self) -> None:
        """See Output."""
        self.pipe.hurry()

    async def start(self, facts: Mapping[str, Any]) -> None:
        """Remembers which session it is."""
        self.maker.session_id = facts["session_id"]

    async def event(self, event: Event) -> None:
        """Progress only."""
        self.progress.event(event)

    async def answer(self, line: Mapping[str, Any]) -> None:
        """See Output."""

    async def result(self, outcome: Outcome, guard: Guard | None) -> None:
        """The object."""
        await self.write(result_line(self.maker, outcome, guard))

    async def write(self, line: Mapping[str, Any]) -> None:
        """One line of JSON; a line that is being written is ended before."""
        async with self._writing:
            await self.pipe.write(json.dumps(line, ensure_ascii=False) + "\n")


class Stream(Json):
    """A line for each thing that happens, the result line last."""

    def __init__(self, progress: Progress, partial: bool) -> None:
        super().__init__(progress)
        self.maker.partial = partial
        self._early: list[Event] | None = []

    async def start(self, facts: Mapping[str, Any]) -> None:
        """The init line, then what came before it."""
        await super().start(facts)
        rest = {k: v for k, v in facts.items() if k != "session_id"}
        await self.write(self.maker.init(rest))
        early, self._early = self._early or [], None
        for event in early:
            await self.event(event)

    async def answer(self, line: Mapping[str, Any]) -> None:
        """Its line, between the others."""
        await self.write(line)

    async def event(self, event: Event) -> None:
        """Its lines; before the init line there is none."""
        if self._early is not None:
            self._early.append(event)
            return
        for line in self.maker.lines(event):
            await self.write(line)


def make_output(form: str, progress: Progress, partial: bool = False) -> Output:
    """The face of this name."""
    return {"json": lambda: Json(progress), "stream-json": lambda: Stream(progress, partial)}.get(
        form, lambda: Text(progress)
    )()


SUBTYPES = {"max_turns": "error_max_turns", "max_budget_usd": "error_max_budget_usd"}
"""Causes that have a subtype of their own in the shape in use; all others are error_during_execution, and meta.cause
says which."""


def result_line(maker: StreamJson, outcome: Outcome, guard: Guard | None) -> dict[str, Any]:
    """The result of one prompt, as json prints it and stream-json ends with."""
    usages = guard.usages if guard else []
    costs = [u.cost for u in usages]
    known = bool(costs) and None not in costs
    subtype = "success" if outcome.code == 0 else SUBTYPES.get(outcome.cause, "error_during_execution")
    denials = [
        {"tool_name": d.call.name, "tool_use_id": d.call.id, "tool_input": d.call.args}
        for d in (guard.denied if guard else [])
    ]
    extra = {} if outcome.structured is None else {"structured_output": outcome.structured}
    meta = {"exit_code": int(outcome.code), "cause": outcome.cause, "why": outcome.why, "cost_known": known}
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": outcome.code != 0,
        "duration_ms": round(1000 * (time.monotonic() - guard.started)) if guard else 0,
        "duration_api_ms": round(1000 * sum(u.seconds for u in usages)),
        "num_turns": guard.requests if guard else 0,
        "result": outcome.text,
        "stop_reason": outcome.stop_reason or None,
        "session_id": maker.session_id,
        "total_cost_usd": sum(c or 0.0 for c in costs),
        "usage": usage_of(guard.usage) if guard else usage_of_nothing(),
        "modelUsage": model_usage(usages),
        "permission_denials": denials,
        **extra,
        "uuid": next(maker._uuids),
        "schema_version": SCHEMA_VERSION,
        "meta": meta,
    }


def usage_of_nothing() -> dict[str, Any]:
    """Tokens of a run that made no request."""
    return dict.fromkeys(("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), 0)
