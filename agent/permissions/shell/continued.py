"""Lines that go on after a backslash: what bash reads is the line without that and without the line break."""

from __future__ import annotations

import re

_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_ANSI = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_UNSURE = ("<<", "$(", "`", "${")
"""What has quotes and comments of its own, in which a backslash may stand for itself."""


def joined(text: str) -> str:
    """The text without its continuations. In single quotes and comments a backslash is none of them."""
    if "\\\n" not in text:
        return text
    out: list[str] = []
    at, double = 0, False
    while at < len(text):
        c = text[at]
        end = at + 1
        if c == "\\":
            end = at + 2
        elif c == '"':
            double = not double
        elif c == "'" and not double:
            end = _end_of_quote(text, at, ansi=bool(out) and out[-1] == "$")
        elif c == "#" and not double and (not out or out[-1][-1] in " \t\n;&|()<>"):
            end = (text + "\n").index("\n", at)
        if text[at:end] != "\\\n":
            out.append(text[at:end])
        at = end
    return "".join(out)


def _end_of_quote(text: str, at: int, *, ansi: bool) -> int:
    if ansi:
        found = _ANSI.match(text, at)
        return found.end() if found else len(text)
    return text.find("'", at + 1) + 1 or len(text)


def other_readings(text: str) -> list[str]:
    """Further ways to read a text in which it is not certain which backslashes continue a line."""
    if "\\\n" not in text or not any(sign in text for sign in _UNSURE):
        return []
    return [t for t in dict.fromkeys((text, _CONTINUED.sub(r"\1", text))) if t != joined(text)]
