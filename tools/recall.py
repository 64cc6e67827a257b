"""recall: what was folded away."""

from __future__ import annotations

from typing import Annotated

from tools.base import ToolContext, ToolFailure, tool


@tool(effect="read")
async def recall(
    ctx: ToolContext,
    id: Annotated[str, "Id of what was left out, as the stub says"] = "",
    query: Annotated[str, "Or words to look for in all that was said and done"] = "",
    path: Annotated[str, "Or a file that was read or changed"] = "",
    start: Annotated[int, "First line, from 1"] = 1,
    count: Annotated[int, "Lines or hits at most"] = 200,
) -> str:
    """Gets back earlier parts of this session that are no longer shown, word for word."""
    if ctx.recall is None:
        raise ToolFailure("Nothing can be recalled: this session keeps no log.")
    if not (id or query or path):
        raise ToolFailure("Say what to recall: an id, words (query) or a path.")
    return ctx.recall(id=id, query=query, path=path, start=max(1, start), count=max(1, count))


TOOL = recall
