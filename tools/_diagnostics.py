"""Problems that an edit brought in: what the language's own checker says now and did not say before.

Only checkers that read the text and run nothing of the project's are used, each with a time limit; no checker, no word.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shutil
import tomllib
import warnings
import xml.parsers.expat as expat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.base import ToolContext

_SECONDS = 5.0
"""For one checker; beyond it nothing is said."""

_MAX_TEXT = 1_000_000
"""Characters of the largest text that is checked."""

_MAX_SHOWN = 8


@dataclass(frozen=True)
class Problem:
    """`line` from 1, 0 where unknown; `source` is that line's text, by which a problem is known again when it moves."""

    line: int
    words: str
    source: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two problems the same although lines moved."""
        return re.sub(r"\d+", "#", self.words), self.source


async def new_problems(ctx: ToolContext, where: Path, before: str, after: str) -> str:
    """One line a problem that `after` has and `before` had not; "" if there is none or nothing can tell."""
    if max(len(before), len(after)) > _MAX_TEXT:
        return ""
    now = await _check(ctx, where, after)
    if not now:
        return ""
    old = [p.key for p in await _check(ctx, where, before)] if before else []
    fresh: list[Problem] = []
    for problem in now:
        if problem.key in old:
            old.remove(problem.key)
        else:
            fresh.append(problem)
    if not fresh:
        return ""
    lines = [f"  line {p.line}: {p.words}" if p.line else f"  {p.words}" for p in fresh[:_MAX_SHOWN]]
    more = [f"  … {len(fresh) - _MAX_SHOWN} more"] if len(fresh) > _MAX_SHOWN else []
    return "\n".join(["New problems since this change:", *lines, *more])


async def _check(ctx: ToolContext, where: Path, text: str) -> list[Problem]:
    inside = None if _WITH_COMMENTS.search(str(where)) else _INSIDE.get(where.suffix)
    found = inside(text) if inside else await _outside(ctx, where, text)
    if not found and where.suffix in (".py", ".pyi") and _uses_ruff(ctx, where):
        found = await _ruff(ctx, where, text)
    lines = text.split("\n")
    return [Problem(p.line, p.words, lines[p.line - 1].strip() if 0 < p.line <= len(lines) else "") for p in found]


def _python(text: str) -> list[Problem]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return [Problem(error.lineno or 0, f"SyntaxError: {error.msg}")]
    except (ValueError, RecursionError, MemoryError):
        return []
    return []


def _json(text: str) -> list[Problem]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return [Problem(error.lineno, f"invalid JSON: {error.msg}")]
    except RecursionError:
        return []
    return []


def _toml(text: str) -> list[Problem]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        return [Problem(int(found[1]) if found else 0, f"invalid TOML: {error}")]
    return []


def _xml(text: str) -> list[Problem]:
    try:
        expat.ParserCreate().Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return [Problem(error.lineno, f"invalid XML: {expat.ErrorString(error.code)}")]
    return []


_INSIDE = {".py": _python, ".pyi": _python, ".json": _json, ".toml": _toml, ".xml": _xml, ".svg": _xml}

_WITH_COMMENTS = re.compile(r"[/\\](?:[tj]sconfig[^/]*|devcontainer|\.eslintrc)\.json$|[/\\]\.vscode[/\\]")
"""JSON files that may have comments in them, which is not for us to complain of."""

_C_ERROR = r"<stdin>:(?P<line>\d+):\d+: (?:fatal )?error: (?P<words>.*)"

_OUTSIDE: dict[str, tuple[Sequence[str], str]] = {
    ".sh": (("bash", "-n"), r"line (?P<line>\d+): (?P<words>.*)"),
    ".bash": (("bash", "-n"), r"line (?P<line>\d+): (?P<words>.*)"),
    ".js": (("node", "--check", "-"), r"\[stdin\]:(?P<line>\d+)[\s\S]*?(?P<words>SyntaxError: .*)"),
    ".mjs": (
        ("node", "--input-type=module", "--check", "-"),
        r"\[stdin\]:(?P<line>\d+)[\s\S]*?(?P<words>SyntaxError: .*)",
    ),
    ".go": (("gofmt", "-e"), r"<standard input>:(?P<line>\d+):\d+: (?P<words>.*)"),
    ".rb": (("ruby", "-c", "-"), r"-:(?P<line>\d+): (?P<words>.*)"),
    ".php": (("php", "-n", "-l"), r"(?P<words>Parse error.*) on line (?P<line>\d+)"),
    ".c": (("gcc", "-fsyntax-only", "-x", "c", "-"), _C_ERROR),
    ".cc": (("g++", "-fsyntax-only", "-x", "c++", "-"), _C_ERROR),
    ".cpp": (("g++", "-fsyntax-only", "-x", "c++", "-"), _C_ERROR),
    ".rs": (("rustfmt", "--edition", "2021", "--check"), r"error: (?P<words>.*)\n\s*--> <stdin>:(?P<line>\d+)"),
    ".lua": (("luac", "-p", "-"), r"stdin:(?P<line>\d+): (?P<words>.*)"),
}
"""Checkers that take the text on their input, and how their complaints read."""


async def _outside(ctx: ToolContext, where: Path, text: str) -> list[Problem]:
    argv, pattern = _OUTSIDE.get(where.suffix, ((), ""))
    if not argv or not shutil.which(argv[0], path=ctx.env.get("PATH")):
        return []
    code, said = await _run(ctx, argv, text, where.parent)
    if not code:
        return []
    return [Problem(int(m["line"]), m["words"].strip()) for m in re.finditer(pattern, said)][:50]


def _uses_ruff(ctx: ToolContext, where: Path) -> bool:
    """Whether the project says that it is linted with ruff, and ruff is there."""
    if not shutil.which("ruff", path=ctx.env.get("PATH")) or not where.is_relative_to(ctx.root):
        return False
    for folder in where.parents:
        if (folder / "ruff.toml").exists() or (folder / ".ruff.toml").exists():
            return True
        project = folder / "pyproject.toml"
        if project.is_file():
            return "[tool.ruff" in project.read_text("utf-8", "replace")
        if folder == ctx.root:
            return False
    return False


async def _ruff(ctx: ToolContext, where: Path, text: str) -> list[Problem]:
    argv = ("ruff", "check", "--quiet", "--no-fix", "--output-format=json", "--stdin-filename", str(where), "-")
    _, said = await _run(ctx, argv, text, where.parent)
    try:
        found = json.loads(said or "[]")
        return [Problem(p["location"]["row"], f"{p['code'] or ''} {p['message']}".strip()) for p in found]
    except (ValueError, KeyError, TypeError):
        return []


async def _run(ctx: ToolContext, argv: Sequence[str], text: str, cwd: Path) -> tuple[int, str]:
    """(exit code, output) of a checker; (0, "") when it cannot be run or takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
            env={**ctx.env, "LC_ALL": "C"},  # so that complaints are in English
            start_new_session=True,
        )
    except OSError:
        return 0, ""
    try:
        said, _ = await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), _SECONDS)
    except TimeoutError:
        return 0, ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, said.decode("utf-8", "replace")
