"""grep: text in files."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from tools._files import locate, missing, shown
from tools._globs import glob_regex
from tools._search import Answer, Request, hidden, in_git, newest_first, search, text_path, unread
from tools._text import plain
from tools.base import ToolContext, ToolFailure, ToolOutput, tool

_OMITTED = b" [... "
"""How ripgrep begins to say that it cut a line."""


@tool(effect="read")
async def grep(
    ctx: ToolContext,
    pattern: Annotated[str, "Regular expression (Rust syntax)"],
    path: Annotated[str, "File or folder"] = ".",
    glob: Annotated[str, "Only files like *.py or src/**"] = "",
    output: Annotated[Literal["lines", "files", "count"], "What to show"] = "lines",
    context: Annotated[int, "Lines around each match"] = 0,
    ignore_case: bool = False,
    all: Annotated[bool, "Hidden and ignored files too"] = False,
    limit: Annotated[int, "Lines or files at most"] = 100,
) -> ToolOutput:
    """Searches file contents, newest files first. .gitignore is obeyed."""
    where = locate(ctx, path)
    if not where.exists():
        raise missing(ctx, where, path)
    top, paths = (where, (".",)) if where.is_dir() else (where.parent, (where.name,))
    request = Request(
        "count",
        paths,
        pattern,
        ignore_case=ignore_case,
        multiline="\\n" in pattern or "\n" in pattern,
        name=glob if glob and "/" not in glob and not glob.startswith("!") else "",
        everything=all,
        context=min(max(context, 0), 20),
        in_git=in_git(top),
    )
    request, counts, note = await _counts(ctx, top, request, glob)
    files = newest_first(top, list(counts))
    if where.is_dir():
        files, counts = _open_ones(ctx, top, files, counts, max(1, limit))
    if not counts:
        skipped = "" if request.everything else " (hidden and ignored files were left out; all=true takes them in)"
        return ToolOutput(f"{note}No match in {shown(ctx, where)}{skipped}", meta={"total": 0})
    if output != "lines":
        return _overview(ctx, top, files, counts, output, max(1, limit), note)
    return await _lines(ctx, top, request, files, counts, max(1, limit), note)


TOOL = grep


_JUDGED = 300
"""Files of which each is judged whether it may be read unasked. A judgement takes about 0.2 ms; of more files only
those that are shown are judged, and the others are counted."""


def _open_ones(
    ctx: ToolContext, top: Path, files: list[str], counts: Mapping[str, int], limit: int
) -> tuple[list[str], Mapping[str, int]]:
    """The files that may be read unasked. It is not told which others match: that would tell what is in them."""
    if len(files) <= _JUDGED:
        files = [name for name in files if not ctx.veiled(str(top / name))]
        return files, {name: counts[name] for name in files}
    shown_ones = (name for name in files if not ctx.veiled(str(top / name)))
    return list(itertools.islice(shown_ones, limit)), counts


async def _counts(ctx: ToolContext, top: Path, request: Request, glob: str) -> tuple[Request, Mapping[str, int], str]:
    """Matching lines a file. A pattern that is no regular expression is searched for as it is; where nothing is found
    in a place that was named, its hidden and ignored files are looked through too. The note says either."""
    answer = await search(ctx, top, request)
    note = ""
    if answer.failed and not answer.out and "regex" in answer.complaint:
        request, answer, note = await _mended(ctx, top, request, answer)
    counts = _parsed(answer, glob, request.everything)
    if not counts and not request.everything and top not in (ctx.root, ctx.cwd):
        wider = dataclasses.replace(request, everything=True)
        counts = _parsed(await search(ctx, top, wider), glob, True)
        if counts:
            return wider, counts, f"{note}(only hidden or ignored files match)\n"
    shut = plain(unread(answer))
    if not counts and answer.failed and answer.complaint and not shut:
        raise ToolFailure(f"grep: {answer.complaint.strip()[:500]}")
    return request, counts, f"{shut}{note}"


async def _mended(ctx: ToolContext, top: Path, request: Request, answer: Answer) -> tuple[Request, Answer, str]:
    complaint = answer.complaint
    if "look-around" in complaint or "backreferences" in complaint:
        request = dataclasses.replace(request, perl=True)
        return request, await search(ctx, top, request), ""
    request = dataclasses.replace(request, fixed=True, multiline=False)
    return request, await search(ctx, top, request), "(not a valid regular expression; searched for it as plain text)\n"


def _parsed(answer: Answer, glob: str, everything: bool) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in answer.out.split(b"\n"):
        name, _, number = line.rpartition(b"\0")
        if name:
            counts[text_path(name)] = int(number)
    if not everything:
        counts = {path: n for path, n in counts.items() if not hidden(path)}
    if not glob:
        return counts
    try:
        wanted = glob_regex(glob.removeprefix("!"))
    except ValueError as error:
        raise ToolFailure(f"grep: {error}") from None
    return {path: n for path, n in counts.items() if bool(wanted.match(path)) != glob.startswith("!")}


def _overview(
    ctx: ToolContext, top: Path, files: Sequence[str], counts: Mapping[str, int], output: str, limit: int, note: str
) -> ToolOutput:
    lines = [_shown(ctx, top, p) + (f":{counts[p]}" if output == "count" else "") for p in files[:limit]]
    total = sum(counts.values())
    if len(counts) > len(lines) or output == "count":
        lines.append(f"({len(lines)} of {len(counts)} files, {total:,} matching lines in all)")
    return ToolOutput(note + "\n".join(lines), meta={"total": total, "files": len(counts)})


async def _lines(
    ctx: ToolContext,
    top: Path,
    request: Request,
    files: Sequence[str],
    counts: Mapping[str, int],
    limit: int,
    note: str,
) -> ToolOutput:
    picked: list[str] = []
    room = limit
    for path in files:
        if room <= 0:
            break
        picked.append(path)
        room -= counts[path]
    wanted = dataclasses.replace(request, mode="lines", paths=picked, name="", everything=True, most=limit)
    answer = await search(ctx, top, wanted)
    blocks = _blocks(answer.out)
    parts: list[str] = []
    left = limit
    for path in picked:
        lines = _first(blocks.get(path, []), left)
        left -= sum(1 for line in lines if line[1])
        if lines:
            parts.append("\n".join([_shown(ctx, top, path), *(text for text, _ in lines)]))
    total, here = sum(counts.values()), limit - left
    more = f"\n({here} of {total:,} matching lines in {len(counts)} files; narrow the search)" if here < total else ""
    return ToolOutput(note + "\n".join(parts) + more, meta={"total": total, "files": len(counts)})


Line = tuple[str, bool]
"""A line as shown, and whether it is a match (not one around it)."""


def _blocks(out: bytes) -> dict[str, list[Line]]:
    """Lines by file."""
    blocks: dict[str, list[Line]] = {}
    path = ""
    for raw in out.split(b"\n"):
        name, sep, rest = raw.partition(b"\0")
        if sep:
            path = text_path(name)
            blocks.setdefault(path, []).append(_line(rest))
        elif raw == b"--" and path:
            blocks[path].append(("--", False))
    return blocks


def _line(rest: bytes) -> Line:
    digits = len(rest) - len(rest.lstrip(b"0123456789"))
    cut = rest.rfind(_OMITTED)
    if cut >= 0 and rest.endswith(b"]") and cut > 300:
        rest = rest[:cut] + " …".encode()
    text = rest.decode("utf-8", "replace").rstrip("\r")
    return text, rest[digits : digits + 1] == b":"


def _first(lines: list[Line], most: int) -> list[Line]:
    """Up to the line after which `most` matches are shown."""
    out: list[Line] = []
    for line in lines:
        if line[1]:
            most -= 1
        if most < 0:
            break
        out.append(line)
    while out and out[-1][0] == "--":
        out.pop()
    return out


def _shown(ctx: ToolContext, top: Path, path: str) -> str:
    return plain(shown(ctx, Path(os.path.normpath(os.path.join(top, path)))))
