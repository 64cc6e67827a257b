"""write: a whole file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tools._changed import Fates, changed, guard_overwrite, new_bytes, preview_of
from tools._files import load, locate, replace, shown
from tools._seen import remember_whole
from tools.base import ToolContext, ToolFailure, ToolOutput, tool


def _writes(ctx: ToolContext, args: Mapping[str, Any]) -> list[Path]:
    return [locate(ctx, str(args.get("path", "")))]


def _after(ctx: ToolContext, args: Mapping[str, Any]) -> Fates:
    path, content = str(args["path"]), str(args["content"])
    where = locate(ctx, path)
    return {where: new_bytes(_before(ctx, where, path, content), content, path)}


def _before(ctx: ToolContext, where: Path, path: str, content: str) -> bytes | None:
    """The bytes that are there. Raises ToolFailure where they may not be written over."""
    if where.is_dir():
        raise ToolFailure(f"{path} is a directory.")
    if not where.exists():
        return None
    before = load(ctx, where, path)
    if before == content.encode("utf-8", "surrogatepass"):
        return before
    guard_overwrite(ctx, where, path, before, content)
    return before


@tool(effect="write", writes=_writes, after=_after, preview=preview_of(_after))
async def write(
    ctx: ToolContext, path: Annotated[str, "File"], content: Annotated[str, "The whole new content"]
) -> ToolOutput:
    """Creates a file (and its folders) or replaces all of one. A file that exists must have been read first."""
    where = locate(ctx, path)
    before = _before(ctx, where, path, content)
    data = new_bytes(before, content, path)
    links = replace(where, data, before)
    remember_whole(ctx, where, data)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    verb = "Created" if before is None else "Replaced"
    size = f"{lines} line{'' if lines == 1 else 's'}"
    return await changed(ctx, where, before, data, f"{verb} {shown(ctx, where)} ({size}). {links}".rstrip())


TOOL = write
