"""Checks every line that the command prints as JSON against the schema that ships with it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "agent" / "data" / "stream-json.schema.json"


@cache
def validator() -> Draft202012Validator:
    """The validator of agent/data/stream-json.schema.json."""
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def valid_lines(text: str) -> list[dict[str, Any]]:
    """The lines as objects. Fails where one does not fit the schema."""
    out = []
    for line in text.splitlines():
        value = json.loads(line)
        kind = f"{value.get('type')}/{value.get('subtype', '')}".rstrip("/")
        name = {"system/init": "init", "system/api_retry": "api_retry", "system/notice": "notice"}.get(kind)
        name = name or {"system/compact_boundary": "compact_boundary"}.get(kind, value.get("type"))
        part = {"$defs": validator().schema["$defs"], **validator().schema["$defs"][name]}  # type: ignore[index]
        errors = [
            f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in Draft202012Validator(part).iter_errors(value)
        ]
        assert errors == [], line[:2000]
        assert validator().is_valid(value)
        out.append(value)
    return out
