"""At the door: an output too large for its share of the window is never shown whole. The full text stays in a blob;
head, tail, lines that look like errors and the way to get the rest are shown."""

from __future__ import annotations

import re

_ERRORS = re.compile(r"(?i)\b(error|failed|failure|exception|traceback|fatal|panic|assert\w*|warning)\b")
_ERROR_LINES, _ERROR_WIDTH = 12, 300


def too_large(text: str, share: int) -> bool:
    """Whether a text is over its share (characters)."""
    return len(text) > share


def shown(text: str, share: int, blob: str, keep: str = "both") -> str:
    """At most about `share` characters of a text: `keep` says which end matters most (head, tail, both)."""
    budget = max(200, share - 400)
    part = {"head": 0.8, "tail": 0.2}.get(keep, 0.5)
    errors = _error_lines(text, budget // 4)
    budget -= len(errors)
    head, tail = text[: int(budget * part)], text[len(text) - int(budget * (1 - part)) :]
    left = len(text) - len(head) - len(tail)
    way = f'recall(id="{blob}", start=line, count=lines)'
    note = f"[... {left:,} of {len(text):,} characters are kept, not shown: {way} ...]"
    return "\n".join(part for part in (head, errors, note, tail) if part)


def _error_lines(text: str, most: int) -> str:
    """Lines from the middle that look like errors, with their numbers, for the middle is what gets lost."""
    found: list[str] = []
    size = 0
    for number, line in enumerate(text[:4_000_000].splitlines(), 1):
        if _ERRORS.search(line[:2_000]):
            row = f"{number}: {line[:_ERROR_WIDTH]}"
            size += len(row) + 1
            if size > most or len(found) == _ERROR_LINES:
                break
            found.append(row)
    return "\n".join(["[lines that look like errors]", *found]) if found else ""
