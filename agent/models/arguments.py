"""The arguments of a call as the model sent them, made into the text of one JSON object or into a clear problem."""

from __future__ import annotations

import json
import re
from typing import Any

from transcripts.records import clean

_ESCAPED_SURROGATE = re.compile(r"\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)


def read_arguments(raw: Any) -> tuple[str, str]:
    """(arguments, problem): the text of a JSON object and "", or "{}" and one sentence saying what is wrong.

    Nothing means no arguments. A JSON object inside a JSON string is unpacked, raw line breaks inside strings are
    accepted. Two objects in a row, a list or broken JSON are never guessed at: half of a command must not run.
    """
    if isinstance(raw, dict):
        return _dump(raw), ""
    if raw is None or (isinstance(raw, str) and raw.strip() in ("", "null")):
        return "{}", ""
    if not isinstance(raw, str):
        return "{}", f"The arguments must be one JSON object, not {_kind(raw)}."
    return _from_text(clean(raw))


def is_complete(raw: str) -> bool:
    """Whether the text is one whole JSON object."""
    try:
        return isinstance(json.loads(raw, strict=False), dict)
    except ValueError:
        return False


def _from_text(text: str) -> tuple[str, str]:
    try:
        value = json.loads(text, strict=False)
        if isinstance(value, str):
            value = json.loads(value, strict=False)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return "{}", "The arguments must be one JSON object; there is more text after its end. Send one call each."
        return "{}", f"The arguments are not valid JSON: {error.msg} at character {error.pos}."
    except RecursionError:
        return "{}", "The arguments are nested too deeply."
    if not isinstance(value, dict):
        return "{}", f"The arguments must be one JSON object, not {_kind(value)}."
    try:
        return (text if _is_strict(text) else _dump(value)), ""
    except ValueError:
        return "{}", "The arguments are not valid JSON: NaN and Infinity are not JSON numbers."


def _is_strict(text: str) -> bool:
    """Whether any other reader takes the text as it is: so it can be shown to the model again unchanged."""
    if _ESCAPED_SURROGATE.search(text):
        return False
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except ValueError:
        return False


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _dump(value: Any) -> str:
    return clean(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)
