"""Whether the calls of one agent may run: by mode and rules, else by asking the person. A session has one of these,
and each of its sub-agents has one over the same guards."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.permissions import Approval, Approver, Judgement, Verdict, strictest
from agent.review import apply, contents_of
from agent.safety import Safety
from runtime.crew import Permit
from tools._held import targets_of
from tools.base import Tool, Toolbox, ToolContext, ToolFailure, check_arguments
from transcripts.log import Entry
from transcripts.records import Note, ToolCall

Judge = Callable[[Tool, Mapping[str, Any], ToolContext], Judgement]
Before = Callable[[ToolCall, Tool, Mapping[str, Any], ToolContext, Judgement], Awaitable[Judgement]]


def _targets(tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> frozenset[str] | None:
    """The files that a call of a tool for files works on; None for other tools."""
    try:
        if tool.writes is not None:
            return targets_of(tool.writes(ctx, args))
        return targets_of([ctx.resolve(str(args["path"]))]) if tool.name == "read" else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ToolFailure):
        return None


@dataclass
class Permitting:
    """Answers for the calls of one toolbox. `judge` says what may happen to a call, `approver` gives who is asked
    (None: nobody is there), `note` writes a snapshot down in the session's log. `by` tells the person whose call it
    is; "" for the session's own. `before`, where there is one, may judge anew before anybody is asked."""

    toolbox: Toolbox
    safety: Safety
    judge: Judge
    approver: Callable[[], Approver | None]
    note: Callable[[Note], Entry]
    by: str = ""
    before: Before | None = None

    async def permit(self, call: ToolCall) -> Permit:
        """Whether a call may run. One that may is prepared: its confinement, its snapshot."""
        self.toolbox.instead = None
        tool, ctx = self.toolbox.tools[call.name], self.toolbox.ctx
        problem, args = check_arguments(tool.schema, call.args)
        if problem:
            return Permit(True)
        ctx.targets.pop(call.id, None)
        mode, targets = self.safety.permissions.mode, _targets(tool, args, ctx)
        judgement = self._judged(tool, args, targets)
        if self.before is not None:
            judgement = await self.before(call, tool, args, ctx, judgement)
        if judgement.decision == "deny":
            why = judgement.why(chat=self.approver() is not None)
            return Permit(False, f"[Denied: {why}]", why)
        if judgement.decision == "ask":
            permit = await self._put_question(call, tool, args, judgement)
            if not permit.allow:
                return permit
        title = self.toolbox.title(call.name, args)
        note = await self.safety.before(judgement, tool, args, ctx, f"{self.by}: {title}" if self.by else title)
        if note:
            self.safety.took(note, self.note(Note("snapshot", note)).seq)
        if judgement.decision == "allow" and self.safety.permissions.mode != mode:
            return await self.permit(call)  # hooks and the snapshot take their time, and the mode has changed
        if targets is not None:
            ctx.targets[call.id] = targets
        return Permit(True)

    def _judged(self, tool: Tool, args: Mapping[str, Any], targets: frozenset[str] | None) -> Judgement:
        """What may happen to a call, with all that its paths lead to now: it is held to these."""
        found = [self.judge(tool, args, self.toolbox.ctx)]
        gate = self.safety.permissions
        look = gate.judge_path_write if tool.effect == "write" else gate.judge_path_read
        return strictest([*found, *(look(target) for target in sorted(targets or ()))])

    async def _put_question(self, call: ToolCall, tool: Tool, args: dict[str, Any], judgement: Judgement) -> Permit:
        approve = self.approver()
        if approve is None:
            way = f". The rule that would allow it: {judgement.rule}" if judgement.rule else ""
            said = f"[Not allowed, and nobody is here to ask: {judgement.reason}{way}]"
            return Permit(False, said, judgement.reason, judgement.rule)
        ctx = self.toolbox.ctx
        preview = tool.preview(ctx, args) if tool.preview else str(args.get("command", ""))
        contents = contents_of(tool, ctx, args)
        title = self.toolbox.title(call.name, args)
        asked = Approval(call, title, tool.effect, preview, judgement, contents, ctx, self.by)
        verdict: Verdict = await approve(asked)
        if not verdict.allow:
            return Permit(False, _refusal(verdict.message), "the person did not allow it")
        if verdict.review is not None:
            self.toolbox.instead = partial(apply, verdict.review, ctx)
        if verdict.scope != "once" and judgement.rule:
            for rule in judgement.rule.splitlines():
                self.safety.permissions.remember(rule, verdict.scope)
        return Permit(True)


def _refusal(word: str) -> str:
    said = f" They said: {word}" if word else ""
    return f"[The person did not allow this call.{said}]"


def word_of(refusal: str) -> str | None:
    """The word with which the person refused a call, from the result that the model got; None where there was none."""
    found = _SAID.fullmatch(refusal)
    return found[1] if found else None


_SAID = re.compile(r"\[The person did not allow this call\. They said: (.*)\]", re.DOTALL)
