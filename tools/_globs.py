"""File patterns as people write them: ** over folders, * and ? inside a name, [a-c], {ts,tsx}."""

from __future__ import annotations

import re


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Matches whole relative paths with / between their parts. A pattern without / is for a name at any depth;
    one that begins with ./ is not. Raises ValueError for a pattern that cannot be understood."""
    pattern = pattern.strip()
    if pattern.endswith("/"):
        pattern += "**"
    pattern = pattern.removeprefix("./") if "/" in pattern else f"**/{pattern}"
    try:
        return re.compile(_translate(pattern) + r"\Z", re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} cannot be understood: {error}") from None


def _translate(pattern: str) -> str:
    out: list[str] = []
    at, depth = 0, 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] in "/{,"):
            out.append("(?:[^/]+/)*")
            at += 3
            continue
        if pattern.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "[":
            end = pattern.find("]", at + 2)
            if end > 0:
                out.append(_set(pattern[at + 1 : end]))
                at = end + 1
                continue
        piece, depth = _single(char, depth, pattern[at + 1 : at + 2])
        out.append(piece)
        at += 2 if char == "\\" and at + 1 < len(pattern) else 1
    return "".join(out) + ")" * depth


def _single(char: str, depth: int, after: str) -> tuple[str, int]:
    """The regular expression of one character, and how many braces are open behind it."""
    if char == "*":
        return "[^/]*", depth
    if char == "?":
        return "[^/]", depth
    if char == "{":
        return "(?:", depth + 1
    if char == "}" and depth:
        return ")", depth - 1
    if char == "," and depth:
        return "|", depth
    return re.escape(after if char == "\\" and after else char), depth


def _set(inside: str) -> str:
    negated = inside[:1] in "!^"
    body = inside[1:] if negated else inside
    body = body.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"(?!/)[{'^' if negated else ''}{body}]"
