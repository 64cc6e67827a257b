"""The seam to a tool: a typed async function whose signature is its schema.

    @tool(effect="read")
    async def read(ctx: ToolContext, path: Annotated[str, "File"], limit: Annotated[int, "Lines"] = 9) -> ToolOutput:
        \"\"\"Reads a text file.\"\"\"

The docstring's first paragraph is what the model reads. A new tool is one new file in this package.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tools._arguments import check_arguments
from tools._paths import existing_twin

Effect = Literal["read", "write", "execute"]
"""read: changes nothing; write: changes files it names beforehand; execute: may do anything."""


class ToolFailure(Exception):
    """The model's mistake or the world's refusal, in words the model can act on. Becomes an error result."""


@dataclass(frozen=True)
class Picture:
    """Bytes of an image for a model that takes images; `media` like image/png."""

    data: bytes
    media: str


@dataclass(frozen=True)
class ToolOutput:
    """What a call gave. `text` goes to the model, whole: capping what is too large happens at the door of the log
    (the full text is kept there), so a tool caps only what it can page by itself. `meta` holds facts for folding and
    for the face: path, sha (SHA-256 hex of a file's bytes), lines ("1-200"), exit_code, command, seconds, diff
    (unified, for the person), todo. `ok` False marks an error result that is nevertheless whole (a command that
    exited 1). `keep`: "head", "tail" or "both" - which end matters most if the door has to cut."""

    text: str
    ok: bool = True
    meta: Mapping[str, Any] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    keep: str = "both"


@dataclass
class ToolContext:
    """What a tool may touch; one for a whole session, shared by its calls.

    `cwd` is where relative paths start (bash moves it); `root` is the workspace, which stays. `seen` remembers the
    SHA-256 of each file's bytes when the model last read or wrote it (absolute path -> hex). `share` is the most
    characters one result can show in the present window. `state` is for tools' own things, by tool name.
    """

    root: Path
    cwd: Path
    share: int = 50_000
    seen: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment of child processes, our own keys already removed."""
    progress: Callable[[str], None] = lambda text: None
    """Shows new output of the running call to the person; never blocks, may be called from any task."""
    tell: Callable[[Any], None] = lambda event: None
    """Passes an event of a sub-agent on to whoever follows the turn; never blocks."""
    recall: Callable[..., str] | None = None
    """Reads the session's own log: (id, query, path, start, count) -> text. Set by the session."""
    ask: Callable[[str, Sequence[str]], Awaitable[str]] | None = None
    """Asks the person a question with choices; None where nobody is there."""
    task: Callable[[str, str, str, str], Awaitable[ToolOutput]] | None = None
    """Lets a sub-agent work: (id of the call, description, prompt, kind) -> its result. None where there are none."""
    wrap: Callable[[list[str], Path], list[str]] | None = None
    """Puts a command line into the sandbox: (argv, cwd) -> argv. None runs it bare."""
    refused: Callable[[Sequence[str]], Sequence[str]] = lambda argv: ()
    """What the sandbox refused to a command since that was last asked, one line each: argv as `wrap` gave it."""
    wrap_online: Callable[[list[str], Path], list[str]] | None = None
    """Like wrap, for a program whose work is the network (fetch)."""
    targets: dict[str, frozenset[str]] = field(default_factory=dict)
    """Id of a call that may run -> the files it was judged for; it is held to them."""
    veiled: Callable[[str], bool] = lambda path: False
    """Whether a file (an absolute path) may not be read without a question; a search passes it over."""
    takes_images: bool = False

    def resolve(self, path: str) -> Path:
        """The absolute path a model meant: ~ expanded, relative to cwd; symlinks are left as they are. Where nothing is
        there, what is taken for it instead: a path that only looks the same, or one relative to the workspace."""
        p = Path(os.path.expanduser(path.strip() or "."))
        wanted = Path(os.path.normpath(p if p.is_absolute() else self.cwd / p))
        if "\0" in path or os.path.lexists(wanted):
            return wanted
        below = Path(os.path.normpath(self.root / p))
        return existing_twin(wanted) or (below if not p.is_absolute() and os.path.lexists(below) else wanted)

    def short(self, path: str | Path) -> str:
        """How a path is shown: relative to the workspace where it lies inside."""
        try:
            return str(Path(path).relative_to(self.root)) or "."
        except ValueError:
            return str(path)


@dataclass(frozen=True)
class Tool:
    """A function the model can call. `title(args)` is its one-line heading; `writes(ctx, args)` names the files a call
    will write (absolute), for hashes, undo and permission; `preview(ctx, args)` is the diff shown before approval;
    `after(ctx, args)` the bytes each of those files will have (None: no file), so that a crash can be judged later;
    `effect_of(args)` the effect of one call, where not all have the same."""

    name: str
    description: str
    effect: Effect
    schema: Mapping[str, Any]
    run: Callable[..., Awaitable[ToolOutput | str]]
    title: Callable[[Mapping[str, Any]], str]
    writes: Callable[[ToolContext, Mapping[str, Any]], list[Path]] | None = None
    preview: Callable[[ToolContext, Mapping[str, Any]], str] | None = None
    required: frozenset[str] = frozenset()
    after: Callable[[ToolContext, Mapping[str, Any]], Mapping[Path, bytes | None]] | None = None
    effect_of: Callable[[Mapping[str, Any]], Effect] | None = None

    def spec(self) -> dict[str, Any]:
        """The tool as a chat-completions `tools` entry."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.schema)},
        }


def tool(
    *,
    effect: Effect = "read",
    title: Callable[[Mapping[str, Any]], str] | None = None,
    writes: Callable[[ToolContext, Mapping[str, Any]], list[Path]] | None = None,
    preview: Callable[[ToolContext, Mapping[str, Any]], str] | None = None,
    after: Callable[[ToolContext, Mapping[str, Any]], Mapping[Path, bytes | None]] | None = None,
    effect_of: Callable[[Mapping[str, Any]], Effect] | None = None,
    name: str = "",
) -> Callable[[Callable[..., Awaitable[ToolOutput | str]]], Tool]:
    """Makes a Tool of a typed async function. Raises TypeError where a parameter has no type we can describe."""

    def make(function: Callable[..., Awaitable[ToolOutput | str]]) -> Tool:
        schema = schema_of(function)
        called = name or function.__name__
        doc = inspect.getdoc(function) or ""
        return Tool(
            name=called,
            description=" ".join(doc.split("\n\n")[0].split()),
            effect=effect,
            schema=schema,
            run=function,
            title=title or (lambda args: _title(called, args)),
            writes=writes,
            preview=preview,
            required=frozenset(schema["required"]),
            after=after,
            effect_of=effect_of,
        )

    return make


def _title(name: str, args: Mapping[str, Any]) -> str:
    first = next((str(v) for v in args.values() if isinstance(v, (str, int))), "")
    first = " ".join(first.split())
    return f"{name} {first[:80]}".rstrip()


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of a function's parameters, the first (ToolContext) left out."""
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for p in list(inspect.signature(function).parameters.values())[1:]:
        properties[p.name] = _describe(hints[p.name])
        if p.default is inspect.Parameter.empty:
            required.append(p.name)
        elif p.default is not None and p.default not in ("", (), []):
            properties[p.name]["default"] = p.default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _describe(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        out = _describe(inner)
        words = next((n for n in notes if isinstance(n, str)), "")
        return {**out, "description": words} if words else out
    if get_origin(hint) is typing.NotRequired:
        return _describe(get_args(hint)[0])
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin in (list, Sequence):
        return {"type": "array", "items": _describe(args[0])}
    if origin in (Union, types.UnionType):
        return _describe(next(a for a in args if a is not type(None)))
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return {
            "type": "object",
            "properties": {k: _describe(v) for k, v in hints.items()},
            "required": [k for k, v in hints.items() if get_origin(v) is not typing.NotRequired],
            "additionalProperties": False,
        }
    raise TypeError(f"no JSON schema for the type {hint!r}")


DEFAULT = ("read", "write", "edit", "bash", "grep", "glob", "todo", "recall", "ask_user", "fetch", "jobs")
"""At most 2,500 tokens of schema, a test keeps it."""

PATCH = ("read", "apply_patch", "write", "bash", "grep", "glob", "todo", "recall", "ask_user", "fetch", "jobs")
"""For models that were trained on apply_patch (gpt-5 and its kin)."""

TASK = "task"
"""The tool that lets a sub-agent work: beside those above where the window is large, never in a sub-agent itself."""

EXPLORE, WORK = "explore", "work"
"""What a sub-agent may do: only read, or all that the session may."""

SMALL = ("read", "write", "edit", "bash")
"""For small local models: at most 700 tokens of schema. Searching is left to bash."""


CALL: ContextVar[str] = ContextVar("call", default="")
"""The id of the call that runs in this asyncio task."""

TARGETS: ContextVar[frozenset[str] | None] = ContextVar("targets", default=None)
"""The files that the call of this asyncio task was judged for, links resolved; None where nobody judged it."""


_SIGPIPE = 128 + 13


def failed_parts(codes: Sequence[int]) -> list[int]:
    """Of the exit codes of a pipe those of parts that failed. One that ends because nobody reads on any more (`| head`)
    did not fail."""
    return [code for code in codes if code not in (0, _SIGPIPE)]


@dataclass
class Toolbox:
    """The tools of a session by name, and the one way to run them."""

    tools: Mapping[str, Tool]
    ctx: ToolContext
    instead: Callable[[], Awaitable[ToolOutput]] | None = None
    """Runs once in the place of the next call: a change as the person has left it."""

    def specs(self) -> list[dict[str, Any]]:
        """All tools as chat-completions `tools` entries, in a fixed order."""
        return [t.spec() for t in self.tools.values()]

    def title(self, name: str, args: Mapping[str, Any]) -> str:
        """One line that says what a call does."""
        found = self.tools.get(name)
        return found.title(args) if found else _title(name, args)

    async def run(self, name: str, args: Mapping[str, Any], ident: str = "") -> ToolOutput:
        """Runs one call, in an asyncio task of its own. The model's mistakes come back as a ToolOutput with ok=False;
        only bugs raise."""
        CALL.set(ident)
        TARGETS.set(self.ctx.targets.pop(ident, None))
        found = self.tools.get(name)
        if found is None:
            return ToolOutput(f"There is no tool {name!r}. The tools are: {', '.join(self.tools)}.", ok=False)
        problem, values = check_arguments(found.schema, args)
        if problem:
            return ToolOutput(f"{name}: {problem}", ok=False)
        instead, self.instead = self.instead, None
        try:
            out = await (instead() if instead else found.run(self.ctx, **values))
        except ToolFailure as error:
            return ToolOutput(str(error), ok=False)
        except (OSError, ValueError, MemoryError) as error:
            return ToolOutput(f"{name}: {describe_error(error)}", ok=False)
        except RuntimeError as error:
            if str(error) != "can't start new thread":
                raise
            return ToolOutput(f"{name}: no more threads can be started now (ulimit -u)", ok=False)
        return out if isinstance(out, ToolOutput) else ToolOutput(out)


def describe_error(error: BaseException) -> str:
    """An operating-system error in a few plain words, others by their own text."""
    if isinstance(error, OSError) and error.strerror:
        # A file that was reached through a held folder is named as that is: by a number that tells nobody anything.
        named = re.sub("^/proc/self/fd/[0-9]+/", "", str(error.filename or ""))
        where = f": {named}" if named else ""
        return f"{error.strerror}{where}"
    return str(error) or type(error).__name__


def load_tools(names: Sequence[str] = ()) -> dict[str, Tool]:
    """The tools of this package by name, in the fixed order of the files' names; `names` picks some, in that order.

    Every module but this one exports exactly one `TOOL`; modules whose name begins with an underscore are helpers.
    """
    package = importlib.import_module(__package__ or "tools")
    found: dict[str, Tool] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if info.name == "base" or info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        found[module.TOOL.name] = module.TOOL
    return {n: found[n] for n in names} if names else found
