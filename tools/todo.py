"""todo: the session's plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from tools.base import ToolContext, ToolFailure, ToolOutput, tool

MAX_ITEMS = 50

_SIGNS = {"pending": "[ ]", "doing": "[>]", "done": "[x]"}


class Item(TypedDict):
    """One step of the plan."""

    text: str
    status: Literal["pending", "doing", "done"]


@tool(effect="read", title=lambda args: "todo")
async def todo(
    ctx: ToolContext, items: Annotated[Sequence[Item], "The whole list; it replaces the last one"]
) -> ToolOutput:
    """Keeps your plan for work of several steps. Send all items again whenever one changes."""
    if len(items) > MAX_ITEMS:
        raise ToolFailure(f"{len(items)} items are too many; {MAX_ITEMS} at most.")
    kept = [{"text": " ".join(item["text"].split()), "status": item["status"]} for item in items]
    if any(not item["text"] for item in kept):
        raise ToolFailure("Every item needs a text.")
    ctx.state["todo"] = kept
    return ToolOutput(todo_text(kept), meta={"todo": kept})


TOOL = todo


def todo_text(items: Sequence[dict[str, str]]) -> str:
    """The list, one line an item."""
    return "\n".join(f"{_SIGNS[item['status']]} {item['text']}" for item in items) or "(the list is empty)"
