"""Pages: a long text by lines, as recall shows it."""

from __future__ import annotations

PIECE = 1_000
"""Characters from which on a line is paged in pieces, so that the middle of one without end can be had. Not more than
the least that a page may show."""


def page(text: str, start: int, count: int, share: int) -> str:
    """Lines `start` to `start + count` (from 1) of a text, at most `share` characters, with the way to go on."""
    whole = text.split("\n")
    lines = [line[n : n + PIECE] for line in whole for n in range(0, max(1, len(line)), PIECE)]
    first = max(0, start - 1)
    wanted = lines[first : first + count] if count > 0 else lines[first:]
    out: list[str] = []
    size = 0
    for line in wanted:
        if out and size + len(line) + 1 > share:
            break
        out.append(line)
        size += len(line) + 1
    end = first + len(out)
    pieces = f"; lines are in pieces of {PIECE:,} characters" if len(lines) > len(whole) else ""
    if not out:
        return f"[it ends with line {len(lines):,}{pieces}]"
    more = ""
    if end < len(lines):
        more = f"\n[lines {first + 1} to {end} of {len(lines)}; go on with start={end + 1}{pieces}]"
    return "\n".join(out) + more
