"""JSON as small models write it: a Python string in triple quotes for a file's content, a comma too many."""

from __future__ import annotations

import json
import re
from typing import Any

_TRIPLE = re.compile(r'(?P<before>[:\[,]\s*)(?P<quote>"""|\'\'\')(?P<body>.*?)(?P=quote)(?=\s*[,}\]])', re.DOTALL)


def read_object(text: str, repair: bool = True) -> dict[str, Any] | list[Any] | None:
    """The object or list the text means; None where it means none.

    Triple-quoted values are read before any general repair, for a repair takes their quotes for empty strings and loses
    the content. Nothing is repaired that does not end like an object: what was cut off must not be completed by guess.
    """
    text = text.strip()
    for candidate in (text, _TRIPLE.sub(_quoted, text)):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, (dict, list)) else None
    if not repair or text[:1] not in ("{", "[") or text[-1:] not in ("}", "]"):
        return None
    return _repaired(_TRIPLE.sub(_quoted, text))


def _quoted(match: re.Match[str]) -> str:
    """What stands between triple quotes is meant as it is, but for the line break after the opening ones."""
    body = match["body"]
    body = body[1:] if body.startswith("\n") else body
    return match["before"] + json.dumps(body.replace('\\"', '"'), ensure_ascii=False)


def _repaired(text: str) -> dict[str, Any] | list[Any] | None:
    from json_repair import loads

    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) and value else None


def object_end(text: str, start: int) -> int:
    """Where the JSON object that begins at `start` ends (one behind its last brace); -1 where it does not end.

    Strings, triple-quoted ones too, are stepped over."""
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char in "\"'" and (char == '"' or text.startswith("'''", at)):
            quote = char * 3 if text.startswith(char * 3, at) else char
            at = _string_end(text, at + len(quote), quote)
            if at < 0:
                return -1
            continue
        depth += (char in "{[") - (char in "}]")
        at += 1
        if depth == 0:
            return at
    return -1


def _string_end(text: str, at: int, quote: str) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return -1
