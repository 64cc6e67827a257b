"""Tool calls that a model writes as text: found, told from mere talk about calls, and written back in one form.

Two degrees. `strict` is for models that speak the native protocol and slip: the whole answer has to be calls, or a
marker that nobody writes by accident (<tool_call>, [TOOL_CALLS], <|python_tag|>) has to end it, outside of any fence.
`loose` is for models that were told to write calls as text: prose may stand around the block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.models.arguments import read_arguments
from agent.models.lenient import object_end, read_object
from agent.models.slots import new_id
from transcripts.records import Assistant, ToolCall

MOST = 4
"""Calls taken from one answer at most: a small model that goes on writes the results itself."""

_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "params")
_DONE = re.compile(r"(?is)^[\s`*_#-]*(?:json)?[\s`]*done\b[\s`*.!:]*(?P<rest>.*?)[\s`]*$")
_FENCE = re.compile(r"^[ \t]*```[ \t]*(?P<tag>[\w+-]*)[ \t]*\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)
_XML = re.compile(r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<key>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_MARKERS = re.compile(
    r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls?_(?:section_)?begin\|>|<｜tool▁calls?▁begin｜>"
)
_NAMED = re.compile(
    r"(?:functions\.)?(?P<name>[A-Za-z_][\w.-]*?)(?::\d+)?\s*"
    r"(?:\[ARGS\]|<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|\n```json)?\s*(?=\{)"
)
_OBJECT = re.compile(r"[{\[]\s*[\"{\]}]")
_CLOSERS = re.compile(r"(?:\s|;|```|</?tool_call>|</function>|<\|[\w▁]+\|>|<｜[\w▁]+｜>|\[/TOOL_CALLS\])*")


@dataclass(frozen=True)
class Found:
    """What a text turned out to be: the words before the first call, the calls as (name, arguments), whether it says
    that the work is done."""

    words: str
    calls: tuple[tuple[str, Any], ...] = ()
    done: bool = False


def lift_calls(
    message: Assistant, names: Collection[str], loose: bool = False, needs: Mapping[str, Collection[str]] | None = None
) -> Assistant:
    """The message with the calls its text holds as real calls. Unchanged where it has native calls or none in text.

    Only names of ours count; in `loose` text a block that is plainly a call to something else becomes a call with that
    as its problem, so that the model is told. `needs` are the arguments a tool cannot do without: behind a call that
    lacks one the rest is left out, for it was thought up on top of what will not have happened.
    """
    if message.calls or not message.text.strip():
        return message
    found = find_calls(message.text, names, loose)
    if found.calls:
        # "done" behind other calls was said before their results were seen: it is asked again when they are.
        wanted = [c for c in found.calls if c[0] != "done" or "done" in names] or list(found.calls)
        calls = tuple(_call(name, arguments, names) for name, arguments in wanted[:MOST])
        calls = calls[: _first_lacking(calls, needs or {})]
        finish = "tool_calls" if message.finish == "stop" else message.finish
        if finish != "tool_calls":
            calls = tuple(
                replace(c, problem="This call was not run: the answer was cut before its end.") for c in calls
            )
        return replace(message, text=found.words, calls=calls, finish=finish)
    return replace(message, text=found.words) if found.done else message


def _first_lacking(calls: Sequence[ToolCall], needs: Mapping[str, Collection[str]]) -> int:
    """How many calls count: up to and with the first that lacks an argument it needs."""
    lacking = (n for n, c in enumerate(calls, 1) if not c.problem and not set(needs.get(c.name, ())) <= c.args.keys())
    return next(lacking, len(calls))


def find_calls(text: str, names: Collection[str], loose: bool = False) -> Found:
    """The calls in a text; see the module's first words for what counts."""
    marked = _marked(text, names)
    if marked is not None:
        return marked
    blocks = list(_blocks(text, loose))
    calls = [(c, span) for value, span in blocks for c in _read(value, names, loose)]
    if not calls:
        return (_done(text) if loose and "done" not in names else None) or Found(text)
    first, last = calls[0][1][0], calls[-1][1][1]
    if not loose and (text[:first].strip() or text[last:].strip() or len({s for _, s in calls}) != len(blocks)):
        return Found(text)
    if not loose and re.sub(r"\s", "", _without(text, [s for _, s in blocks])):
        return Found(text)
    return Found(text[:first].strip(), tuple(c for c, _ in calls))


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in sorted(set(spans), reverse=True):
        text = text[:start] + text[end:]
    return text


def _done(text: str) -> Found | None:
    """`done`, `done {...}`, "done: words", a fence around any of them, or a call to a tool of that name."""
    value = read_object(re.sub(r"^\s*```\w*\s*|\s*```\s*$", "", text), repair=False)
    if isinstance(value, dict) and value.get("name") == "done":
        return Found(_last_words(value.get("arguments")), done=True)
    match = _DONE.match(text)
    if not match or len(text) > 2000 or "```" in match["rest"]:
        return None
    rest = match["rest"].strip()
    value = read_object(rest, repair=True) if rest.startswith("{") else rest
    if isinstance(value, dict) and {"name", "arguments"} <= set(value):
        return None
    return Found(_last_words(value), done=True)


def _last_words(value: Any) -> str:
    if isinstance(value, Mapping):
        value = next((v for v in value.values() if isinstance(v, str) and v.strip()), "")
    return value.strip() if isinstance(value, str) and value.strip() else "Done."


def _marked(text: str, names: Collection[str]) -> Found | None:
    """Calls behind a marker that ends the answer and stands outside of every code fence and code span."""
    marker = _MARKERS.search(text)
    if marker is None or text[: marker.start()].count("```") % 2 or text[: marker.start()].endswith("`"):
        return None
    behind = text[marker.start() :]
    read = _xml_calls(behind) if "<function=" in behind else _marked_calls(behind)
    if read is None or not read or not all(name in names for name, _ in read):
        return None
    return Found(text[: marker.start()].strip(), tuple(read))


def _xml_calls(text: str) -> list[tuple[str, Any]] | None:
    found = list(_XML.finditer(text))
    if not found or not _CLOSERS.fullmatch(text[found[-1].end() :]):
        return None
    return [(m["name"], _xml_arguments(m["body"])) for m in found]


def _marked_calls(text: str) -> list[tuple[str, Any]] | None:
    out: list[tuple[str, Any]] = []
    at = 0
    while (start := _OBJECT.search(text, at)) is not None:
        end = object_end(text, start.start())
        stop = end if end > 0 else len(text)
        value = read_object(text[start.start() : stop], repair=end > 0)
        named = next((m for m in _NAMED.finditer(text, at, start.start() + 1) if m.end() == start.start()), None)
        out += [(named["name"], value)] if named else _named(value)
        at = stop
    return out if _CLOSERS.fullmatch(text[at:]) else None


def _xml_arguments(body: str) -> Any:
    pairs = {m["key"]: m["value"] for m in _PARAMETER.finditer(body)}
    return pairs or read_object(body) or {}


def _blocks(text: str, loose: bool) -> Iterator[tuple[Any, tuple[int, int]]]:
    """(value, span) of every fenced or bare JSON value that could be a call."""
    at, any_fence = 0, False
    while (opened := _FENCE.search(text, at)) is not None:
        value, end = _fenced(text, opened.end())
        at = end
        if value is not None:
            any_fence = True
            yield value, (opened.start(), end)
    if any_fence:
        return
    start = len(text) - len(text.lstrip())
    if loose and text[start : start + 1] not in ("{", "["):
        start = next((m.start() for m in re.finditer(r"^\{", text, re.MULTILINE)), len(text))
    while start < len(text) and text[start] in "{[":
        end = object_end(text, start)
        value = read_object(text[start : end if end > 0 else len(text)], repair=loose)
        if value is None:
            return
        yield value, (start, end if end > 0 else len(text))
        start = (end if end > 0 else len(text)) + len(text[end:]) - len(text[end:].lstrip())


def _fenced(text: str, start: int) -> tuple[Any, int]:
    """The value of a fence that opens at `start` and where it ends. A file's content may hold fences itself, so the
    first end at which the value can be read is the end; only then is a repair tried, up to the first one."""
    ends = [(m.start(), m.end()) for m in _FENCE_END.finditer(text, start)] or [(len(text), len(text))]
    for stop, end in ends:
        value = _value(text[start:stop], repair=False)
        if value is not None:
            return value, end
    stop, end = ends[0]
    return _value(text[start:stop], repair=True), end


def _value(text: str, repair: bool) -> Any:
    text = text.strip()
    if text[:1] in ("{", "["):
        return read_object(text, repair) or _several(text)
    named = re.match(r"(\w+)\s*(?=\{)", text)
    inner = read_object(text[named.end() :], repair) if named else None
    return {"name": named[1], "arguments": inner} if named and isinstance(inner, dict) else None


def _several(text: str) -> list[Any] | None:
    """Objects one after another in one fence."""
    out, at = [], 0
    while at < len(text) and text[at] == "{":
        end = object_end(text, at)
        value = read_object(text[at:end], repair=False) if end > 0 else None
        if value is None:
            return None
        out.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip(" \n\t\r,;"))
    return out if len(out) > 1 and at >= len(text) else None


def _read(value: Any, names: Collection[str], loose: bool) -> Iterator[tuple[str, Any]]:
    for name, arguments in _named(value):
        if name in names or (
            loose and name != "done" and isinstance(arguments, dict) and re.fullmatch(r"[a-z_]\w{0,40}", name)
        ):
            yield name, arguments


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, arguments) of everything in a value that has the form of a call."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item)
    if not isinstance(value, Mapping):
        return
    inner = value.get("function")
    if isinstance(inner, Mapping):
        yield from _named(inner)
        return
    name = next((value[k] for k in _NAME_KEYS if isinstance(value.get(k), str)), None)
    given = [k for k in _ARGUMENT_KEYS if k in value]
    if name and given:
        yield name.removeprefix("functions."), value[given[0]]


def _call(name: str, arguments: Any, names: Collection[str]) -> ToolCall:
    text, problem = read_arguments(arguments)
    if name not in names:
        problem = f"There is no tool {name!r}. The tools are: {', '.join(names)}."
    return ToolCall(new_id(), name, text, json.dumps(arguments, ensure_ascii=False) if problem else "", problem)
