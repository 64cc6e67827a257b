"""A Jupyter notebook as text."""

from __future__ import annotations

import json
from typing import Any

_MAX_OUTPUT = 2000
"""Characters of one cell's output."""


def cells(data: bytes, share: int) -> str:
    """The cells with their sources and text outputs, `share` characters at most; "" if it is not a notebook."""
    try:
        book = json.loads(data)
        parts = [_cell(n, cell) for n, cell in enumerate(book["cells"], 1)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    text = "\n\n".join(parts) or "(a notebook without cells)"
    if len(text) > share:
        text = text[:share] + "\n… (cut; use bash with python or jq for the rest)"
    return text + "\n\n(edit takes the text of a cell as it stands here)"


def is_notebook(data: bytes) -> bool:
    """Whether the bytes are a notebook's JSON."""
    try:
        return isinstance(json.loads(data)["cells"], list)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _cell(number: int, cell: dict[str, Any]) -> str:
    outputs = [_output(o) for o in cell.get("outputs", [])]
    head = f"[cell {number}: {cell.get('cell_type', 'unknown')}]"
    shown = [f"[output]\n{o}" for o in outputs if o]
    return "\n".join([head, _joined(cell.get("source", "")), *shown])


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        text = f"{output.get('ename')}: {output.get('evalue')}"
    else:
        data = output.get("data", {})
        kinds = ", ".join(k for k in data if k != "text/plain")
        text = _joined(output.get("text") or data.get("text/plain", "")) or (f"({kinds})" if kinds else "")
    return text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}\n… ({len(text):,} characters)"


def _joined(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)
