"""Front matter: the few `key: value` lines at the head of a Markdown file, between two lines of three dashes.

Only what such heads are made of is understood, not all of YAML: one value a line, in quotes or not; lines that are
indented below a key belong to its value (folded text, lists), joined by blanks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field


class FrontError(ValueError):
    """A head that cannot be read; the message says why, in a few words."""


@dataclass(frozen=True)
class Page:
    """A Markdown file: its head as key (lower case) -> value, and the text below it."""

    head: dict[str, str] = field(default_factory=dict)
    body: str = ""


def page_of(data: bytes) -> Page:
    """The head and the body of a file. Raises FrontError where it is no text or the head has no end."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise FrontError("it is not UTF-8 text") from None
    if "\0" in text:
        raise FrontError("it is not text")
    if not text.startswith("---\n"):
        return Page({}, text.strip())
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if not end:
        raise FrontError("its front matter has no end (a line with --- only)")
    return Page(_head(lines[1:end]), "\n".join(lines[end + 1 :]).strip())


def _head(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t" or line.startswith("- "):
            if key:
                found[key].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise FrontError(f"its front matter has a line that is no `key: value`: {line.strip()[:60]}")
        key = name.strip().lower()
        found[key] = [value.strip()]
    return {key: _value(parts) for key, parts in found.items()}


def _value(parts: list[str]) -> str:
    first, *more = parts
    if first[:1] in "|>":  # the mark of a text on the lines below
        first = ""
    text = " ".join(p for p in (first, *more) if p)
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
