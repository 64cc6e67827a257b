"""Runs the hooks of one session at their moments, and keeps to what they may say.

A hook can make anything stricter. Only the person's own can make one thing easier: what would be asked, but not what is
asked in every mode. Each run is a note in the log before anybody is told of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.extend.hooks import FILES, SCRIPTS, Hook
from agent.extend.processes import Ran, run
from agent.extend.wording import Said, inputs, meaning, names_of, response
from agent.permissions import Judgement
from agent.safety import Safety
from tools.base import Tool, Toolbox, ToolContext, ToolFailure, check_arguments
from transcripts.records import Note, ToolCall, ToolResult

NOTE = "hook"
"""The key of the note that tells of a run."""
KEPT = 2_000
"""Characters of each output that the note keeps."""


@dataclass(frozen=True)
class Facts:
    """What every hook is told of its session."""

    session_id: str
    transcript_path: str
    cwd: str
    permission_mode: str


class Hooks:
    """The hooks of one session. `facts` says what they are told, `note` writes into the log; `told` are lines for the
    person that nobody has shown yet."""

    def __init__(
        self, found: Sequence[Hook], safety: Safety, facts: Callable[[], Facts], note: Callable[[Note], object],
        resumed: bool,
    ) -> None:  # fmt: skip
        self._found, self._safety, self._facts, self._note = tuple(found), safety, facts, note
        self._source = "resume" if resumed else "startup"
        self._begun = False
        self.told: list[str] = []
        root = safety.trust.root
        self._env = {**safety.env, "REFOLD_PROJECT_DIR": root, "CLAUDE_PROJECT_DIR": root}

    async def before_call(
        self, call: ToolCall, tool: Tool, args: Mapping[str, Any], ctx: ToolContext, judgement: Judgement
    ) -> Judgement:
        """A judgement as hooks leave it. What is denied already is not put to them."""
        hooks = self._fitting("PreToolUse", names_of(tool.name)) if judgement.decision != "deny" else []
        asks = allows = ""
        for hook in hooks:
            free = hook.yours
            for given in inputs(tool, args, ctx):
                said = await self._say(hook, tool_name=_name(hook, tool.name), tool_input=given)
                free = free and said.decision == "allow"
                if said.decision == "deny":
                    self._tell(f"The PreToolUse hook `{hook.title}` refused a call: {said.why}")
                    return replace(
                        judgement, decision="deny", reason=f"the hook `{hook.title}` refuses it: {said.why}", rule=""
                    )
                if said.decision == "ask":
                    asks = f"the hook `{hook.title}` wants you to be asked{f': {said.why}' if said.why else ''}"
            if free:  # of every file that the call would write
                allows = f"your hook `{hook.title}` allows it"
        if asks and judgement.decision == "allow":
            return replace(judgement, decision="ask", reason=asks, rule="")
        if asks or judgement.decision != "ask" or not allows or self._safety.permissions.always_asks(tool, args, ctx):
            return judgement
        return replace(judgement, decision="allow", reason=allows)

    async def after_call(self, toolbox: Toolbox, call: ToolCall, result: ToolResult) -> ToolResult:
        """A result with what hooks have to say about it."""
        hooks = self._fitting("PostToolUse", names_of(call.name))
        if not hooks:
            return result
        tool, words = toolbox.tools[call.name], list[str]()
        problem, args = check_arguments(tool.schema, call.args)
        for hook in hooks if not problem else ():
            for given in inputs(tool, args, toolbox.ctx):
                more = {"tool_input": given, "tool_response": response(result)}
                said = await self._say(hook, tool_name=_name(hook, call.name), **more)
                words += [_from(hook, text) for text in (said.why, said.context) if text]
        return replace(result, text="\n\n".join([result.text, *words])) if words else result

    async def prompt(self, text: str) -> tuple[str, str]:
        """(why a message is not sent, what hooks add to it), either ""."""
        context: list[str] = []
        for hook in self._fitting("UserPromptSubmit", ()):
            said = await self._say(hook, prompt=text)
            if said.decision == "deny":
                return f"The hook `{hook.title}` refuses this message: {said.why}", ""
            context += _words(hook, said)
        return "", "\n\n".join(context)

    async def begin(self) -> str:
        """What hooks have to say about the beginning of the session in this process; told with its first message."""
        if self._begun:
            return ""
        self._begun = True
        context: list[str] = []
        for hook in self._fitting("SessionStart", (self._source,)):
            context += _words(hook, await self._say(hook, source=self._source))
        return "\n\n".join(context)

    async def stop(self, again: bool) -> str:
        """Why the turn has to go on; "" where no hook says so. `again`: it goes on because of a hook already."""
        for hook in self._fitting("Stop", ()):
            said = await self._say(hook, stop_hook_active=again)
            if said.decision == "deny":
                return _from(hook, said.why)
        return ""

    def take_told(self) -> list[str]:
        """The lines for the person that nobody has shown yet."""
        told, self.told = self.told, []
        return told

    def _fitting(self, event: str, names: Sequence[str]) -> list[Hook]:
        return [h for h in self._found if h.event == event and (not names or h.fits(names))]

    async def _say(self, hook: Hook, **more: Any) -> Said:
        """Runs one hook; notes it in the log, and then what the person is told."""
        told = {**vars(self._facts()), "hook_event_name": hook.event, **more}
        ran = await self._run(hook, json.dumps(told, ensure_ascii=True, default=str).encode())
        said = meaning(hook.event, ran, hook.title)
        row = {
            "event": hook.event, "command": hook.command, "file": hook.file, "tool": str(more.get("tool_name", "")),
            "code": ran.code, "seconds": round(ran.seconds, 3), "problem": ran.problem, "decision": said.decision,
            "out": ran.out[:KEPT], "err": ran.err[:KEPT],
        }  # fmt: skip
        self._note(Note(NOTE, {key: value for key, value in row.items() if value not in ("", None)}))
        self._tell(said.notice)
        return said

    def _tell(self, words: str) -> None:
        if words and words not in self.told:
            self.told.append(words)

    async def _run(self, hook: Hook, data: bytes) -> Ran:
        argv, root = ["bash", "-c", hook.command], Path(self._safety.trust.root)
        if not hook.yours:
            if not self._stands(hook):
                return Ran(None, problem="its file or a script has changed since you trusted it; /trust shows it")
            try:
                argv = self._safety.wrap_child(argv, root, self._safety.child_confinement())
            except ToolFailure as error:
                return Ran(None, problem=str(error))
        return await run(argv, root, self._env, data, hook.timeout)

    def _stands(self, hook: Hook) -> bool:
        """Whether a folder's hook is still what was trusted: a session is long, and files change."""
        trust = self._safety.trust
        path = next((p for p in FILES if hook.file.endswith(f"/{p}")), "")
        return trust.allows(path) and trust.stands(SCRIPTS)


def _name(hook: Hook, tool: str) -> str:
    """The name a hook knows a tool by: files of another program are told the names of that program."""
    names = names_of(tool)
    return names[1] if len(names) > 1 and os.path.basename(hook.file) != "hooks.json" else tool


def _words(hook: Hook, said: Said) -> list[str]:
    """What a hook adds to a message."""
    return [_from(hook, words) for words in (said.context, said.why) if words]


def _from(hook: Hook, words: str) -> str:
    return f"[The {hook.event} hook `{hook.title}` says: {words}]"
