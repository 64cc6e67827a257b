"""Unified diffs for the person, quick also where a large file has a small change."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

Opcode = tuple[str, int, int, int, int]

_TOO_MANY = 3_000
"""Changed lines beyond which they are shown as one block: matching them up would take seconds."""


def unified(name: str, before: str, after: str, context: int = 3) -> str:
    """The difference with `context` lines around; "" where nothing differs. Lines end at \\n only."""
    old, new = _lines(before), _lines(after)
    codes = _opcodes(old, new)
    groups = [g for g in _grouped(codes, context) if any(tag != "equal" for tag, *_ in g)]
    if not groups:
        return ""
    out = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for group in groups:
        out += _hunk(group, old, new)
    return "".join(out)


def counts(diff: str) -> tuple[int, int]:
    """Lines (added, removed) in a unified diff of one file."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """How `old` becomes `new`, as difflib names it; equal ends are found first, so it is quick."""
    return _opcodes(old, new)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    head = 0
    limit = min(len(old), len(new))
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    codes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    codes += [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in _middle(a, b)]
    if tail:
        codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes


def _middle(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    if not a and not b:
        return []
    if not a or not b or len(a) + len(b) > _TOO_MANY:
        return [("insert" if not a else "delete" if not b else "replace", 0, len(a), 0, len(b))]
    return list(difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes())


def _grouped(codes: list[Opcode], n: int) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = []
    group: list[Opcode] = []
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag == "equal":
            first, last = at == 0, at == len(codes) - 1
            if not first and not last and j - i > 2 * n:
                groups.append([*group, (tag, i, i + n, k, k + n)])
                group = [(tag, j - n, j, m - n, m)]
                continue
            if first:
                i, k = max(i, j - n), max(k, m - n)
            elif last:
                j, m = min(j, i + n), min(m, k + n)
        group.append((tag, i, j, k, m))
    return [*groups, group] if group else groups


def _hunk(group: list[Opcode], old: Sequence[str], new: Sequence[str]) -> list[str]:
    i, j, k, m = group[0][1], group[-1][2], group[0][3], group[-1][4]
    out = [f"@@ -{_span(i, j)} +{_span(k, m)} @@\n"]
    for tag, a, b, c, d in group:
        if tag == "equal":
            out += [_line(" ", line) for line in old[a:b]]
            continue
        out += [_line("-", line) for line in old[a:b]]
        out += [_line("+", line) for line in new[c:d]]
    return out


def _span(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
