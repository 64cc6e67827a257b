"""write: a whole file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tools._changed import changed, guard_overwrite, new_bytes, previewed
from tools._files import load, locate, replace, shown
from tools._seen import remember_whole
from tools.base import ToolContext, ToolFailure, ToolOutput, tool


def _writes(ctx: ToolContext, args: Mapping[str, Any]) -> list[Path]:
    return [locate(ctx, str(args.get("path", "")))]


def _preview(ctx: ToolContext, args: Mapping[str, Any]) -> str:
    where, before, after = _planned(ctx, args)
    return previewed(ctx, where, before, after)


def _after(ctx: ToolContext, args: Mapping[str, Any]) -> Mapping[Path, bytes | None]:
    where, _, after = _planned(ctx, args)
    return {where: after}


def _planned(ctx: ToolContext, args: Mapping[str, Any]) -> tuple[Path, bytes | None, bytes]:
    where = locate(ctx, str(args.get("path", "")))
    before = where.read_bytes() if where.is_file() else None
    return where, before, new_bytes(before, str(args.get("content", "")), str(where))


@tool(effect="write", writes=_writes, preview=_preview, after=_after)
async def write(
    ctx: ToolContext, path: Annotated[str, "File"], content: Annotated[str, "The whole new content"]
) -> ToolOutput:
    """Creates a file (and its folders) or replaces all of one. A file that exists must have been read first."""
    where = locate(ctx, path)
    if where.is_dir():
        raise ToolFailure(f"{path} is a directory.")
    before = load(ctx, where, path) if where.exists() else None
    if before is not None:
        guard_overwrite(ctx, where, path, before, content)
    data = new_bytes(before, content, path)
    links = replace(where, data, before)
    remember_whole(ctx, where, data)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    verb = "Created" if before is None else "Replaced"
    return await changed(ctx, where, before, data, f"{verb} {shown(ctx, where)} ({lines} lines). {links}".rstrip())


TOOL = write
