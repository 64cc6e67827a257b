"""glob: files by name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from tools._files import locate, missing, shown
from tools._globs import glob_regex
from tools._search import Request, hidden, in_git, newest_first, search, text_path, unread
from tools._text import plain
from tools.base import ToolContext, ToolFailure, ToolOutput, tool


@tool(effect="read")
async def glob(
    ctx: ToolContext,
    pattern: Annotated[str, "Like src/**/*.{ts,tsx}; without / a name at any depth"],
    path: Annotated[str, "Folder to look in"] = ".",
    all: Annotated[bool, "Hidden and ignored files too"] = False,
    limit: Annotated[int, "Paths at most"] = 200,
) -> ToolOutput:
    """Finds files by name, newest first. .gitignore is obeyed."""
    top, pattern = _split(ctx, pattern, path)
    if not top.is_dir():
        raise missing(ctx, top, path) if not top.exists() else ToolFailure(f"{path} is not a directory.")
    try:
        wanted = glob_regex(pattern)
    except ValueError as error:
        raise ToolFailure(f"glob: {error}") from None
    found, shut = await _matching(ctx, top, wanted, all or hidden(pattern))
    note = ""
    if not found and not all:
        found, shut = await _matching(ctx, top, wanted, True)
        note = "(only hidden or ignored files match)\n" if found else ""
    if not found:
        return ToolOutput(f"{shut}No file matches {pattern} in {shown(ctx, top)}", meta={"total": 0})
    first = newest_first(top, found)[: max(1, limit)]
    more = f"\n(the {len(first)} newest of {len(found)} files; narrow the pattern)" if len(first) < len(found) else ""
    lines = [plain(shown(ctx, Path(os.path.join(top, p)))) for p in first]
    return ToolOutput(shut + note + "\n".join(lines) + more, meta={"total": len(found)})


TOOL = glob


def _split(ctx: ToolContext, pattern: str, path: str) -> tuple[Path, str]:
    """The folder and a pattern relative to it, also where the pattern begins with / or leads out by ..

    Raises ToolFailure where that leads out of the workspace and of `path`, which is what permissions look at."""
    top = locate(ctx, path)
    pattern = os.path.expanduser(pattern.strip() or "**")
    if not pattern.startswith(("/", "../")):
        return top, pattern
    fixed: list[str] = []
    for part in pattern.split("/")[:-1]:
        if set(part) & set("*?[{"):
            break
        fixed.append(part)
    folder = Path(os.path.normpath(top / ("/".join(fixed) or "/")))
    if not any(folder.is_relative_to(allowed) for allowed in (ctx.root, top)):
        raise ToolFailure(f"glob: the pattern leads out of the workspace; give {folder} as path.")
    return folder, f"./{pattern[len('/'.join(fixed)) :].lstrip('/')}"


async def _matching(ctx: ToolContext, top: Path, wanted: re.Pattern[str], everything: bool) -> tuple[list[str], str]:
    """The paths, and a line about what could not be read."""
    answer = await search(ctx, top, Request("files", everything=everything, in_git=in_git(top)))
    paths = [p for p in map(text_path, answer.out.split(b"\0")) if p and wanted.match(p)]
    return paths, plain(unread(answer))
