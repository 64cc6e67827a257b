"""read: a file, a range of it, a directory, a notebook, an image."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

from tools._files import digest, locate, regular, shown
from tools._held import opened
from tools._notebook import cells
from tools._pages import HUGE, Page, page_of_file, page_of_text
from tools._pictures import picture_type, size_of
from tools._seen import remember_part
from tools._text import NotText, decode, endings, looks_binary
from tools.base import Picture, ToolContext, ToolFailure, ToolOutput, tool

MAX_LINES = 2000
"""Lines of one answer."""

_MAX_PICTURE = 5 * 1024 * 1024
"""Bytes of an image; what providers take at most."""

_MAX_ENTRIES = 500


@tool(effect="read")
async def read(
    ctx: ToolContext,
    path: Annotated[str, "File or directory"],
    offset: Annotated[int, "First line, from 1; negative counts from the end"] = 1,
    limit: Annotated[int, "Lines at most"] = MAX_LINES,
) -> ToolOutput:
    """Shows a text file with line numbers (not part of the file), a directory's entries, a notebook or an image."""
    where = locate(ctx, path)
    if not where.is_dir():
        regular(ctx, where, path)
    with opened(where) as source:
        if source.is_dir():
            return _directory(ctx, where, source)
        return await _file(ctx, where, source, path, offset, limit)


TOOL = read


async def _file(ctx: ToolContext, where: Path, source: Path, path: str, offset: int, limit: int) -> ToolOutput:
    """A file that is read by its name `source`; it is called as the model calls it."""
    size = regular(ctx, source, path).st_size
    with open(source, "rb") as f:
        start = f.read(8192)
    media = picture_type(start)
    if media:
        return _picture(ctx, where, source, path, media, size)
    if start.startswith(b"%PDF-"):
        raise ToolFailure(f"{path} is a PDF of {size:,} bytes; bash may have pdftotext for it.")
    if looks_binary(start):
        raise ToolFailure(f"{path} is a binary file of {size:,} bytes; nothing to show (bash: file, xxd, strings).")
    if size > HUGE:
        return await _huge(ctx, where, source, path, offset, limit)
    return _text(ctx, where, source, path, offset, limit)


def _text(ctx: ToolContext, where: Path, source: Path, path: str, offset: int, limit: int) -> ToolOutput:
    data = source.read_bytes()
    if where.suffix == ".ipynb":
        shown_cells = cells(data, max(1000, ctx.share - 500))
        if shown_cells:
            sha = digest(data)
            remember_part(ctx, where, sha, data, 1, 0, data.count(b"\n") + 1)  # shown, but not as it is
            return ToolOutput(shown_cells, meta={"path": str(where), "sha": sha})
    try:
        text = endings(decode(data).text).text
    except NotText as error:
        raise ToolFailure(f"{path}: {error} ({len(data):,} bytes); nothing to show.") from None
    page = page_of_text(text, offset, min(limit, MAX_LINES), ctx.share)
    return _answer(ctx, where, path, page, digest(data), data)


async def _huge(ctx: ToolContext, where: Path, source: Path, path: str, offset: int, limit: int) -> ToolOutput:
    page, sha = await asyncio.to_thread(page_of_file, source, offset, min(limit, MAX_LINES), ctx.share)
    return _answer(ctx, where, path, page, sha, None)


def _answer(ctx: ToolContext, where: Path, path: str, page: Page, sha: str, data: bytes | None) -> ToolOutput:
    meta: dict[str, Any] = {"path": str(where), "sha": sha, "total_lines": page.total}
    if page.total == 0:
        remember_part(ctx, where, sha, data, 1, 0, 0)
        return ToolOutput(f"({path} is empty)", meta=meta)
    if not page.lines:
        lines = f"{page.total} line{'' if page.total == 1 else 's'}"
        raise ToolFailure(f"{path} has only {lines}; offset {page.first} is beyond its end.")
    remember_part(ctx, where, sha, data, page.first, page.last, page.total)
    meta["lines"] = f"{page.first}-{page.last}"
    name = shown(ctx, where)
    asked = os.path.normpath(ctx.cwd / os.path.expanduser(path.strip()))
    head = "" if asked == str(where) else f"({name})\n"
    return ToolOutput(head + page.text(), meta=meta)


def _picture(ctx: ToolContext, where: Path, source: Path, path: str, media: str, size: int) -> ToolOutput:
    with open(source, "rb") as f:
        data = f.read(_MAX_PICTURE + 1)
    measure = size_of(data)
    pixels = f", {measure[0]} x {measure[1]} pixels" if measure else ""
    words = f"{path}: {media}{pixels}, {size:,} bytes"
    meta = {"path": str(where), "sha": digest(data)}
    if size > _MAX_PICTURE:
        raise ToolFailure(f"{words}: too large to show ({_MAX_PICTURE:,} bytes at most); make it smaller with bash.")
    if not ctx.takes_images:
        return ToolOutput(f"{words}. This model takes no images.", meta=meta)
    return ToolOutput(words, meta=meta, pictures=(Picture(data, media),))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """False too for a link that leads in a circle, or where one may not look."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _directory(ctx: ToolContext, where: Path, source: Path) -> ToolOutput:
    try:
        with os.scandir(source) as entries:
            found = sorted((e.name + ("/" if _is_folder(e) else "") for e in entries), key=str.lower)
    except OSError as error:
        raise ToolFailure(f"{shown(ctx, where)}: {error.strerror}.") from None
    more = f"\n… {len(found) - _MAX_ENTRIES} more of {len(found)}" if len(found) > _MAX_ENTRIES else ""
    text = "\n".join(found[:_MAX_ENTRIES]) + more
    return ToolOutput(text or "(an empty directory)", meta={"path": str(where)})
