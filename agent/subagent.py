"""Sub-agents: a task of the model's, done in a conversation of its own, of which only the report comes back.

A sub-agent has its own engine and its own log, so that it folds by itself and can be looked at like any session. All
that guards the session guards it: the same permissions, sandbox, snapshots, questions to the same person, and what it
spends counts against the limits of the turn it works for.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from agent import task_logs, workshop
from agent.extend.extensions import Extensions
from agent.extend.hooking import Hooks
from agent.models import make_model
from agent.permissions import Approval, Approver, Judgement, Verdict
from agent.permitting import Permitting
from agent.safety import CONFINEMENT, Safety
from agent.settings import Settings
from agent.task_logs import BEGUN, ENDED, Found
from agent.version import VERSION
from runtime.context.engine import ContextEngine
from runtime.context.recall import page
from runtime.crew import Crew, Limits, Spent, total
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
from runtime.model import Model, ModelError
from tools.base import EXPLORE, TASK, WORK, Tool, Toolbox, ToolContext, ToolFailure, ToolOutput, load_tools
from transcripts.log import LogWriteError, TranscriptLog, VersionError
from transcripts.records import Note, SessionStart, ToolCall, ToolResult, Usage, User

SIDE_BY_SIDE = 4
"""Sub-agents at work at once; more wait. Providers limit requests a minute, and each holds a view of its own."""

READING = ("read", "bash", "grep", "glob", "todo", "recall", "jobs")
"""The tools of one that only reads; its bash can change nothing."""

_PASSING = (TextDelta, ReasoningDelta, ToolCallDelta, ToolProgress, Waiting)
"""What comes by the hundred while a sub-agent works; nobody follows it word by word."""

_WORDS = (
    "You are a sub-agent: another agent gave you this task, no person reads along, and only your last answer counts."
)
_EXPLORE = (
    f"{_WORDS} You only read: nothing you run can change a file or reach the network. Search until you know, then "
    "answer with the conclusion alone, with paths and line numbers; say what you could not find out."
)
_WORK = (
    f"{_WORDS} Do the task and check it, then report in a few lines: what you changed, what you ran and how it ended, "
    "what is still open."
)


class Host(Protocol):
    """What a sub-agent takes from its session."""

    settings: Settings
    log: TranscriptLog
    id: str
    root: Path
    model: Model
    spec: str
    safety: Safety
    extensions: Extensions
    hooks: Hooks | None
    permitting: Permitting
    toolbox: Toolbox
    engine: ContextEngine
    approve: Approver | None
    usage: Usage
    spent: Spent


def with_task(tools: Mapping[str, Tool], settings: Settings, model: Model) -> dict[str, Tool]:
    """The tools, with `task` at the end where sub-agents make sense: its schema is in every request, and a small model
    or window has no room for it."""
    profile = workshop.profile_of(model)
    offered = settings.subagents and not profile.small and model.window >= workshop.SMALL_WINDOW
    rest = {name: tool for name, tool in tools.items() if name != TASK}
    return {**rest, **load_tools((TASK,))} if offered else rest


class Subagents:
    """The sub-agents of one session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._places = asyncio.Semaphore(SIDE_BY_SIDE)
        self._asking = asyncio.Lock()
        self._unkept: dict[str, TranscriptLog] = {}

    async def run(self, ident: str, description: str, prompt: str, kind: str) -> ToolOutput:
        """Lets one work on a task; its report is the result of the call with this id. Raises ToolFailure where it
        cannot begin."""
        if kind not in (EXPLORE, WORK):
            raise ToolFailure(f"There is no kind {kind!r} of sub-agent; there are {EXPLORE} and {WORK}.")
        open_calls = self._host.engine.history.open_calls()
        call = next((c for c in open_calls if c.id == ident), ToolCall(ident, TASK, "{}"))
        async with self._places:
            child = self._begin(call, description or "a task", reads=kind == EXPLORE)
            try:
                return await child.work(prompt)
            finally:
                await self._end(child)

    def _begin(self, call: ToolCall, description: str, *, reads: bool) -> Child:
        host = self._host
        spec, model, own = self._model(description)
        ident, log = task_logs.new_task_log(host.log.path)
        if log.path is None:
            self._unkept[ident] = log
        log.secrets = host.log.secrets
        known = {"call": call.id, "id": ident, "description": description, "kind": EXPLORE if reads else WORK}
        host.engine.append(Note(BEGUN, known))
        cwd, seq = host.toolbox.ctx.cwd, host.log.entries[-1].seq
        log.append(
            SessionStart(ident, str(cwd), f"refold {VERSION}", spec, description, parent=host.id, parent_seq=seq)
        )
        profile = workshop.profile_of(model)
        by = f"sub-agent: {description}"
        toolbox = self._toolbox(profile, cwd, by, reads)
        append = "\n\n".join(p for p in (host.settings.append_system_prompt, _EXPLORE if reads else _WORK) if p)
        settings = replace(host.settings, append_system_prompt=append)
        engine = workshop.make_engine(settings, profile, log, toolbox, [], host.extensions)
        engine.set_window(model.window, model.window_source)
        toolbox.ctx.recall, toolbox.ctx.share = engine.recall, engine.policy.share
        judge = partial(judge_reading, host.safety) if reads else host.safety.permissions.judge
        permitting = Permitting(
            toolbox, host.safety, judge, self._approver, host.engine.append, by, host.permitting.before
        )
        after = partial(host.hooks.after_call, toolbox) if host.hooks else None
        limits = Limits(max_steps=host.settings.subagent_steps, max_tokens=host.settings.subagent_tokens)
        crew = Crew(
            engine, model, toolbox, permitting.permit, limits=workshop.limits_for(profile, limits),
            spent=Spent(above=host.spent), after=after,
        )  # fmt: skip
        return Child(ident, call, crew, host, reads, own)

    def _model(self, description: str) -> tuple[str, Model, bool]:
        """(its name, the model, whether it is the sub-agent's own): the one that is set, else the session's."""
        host = self._host
        spec = host.settings.subagent_model
        if spec and spec != host.spec:
            try:
                return spec, make_model(spec, workshop.options_of(host.settings)), True
            except ModelError as error:
                raise ToolFailure(f"The model of sub-agents, {spec}, cannot be used: {error.message}") from error
        for_task = getattr(host.model, "for_task", None)
        return host.spec, (for_task(description) if for_task else host.model), False

    def _toolbox(self, profile: workshop.Profile, cwd: Path, by: str, reads: bool) -> Toolbox:
        """All tools of the session but the one that made it; or those that read. A model of its own has its own way to
        edit."""
        host = self._host
        ours = load_tools()
        own = {n: t for n, t in load_tools(profile.tools).items() if n != TASK}
        tools = {**own, **{n: t for n, t in host.toolbox.tools.items() if n not in ours}}
        ctx = ToolContext(root=host.root, cwd=cwd, takes_images=profile.images)
        host.safety.install(ctx)
        if reads:
            tools = {n: ours[n] for n in READING}
            ctx.wrap = partial(_wrap_reading, host.safety, ctx)
        elif host.toolbox.ctx.ask is not None:
            ctx.ask = partial(self._ask, by)
        return Toolbox(tools, ctx)

    # -- the person -------------------------------------------------------------------------------------------------

    def _approver(self) -> Approver | None:
        """Asks the one whom the session asks; one question at a time, for several sub-agents may have some."""
        return self._put_question if self._host.approve is not None else None

    async def _put_question(self, approval: Approval) -> Verdict:
        async with self._asking:
            approve = self._host.approve
            return await approve(approval) if approve is not None else Verdict(False)

    async def _ask(self, by: str, question: str, choices: Sequence[str]) -> str:
        async with self._asking:
            ask = self._host.toolbox.ctx.ask
            return await ask(f"{by}: {question}", choices) if ask is not None else ""

    # -- afterwards -------------------------------------------------------------------------------------------------

    async def _end(self, child: Child) -> None:
        """Closes what it had and writes down what it cost."""
        spent, log = child.crew.spent, child.crew.engine.log
        workshop.close_tools(child.crew.toolbox.ctx)
        with suppress(LogWriteError):
            child.crew.engine.close_open_calls()
            self._host.engine.append(Note(ENDED, _cost(child.id, spent.requests, spent.usage)))
            if log.path is not None:
                log.close()
        if child.own_model and (close := getattr(child.crew.model, "close", None)) is not None:
            await close()

    def settle(self) -> None:
        """Answers the calls of `task` that an interrupt or a crash left open by what the sub-agents' own logs say. To
        be done before the engine answers all others. Raises LogWriteError."""
        engine = self._host.engine
        for call in engine.history.open_calls():
            note = _note_of(engine, call) if call.name == TASK else None
            if note is not None:
                engine.append_result(self._fate(call, note))

    def _fate(self, call: ToolCall, note: Mapping[str, Any]) -> ToolResult:
        host, ident = self._host, str(note["id"])
        path = task_logs.task_path(host.log.path, ident)
        try:
            log = self._unkept.get(ident)
            found = task_logs.found_in(log.entries) if log else task_logs.examine(path) if path else Found()
        except (OSError, VersionError):
            found = Found(began=True)
        if not any(e.key == ENDED and e.record.value.get("id") == ident for e in host.log.entries):
            host.usage = total(host.usage, found.usage)
            host.engine.append(Note(ENDED, _cost(ident, found.requests, found.usage)))
        meta = {"task": ident, "steps": found.requests}
        if found.done:
            return ToolResult(call.id, TASK, f"{found.text}\n{_tail(ident, found.requests, found.usage)}", meta=meta)
        unknown = found.began and note.get("kind") != EXPLORE
        return ToolResult(
            call.id, TASK, fate_words(ident, note, found), "unknown" if unknown else "interrupted", meta=meta
        )

    def recall(self, **asked: Any) -> str:
        """What left the view of the session; by the id of one of its sub-agents, what that said and did."""
        host, ident = self._host, str(asked.get("id") or "").strip()
        log, path = self._unkept.get(ident), task_logs.task_path(host.log.path, ident)
        if log is None and path is None:
            return host.engine.recall(**asked)
        text = "\n".join(task_logs.transcript_lines(log.entries)) if log else task_logs.readable(path)
        return page(text, asked.get("start", 1), asked.get("count", 0), host.engine.policy.share - 200)


@dataclass
class Child:
    """One sub-agent at work."""

    id: str
    call: ToolCall
    crew: Crew
    host: Host
    reads: bool
    own_model: bool
    began: float = field(default_factory=time.monotonic)
    doing: str = "beginning"
    calls: int = 0

    async def work(self, prompt: str) -> ToolOutput:
        """Its report; or, where it did not come to its end, why, and what it had found so far."""
        await workshop.know_window(self.crew.model)
        tell = self.host.toolbox.ctx.tell
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
            self.host.toolbox.ctx.state["interrupted"] = ToolOutput(self._cut_words(), ok=False, meta=self._facts())
            raise
        finally:
            await turn.aclose()
        return self._report(ended)

    def _line(self, event: Event) -> str:
        """What it does now, for the person."""
        match event:
            case ToolStarted():
                self.doing, self.calls = event.title, self.calls + 1
            case AnswerRecorded() if not event.message.calls:
                self.doing = "reporting"
            case ToolFinished():
                self.doing = "thinking"
        spent = self.crew.spent
        return f"{spent.requests} requests · {spent.tokens:,} tokens · {self.doing}"

    def _facts(self) -> dict[str, Any]:
        spent = self.crew.spent
        took = round(time.monotonic() - self.began, 3)
        return {"task": self.id, "steps": spent.requests, "tokens": spent.tokens, "seconds": took}

    def _report(self, ended: TurnEnded) -> ToolOutput:
        tail = _tail(self.id, self.crew.spent.requests, self.crew.spent.usage)
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
    """What may happen to a call of one that only reads, in whatever mode: a command may do what it may in plan."""
    if tool.effect == "read":
        return safety.permissions.judge(tool, args, ctx)
    reading = copy.copy(safety.permissions)
    reading.set_mode("plan")
    judgement = reading.judge(tool, args, ctx)
    reason = judgement.reason.partition("; /mode")[0].replace("the mode plan", "a sub-agent that explores")
    return replace(judgement, reason=reason)


def _wrap_reading(safety: Safety, ctx: ToolContext, argv: list[str], cwd: Path) -> list[str]:
    """Whatever was judged: where there is a sandbox, a command of one that only reads can change nothing."""
    if safety.permissions.confined:
        ctx.state[CONFINEMENT] = "read-only"
    return safety.wrap(ctx, argv, cwd)


def fate_words(ident: str, note: Mapping[str, Any], found: Found) -> str:
    """What the model is told of a sub-agent that was stopped, or that a crash took along."""
    reads = note.get("kind") == EXPLORE
    lines = [f"[This sub-agent did not come to an end. It made {found.requests} requests.]"]
    lines += [f"Its last calls: {'; '.join(found.calls)}."] if found.calls else []
    lines += [f"What it had said last:\n{found.text}"] if found.text else []
    if reads or not found.began:
        lines.append("[It only read. Give the task again if you still need it.]")
    else:
        lines.append("[It may have done a part of its work or all of it. Look at what it did before you repeat it.]")
    return "\n".join([*lines, f'[recall(id="{ident}") shows all that it said and did]'])


def _tail(ident: str, requests: int, usage: Usage) -> str:
    tokens = (usage.input or 0) + (usage.output or 0)
    return f'[sub-agent {ident}: {requests} requests, {tokens:,} tokens; recall(id="{ident}") shows what it did]'


def _cost(ident: str, requests: int, usage: Usage) -> dict[str, Any]:
    counted = {k: v for k, v in vars(usage).items() if v}
    return {"id": ident, "requests": requests, "usage": counted}


def _note_of(engine: ContextEngine, call: ToolCall) -> Mapping[str, Any] | None:
    """What the log says of the sub-agent that worked for a call of the newest answer; None where none had begun."""
    answer = engine.history.last("assistant")
    for entry in reversed(engine.log.entries):
        if entry.seq <= answer:
            return None
        if entry.key == BEGUN and entry.record.value.get("call") == call.id:
            return entry.record.value
    return None
