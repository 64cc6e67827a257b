"""A call's arguments against a tool's schema: checked, and mended where it is plain what is meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def check_arguments(schema: Mapping[str, Any], args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Checks arguments against a schema and mends what is plainly meant ("5" for 5, "true", a list sent as JSON text).

    Where a schema takes additional properties, they are passed as they are.

    Returns (problem, values): one short sentence that says what is wrong, or "" and the values to pass.
    """
    properties: Mapping[str, Any] = schema["properties"]
    args = _renamed(properties, args)
    free = bool(schema.get("additionalProperties"))
    unknown = [k for k in args if k not in properties and not free]
    missing = [k for k in schema["required"] if args.get(k) is None]
    if missing or unknown:
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown argument {', '.join(unknown)}"] if unknown else []
        return f"{'; '.join(parts)}. It takes: {', '.join(properties)}.", {}
    values: dict[str, Any] = {}
    for key, value in args.items():
        if key not in properties:
            values[key] = value
            continue
        if value is None:
            continue
        problem, values[key] = _fit(properties[key], value)
        if problem:
            return f"{key} {problem}", {}
    return "", values


OTHER_NAMES = {
    "path": ("file_path", "filePath", "filename", "file", "filepath"),
    "old": ("old_string", "oldString", "old_str", "old_text", "oldText"),
    "new": ("new_string", "newString", "new_str", "new_text", "newText"),
    "replace_all": ("replaceAll", "allow_multiple"),
    "content": ("contents", "file_text", "text"),
    "command": ("cmd",),
    "patch": ("input",),
    "items": ("todos",),
    "background": ("run_in_background", "is_background"),
}
"""What other programs call our arguments. Models that were trained on those use them; what is meant is plain."""


def _renamed(properties: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(args)
    for name, others in OTHER_NAMES.items():
        other = next((o for o in others if o in out and o not in properties), None)
        if other and name in properties and name not in out:
            out[name] = out.pop(other)
    return out


def _fit(schema: Mapping[str, Any], value: Any) -> tuple[str, Any]:
    kind = schema["type"]
    if kind == "string":
        if isinstance(value, (dict, list)):
            value = json.dumps(value, ensure_ascii=False)
        if not isinstance(value, str):
            return f"must be a string, not {json.dumps(value)}", value
        allowed = schema.get("enum")
        if allowed and value not in allowed:
            return f"must be one of {', '.join(allowed)}, not {value!r}", value
        return "", value
    if kind == "boolean":
        if isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        return ("", value) if isinstance(value, bool) else (f"must be true or false, not {value!r}", value)
    if kind in ("integer", "number"):
        return _number(kind, value)
    if kind == "array":
        return _array(schema, value)
    return _object(schema, value)


def _number(kind: str, value: Any) -> tuple[str, Any]:
    try:
        number = float(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError):
        number = None
    if number is None or (kind == "integer" and number != number // 1):
        return (
            f"must be a whole number, not {value!r}" if kind == "integer" else f"must be a number, not {value!r}",
            value,
        )
    return "", int(number) if kind == "integer" else number


def _from_text(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _array(schema: Mapping[str, Any], value: Any) -> tuple[str, Any]:
    value = _from_text(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return f"must be a list, not {type(value).__name__}", value
    out: list[Any] = []
    for n, item in enumerate(value):
        problem, fitted = _fit(schema["items"], item)
        if problem:
            return f"item {n + 1} {problem}", value
        out.append(fitted)
    return "", out


def _object(schema: Mapping[str, Any], value: Any) -> tuple[str, Any]:
    value = _from_text(value)
    if not isinstance(value, dict):
        return f"must be an object, not {type(value).__name__}", value
    problem, values = check_arguments(schema, value)
    return (f"is wrong: {problem}" if problem else ""), values
