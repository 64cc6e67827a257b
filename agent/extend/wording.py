"""What a hook is told about a call, and what its exit code and output mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.extend.processes import Ran
from tools.base import Tool, ToolContext
from transcripts.records import ToolResult

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "bash": ("Bash",),
    "edit": ("Edit", "MultiEdit"),
    "apply_patch": ("Edit", "MultiEdit"),
    "write": ("Write",),
    "read": ("Read",),
    "grep": ("Grep",),
    "glob": ("Glob",),
    "fetch": ("WebFetch",),
    "todo": ("TodoWrite",),
    "task": ("Task", "Agent"),
}
"""What hooks that were written for another program call our tools."""
_OTHER_KEYS = {"old": "old_string", "new": "new_string"}
SHOWN = 4_000
"""Characters of what a hook says that the model is shown."""
BLOCKS = 2
"""The exit code by which a hook says no."""


@dataclass(frozen=True)
class Said:
    """What a hook said. `decision`: allow, ask, deny or "" (at the end of a turn deny means: go on); `why` its reason;
    `context` more for the model; `notice` a line for the person."""

    decision: str = ""
    why: str = ""
    context: str = ""
    notice: str = ""


def names_of(tool: str) -> tuple[str, ...]:
    """All names a tool goes by, our own first."""
    return (tool, *OTHER_NAMES.get(tool, ()))


def inputs(tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> Iterator[dict[str, Any]]:
    """The arguments of a call, under other programs' names as well; once for each file the call would write, so that a
    hook that looks at `file_path` sees them all."""
    known = {**args, **{other: args[ours] for ours, other in _OTHER_KEYS.items() if ours in args}}
    try:
        paths = tool.writes(ctx, args) if tool.writes else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        paths = []
    if not paths and isinstance(args.get("path"), str):
        paths = [ctx.resolve(args["path"])]
    for path in paths:
        yield {**known, "file_path": str(path)}
    if not paths:
        yield known


def response(result: ToolResult) -> dict[str, Any]:
    """A result, as a hook is told it."""
    more = {k: result.meta[k] for k in ("exit_code", "path") if k in result.meta}
    return {"status": result.status, "success": result.status == "ok", "text": result.text, **more}


def meaning(event: str, ran: Ran, title: str) -> Said:
    """What a hook said by its exit code and its output."""
    if ran.code is None or ran.code not in (0, BLOCKS):
        what = ran.problem or f"it ended with exit code {ran.code}"
        words = f": {ran.err or ran.out}" if ran.err or ran.out else ""
        return Said(notice=f"The {event} hook `{title}` failed and was passed over: {what}{_cut(words, 400)}")
    if ran.code == BLOCKS:
        return Said("deny", _cut(ran.err or ran.out or "it gave no reason"))
    if ran.out.startswith("{"):
        try:
            return _of_json(event, json.loads(ran.out))
        except (ValueError, AttributeError, RecursionError):
            return Said(notice=f"The {event} hook `{title}` printed JSON that cannot be read; it was passed over.")
    return Said(context=_cut(ran.out)) if event in ("SessionStart", "UserPromptSubmit") else Said()


def _of_json(event: str, table: Mapping[str, Any]) -> Said:
    more = table.get("hookSpecificOutput") or {}
    older = {"block": "deny", "approve": "allow"}.get(str(table.get("decision")), "")
    decision = str(more.get("permissionDecision") or older)
    why = more.get("permissionDecisionReason") or table.get("reason") or ""
    if table.get("continue") is False:
        decision, why = "deny", table.get("stopReason") or why
    if decision not in ("allow", "ask", "deny") or (event != "PreToolUse" and decision != "deny"):
        decision = ""
    if event == "Stop" and table.get("continue") is False:
        decision = ""  # it asks to stop, which happens anyhow
    context = str(more.get("additionalContext") or "")
    notice = str(table.get("systemMessage") or "")
    return Said(decision, _cut(str(why)) if decision else "", _cut(context), _cut(notice, 400))


def _cut(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]} [{len(text) - most:,} more characters]"
