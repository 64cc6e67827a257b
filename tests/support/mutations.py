"""Operations on the raw bytes and lines of a file: the ways in which transcripts were found damaged in the field.

They take the arguments of the case files beside the checkout (`shared/cases/recovery.jsonl`), so that those can be run
where they are, and they are used by cases of our own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Op = Mapping[str, Any]


def mutate(raw: bytes, ops: Sequence[Op]) -> bytes:
    """The file after all operations."""
    for op in ops:
        raw = _OPS[op["op"]](raw, op)
    return raw


def _on_lines(change: Callable[[list[bytes], Op], None]) -> Callable[[bytes, Op], bytes]:
    def run(raw: bytes, op: Op) -> bytes:
        lines = raw.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        change(lines, op)
        return b"".join(line + b"\n" for line in lines)

    return run


def _where(lines: list[bytes], op: Op) -> int:
    n = op.get("line", -1)
    return n if n >= 0 else len(lines) + n


def _cut(lines: list[bytes], op: Op) -> None:
    n = _where(lines, op)
    lines[n] = lines[n][: max(1, int(len(lines[n]) * op.get("keep", 0.5)))]


def _cut_and_join(lines: list[bytes], op: Op) -> None:
    n = _where(lines, op)
    _cut(lines, op)
    lines[n : n + 2] = [lines[n] + lines[n + 1]]


def _put(lines: list[bytes], line: bytes, op: Op) -> None:
    n = op.get("line", -1)
    lines.insert(n if n >= 0 else len(lines), line)


def _nul_behind(lines: list[bytes], op: Op) -> None:
    lines[_where(lines, op)] += b"\0" * op["len"]


def _nul_before(lines: list[bytes], op: Op) -> None:
    n = _where(lines, op)
    lines[n] = b"\0" * op["len"] + lines[n]


def _twice(lines: list[bytes], op: Op) -> None:
    n = op.get("line", -1)
    lines.insert(n + 1 if n >= 0 else len(lines), lines[n])


def _drop(lines: list[bytes], op: Op) -> None:
    del lines[_where(lines, op)]


def _swap(lines: list[bytes], op: Op) -> None:
    a, b = op["a"], op["b"]
    lines[a], lines[b] = lines[b], lines[a]


def _replace(raw: bytes, op: Op) -> bytes:
    return raw.replace(base64.b64decode(op["old"]), base64.b64decode(op["new"]), op.get("count", -1))


def _pad(raw: bytes, op: Op) -> bytes:
    found = op["find"].encode()
    return raw.replace(found, found + b"x" * (op["mb"] << 20), 1)


def _blank_lines(raw: bytes, op: Op) -> bytes:
    lines = [line for line in raw.split(b"\n") if line]
    return b"\n\n".join(lines) + b"\n\n"


_OPS: dict[str, Callable[[bytes, Op], bytes]] = {
    "truncate_tail": lambda raw, op: raw[: -op["bytes"]],
    "no_final_newline": lambda raw, op: raw.rstrip(b"\n"),
    "cut_line": _on_lines(_cut),
    "cut_line_join_next": _on_lines(_cut_and_join),
    "nul_line": _on_lines(lambda lines, op: _put(lines, b"\0" * op["len"], op)),
    "nul_after": _on_lines(_nul_behind),
    "nul_prefix": _on_lines(_nul_before),
    "all_nul": lambda raw, op: b"\0" * len(raw),
    "append_nul": lambda raw, op: raw + b"\0" * op["len"],
    "empty": lambda raw, op: b"",
    "whitespace": lambda raw, op: b"\n \n\n",
    "blank_lines": _blank_lines,
    "insert_raw": _on_lines(lambda lines, op: _put(lines, base64.b64decode(op["b64"]), op)),
    "dup_line": _on_lines(_twice),
    "drop_line": _on_lines(_drop),
    "swap": _on_lines(_swap),
    "replace_bytes": _replace,
    "bom": lambda raw, op: b"\xef\xbb\xbf" + raw,
    "crlf": lambda raw, op: raw.replace(b"\n", b"\r\n"),
    "pad_string": _pad,
    "merge_two_files": lambda raw, op: raw + raw,
}
