"""Running ripgrep, or the module that stands in for it, over a folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.base import ToolContext, ToolFailure

SECONDS = 30.0
"""For one search; beyond it the model is told to narrow it."""

MAX_COLUMNS = 400
"""Bytes of one shown line, and characters that are kept of a longer one."""

_STAND_IN = Path(__file__).with_name("_searcher.py")


@dataclass(frozen=True)
class Request:
    """A search: `mode` is files (list them), count (matching lines a file) or lines. `paths` are relative to the folder
    it runs in; `name` is a pattern for file names without a slash; `everything`: hidden and ignored files too."""

    mode: str
    paths: Sequence[str] = (".",)
    pattern: str = ""
    fixed: bool = False
    perl: bool = False
    ignore_case: bool = False
    multiline: bool = False
    name: str = ""
    everything: bool = False
    context: int = 0
    most: int = 0
    in_git: bool = True


@dataclass(frozen=True)
class Answer:
    """What came out, and the complaints."""

    out: bytes
    complaint: str = ""
    failed: bool = field(default=False)


def ripgrep() -> str:
    """The path of rg: the one that was installed with us, else one on PATH, else "" (the stand-in is used then)."""
    name = "rg.exe" if os.name == "nt" else "rg"
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if own.is_file() else shutil.which("rg") or ""


async def search(ctx: ToolContext, top: Path, request: Request) -> Answer:
    """Runs a search in the folder `top`. Raises ToolFailure where it takes too long."""
    rg = "" if ctx.state.get("no_ripgrep") else ripgrep()
    if rg:
        argv = [rg, *_arguments(request)]
    else:
        argv = [sys.executable, "-I", str(_STAND_IN), json.dumps(asdict(request))]
    code, out, complaint = await _run(ctx.env, argv, top, ctx.state.get("search_seconds", SECONDS))
    return Answer(out, complaint, failed=code > 1)


def _arguments(r: Request) -> list[str]:
    argv = ["--no-config", "--color=never", "--null", "--no-heading"]
    if not r.in_git:
        argv += ["--no-require-git", "--no-ignore-parent"]
    if r.everything:
        argv += ["--hidden", "--no-ignore", "--glob=!.git"]
    if r.name:
        argv += [f"--type-add=wanted:{r.name}", "--type=wanted"]
    if r.mode == "files":
        return [*argv, "--files", "--", *r.paths]
    flags = {"-F": r.fixed, "-P": r.perl, "-i": r.ignore_case, "-U": r.multiline}
    argv += [flag for flag, on in flags.items() if on]
    if r.mode == "count":
        argv += ["--count", "--with-filename"]
    else:
        argv += ["-n", "--with-filename", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"-C{r.context}"]
    if r.most:
        argv.append(f"--max-count={r.most}")
    return [*argv, "-e", r.pattern, "--", *r.paths]


async def _run(env: Mapping[str, str], argv: list[str], cwd: Path, seconds: float) -> tuple[int, bytes, str]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=dict(env),
    )
    try:
        out, complaint = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        raise ToolFailure(f"The search took longer than {seconds:.0f} s; narrow the path or the pattern.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out, complaint.decode("utf-8", "replace")


def unread(answer: Answer) -> str:
    """One line that names what could not be read; "" where everything could, or where it complains of something else
    as well."""
    found = [_UNREAD.match(line) for line in answer.complaint.splitlines() if line]
    if not found or not all(found):
        return ""
    places = [one[1].removeprefix("./") for one in found if one]
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"(could not be read: {', '.join(places[:3])}{more})\n"


_UNREAD = re.compile(r"rg: (.+): .+ \(os error \d+\)$")


def in_git(top: Path) -> bool:
    """Whether a folder lies in a git repository; outside of one only the .gitignore files below it are obeyed."""
    return any(os.path.exists(folder / ".git") for folder in (top, *top.parents))


def text_path(raw: bytes) -> str:
    """A path as printed, without the leading ./"""
    return raw.decode("utf-8", "surrogateescape").removeprefix("./")


def hidden(path: str) -> bool:
    """Whether any part of a relative path begins with a dot."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.split("/"))


def newest_first(top: Path, paths: Sequence[str]) -> list[str]:
    """Sorted by modification time, newest first; equal ones by name."""
    stamped: list[tuple[int, str]] = []
    for path in paths:
        try:
            stamped.append((-os.stat(os.path.join(top, path)).st_mtime_ns, path))
        except OSError:
            stamped.append((0, path))
    return [path for _, path in sorted(stamped)]
