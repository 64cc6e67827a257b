"""Sub-agents: a task of the model's, done in a conversation of its own, of which only the report comes back.

A sub-agent has its own engine and its own log, so that it folds by itself and can be looked at like any session. All
that guards the session guards it: the same permissions, sandbox, snapshots, questions to the same person, and what it
spends counts against the limits of the turn it works for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from agent import workshop
from agent.extend.agents import AgentKind, kind_words
from agent.extend.extensions import Extensions
from agent.extend.hooking import Hooks
from agent.logbook import opened
from agent.models import make_model
from agent.permissions import Approval, Approver, Verdict
from agent.permitting import Permitting
from agent.safety import Safety
from agent.settings import Settings
from agent.subagents import logs as task_logs
from agent.subagents.child import Child, cost_of, fate_words, judge_reading, tail_words, wrap_reading
from agent.subagents.logs import BEGUN, ENDED, Found
from agent.version import VERSION
from runtime.context.engine import ContextEngine
from runtime.context.pages import page
from runtime.crew import Crew, Limits, Spent, total
from runtime.model import Model, ModelError
from tools.base import EXPLORE, TASK, WORK, Tool, Toolbox, ToolContext, ToolFailure, ToolOutput, load_tools
from transcripts.log import LogWriteError, TranscriptLog, VersionError
from transcripts.records import Note, SessionStart, ToolCall, ToolResult, Usage

SIDE_BY_SIDE = 4
"""Sub-agents at work at once; more wait. Providers limit requests a minute, and each holds a view of its own."""

READING = ("read", "bash", "grep", "glob", "todo", "recall", "jobs")
"""The tools of one that only reads; its bash can change nothing."""

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


_EXPLORES, _WORKS = AgentKind(EXPLORE, "only reads"), AgentKind(WORK, "may do all that the session may")


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


def with_task(tools: Mapping[str, Tool], settings: Settings, model: Model, extensions: Extensions) -> dict[str, Tool]:
    """The tools, with `task` at the end where sub-agents make sense: its schema is in every request, and a small model
    or window has no room for it."""
    profile = workshop.profile_of(model)
    offered = settings.subagents and not profile.small and model.window >= workshop.SMALL_WINDOW
    rest = {name: tool for name, tool in tools.items() if name != TASK}
    return {**rest, TASK: _task_tool(extensions.agents)} if offered else rest


def _task_tool(kinds: Mapping[str, AgentKind]) -> Tool:
    """The tool, with the kinds that are files among those it names."""
    tool = load_tools((TASK,))[TASK]
    parameters = tool.schema["properties"]
    words = f"{parameters['kind']['description']}{kind_words(kinds.values())}"
    described = {**parameters, "kind": {**parameters["kind"], "description": words}}
    return replace(tool, schema={**tool.schema, "properties": described}) if kinds else tool


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
        role = self._role(kind)
        open_calls = self._host.engine.history.open_calls()
        call = next((c for c in open_calls if c.id == ident), ToolCall(ident, TASK, "{}"))
        async with self._places:
            child = self._begin(call, description or "a task", role)
            try:
                return await child.work(prompt)
            finally:
                await self._end(child)

    def _role(self, kind: str) -> AgentKind:
        """What the kind of this name is. Raises ToolFailure where there is none."""
        kinds = {k.name: k for k in (_EXPLORES, _WORKS)} | self._host.extensions.agents
        if kind not in kinds:
            raise ToolFailure(f"There is no kind {kind!r} of sub-agent; there are {', '.join(kinds)}.")
        return kinds[kind]

    def _begin(self, call: ToolCall, description: str, role: AgentKind) -> Child:
        host, reads = self._host, role.name == EXPLORE
        spec, model, own = self._model(description)
        ident, log = task_logs.new_task_log(host.log.path)
        if log.path is None:
            self._unkept[ident] = log
        log.secrets = host.log.secrets
        known = {"call": call.id, "id": ident, "description": description, "kind": role.name}
        host.engine.append(Note(BEGUN, known))
        cwd, seq = host.toolbox.ctx.cwd, host.log.entries[-1].seq
        log.append(
            SessionStart(ident, str(cwd), f"refold {VERSION}", spec, description, parent=host.id, parent_seq=seq)
        )
        log.append(opened(description, model.name))
        profile = workshop.profile_of(model)
        by = f"sub-agent: {description}"
        toolbox = self._toolbox(profile, cwd, by, role)
        parts = (host.settings.append_system_prompt, _EXPLORE if reads else _WORK, role.body)
        append = "\n\n".join(p for p in parts if p)
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
        return Child(ident, call, crew, host.toolbox.ctx, reads, own)

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

    def _toolbox(self, profile: workshop.Profile, cwd: Path, by: str, role: AgentKind) -> Toolbox:
        """All tools of the session but the one that made it; or those that read. A model of its own has its own way to
        edit."""
        host = self._host
        ours = load_tools()
        own = {n: t for n, t in load_tools(profile.tools).items() if n != TASK}
        tools = {**own, **{n: t for n, t in host.toolbox.tools.items() if n not in ours}}
        ctx = ToolContext(root=host.root, cwd=cwd, takes_images=profile.images)
        host.safety.install(ctx)
        if role.name == EXPLORE:
            tools = {n: ours[n] for n in READING}
            ctx.wrap = partial(wrap_reading, host.safety, ctx)
        elif host.toolbox.ctx.ask is not None:
            ctx.ask = partial(self._ask, by)
        if role.tools:
            tools = {n: t for n, t in tools.items() if n in (*role.tools, "recall")}
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
        with suppress(LogWriteError):
            self._host.engine.append(Note(ENDED, cost_of(child.id, spent.requests, spent.usage)))
        if log.path is not None:
            with suppress(LogWriteError):
                log.close()
        if child.own_model:
            await workshop.close_model(child.crew.model)

    def settle(self) -> None:
        """Answers the calls of `task` that an interrupt or a crash left open by what the sub-agents' own logs say. To
        be done before the engine answers all others. Raises LogWriteError."""
        engine = self._host.engine
        for call in engine.history.open_calls():
            note = _note_of(engine, call) if call.name == TASK else None
            if note is not None:
                engine.append_result(self._fate(call, note))

    def _fate(self, call: ToolCall, note: Mapping[str, Any]) -> ToolResult:
        host, ident = self._host, str(note.get("id"))
        path = task_logs.task_path(host.log.path, ident)
        try:
            log = self._unkept.get(ident)
            found = task_logs.found_in(log.entries) if log else task_logs.examine(path) if path else Found()
        except (OSError, VersionError):
            found = Found(began=True)
        if not any(e.key == ENDED and e.record.value.get("id") == ident for e in host.log.entries):
            host.usage = total(host.usage, found.usage)
            host.engine.append(Note(ENDED, cost_of(ident, found.requests, found.usage)))
        meta = {"task": ident, "steps": found.requests}
        if found.done:
            tail = tail_words(ident, found.requests, found.usage)
            return ToolResult(call.id, TASK, f"{found.text}\n{tail}", meta=meta)
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


def _note_of(engine: ContextEngine, call: ToolCall) -> Mapping[str, Any] | None:
    """What the log says of the sub-agent that worked for a call of the newest answer; None where none had begun."""
    answer = engine.history.last("assistant")
    for entry in reversed(engine.log.entries):
        if entry.seq <= answer:
            return None
        if entry.key == BEGUN and entry.record.value.get("call") == call.id:
            return entry.record.value
    return None
