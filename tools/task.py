"""task: a sub-agent with a conversation of its own, of which only the conclusion comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tools.base import CALL, EXPLORE, Effect, ToolContext, ToolFailure, ToolOutput, tool


def _effect(args: Mapping[str, Any]) -> Effect:
    """Those that only read run side by side."""
    return "read" if args.get("kind", EXPLORE) == EXPLORE else "execute"


@tool(effect="execute", effect_of=_effect, title=lambda args: f"task: {' '.join(str(args.get('description')).split())}")
async def task(
    ctx: ToolContext,
    description: Annotated[str, "A few words for the person"],
    prompt: Annotated[str, "The whole task: it knows nothing of this conversation; say what to report"],
    kind: Annotated[str, "explore only reads; several run side by side. work may do all you may"] = EXPLORE,
) -> ToolOutput:
    """Lets a sub-agent work; you get only its report. For searches over many files, or work that stands by itself."""
    if ctx.task is None:
        raise ToolFailure("There are no sub-agents here; do it yourself.")
    if not prompt.strip():
        raise ToolFailure("The prompt is empty.")
    return await ctx.task(CALL.get(), " ".join(description.split()), prompt, kind.strip() or EXPLORE)


TOOL = task
