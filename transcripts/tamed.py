"""Values of a log that somebody acts on have a shape; one of another shape, as a later version may write it, must not
act. The file keeps it as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from transcripts.records import Assistant, Checkpoint, Note, Record

_FACTS = frozenset(
    {"state", "opened", "task", "task_end", "snapshot", "parents_snapshot", "system", "hook", "origin"}
)  # fmt: skip
"""Keys of notes whose value is an object."""


def tamed(record: Record) -> Record:
    """The record with nothing in the place of what cannot be acted on; the same one where all is well."""
    match record:
        case Note(key, value):
            fit = _noted(key, value)
            return record if fit is value else replace(record, value=fit)
        case Assistant(extra=extra) if not isinstance(extra.get("wire", {}), dict):
            return replace(record, extra={k: v for k, v in extra.items() if k != "wire"})
        case Checkpoint():
            return replace(
                record,
                hidden={k: why for k, why in _words(record.hidden).items() if _is_span(k)},
                texts=_words(record.texts),
                args=_words(record.args),
                without_pictures=tuple(n for n in record.without_pictures if type(n) is int),
                strategies=tuple(name for name in record.strategies if isinstance(name, str)),
            )
    return record


def _words(values: Mapping[str, Any]) -> dict[str, str]:
    return {k: text for k, text in values.items() if isinstance(text, str)}


def _is_span(key: str) -> bool:
    found = re.fullmatch(r"([0-9]{1,15})-([0-9]{1,15})", key)
    return found is not None and int(found[1]) <= int(found[2])


def _noted(key: str, value: Any) -> Any:
    if key in _FACTS:
        return value if isinstance(value, dict) else {}
    match key:
        case "pins":
            return value if _all(value, int) else []
        case "images_dropped":
            return value if _all(value, str) else []
        case "window_cap":
            return value if type(value) is int and 0 < value < 1 << 40 else 0
        case "name" | "model" | "mode":
            return value if isinstance(value, str) else ""
    return value


def _all(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(v) is kind for v in value)
