"""How the demo prints: plain lines, a little weight where the terminal has it."""

from __future__ import annotations

import os
import sys
from typing import Any

SHOWN = 3
"""Lines of a tool's result that are printed."""


class Show:
    """Prints the demo to stdout."""

    def __init__(self) -> None:
        self.colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def heading(self, text: str) -> None:
        """A line that opens a part."""
        print(f"\n{self._as('1', text)}", flush=True)

    def line(self, text: str) -> None:
        """A plain line."""
        print(text, flush=True)

    def fact(self, name: str, text: str) -> None:
        """A name and what is to be known about it."""
        print(f"  {name + ':':<18} {text}", flush=True)

    def event(self, event: dict[str, Any]) -> None:
        """One line of stream-json as a person would tell it."""
        match event:
            case {"type": "assistant", "message": {"content": content}}:
                for block in content:
                    self._block(block)
            case {"type": "user", "message": {"content": content}}:
                for block in content:
                    if block["type"] == "tool_result":
                        self._result(block["content"])
            case {"subtype": "compact_boundary"}:
                self.line(self._as("33", f"~ {event['meta']['line']}"))
            case {"subtype": "notice"}:
                self.line(self._as("33", event["meta"]["text"]))

    def _block(self, block: dict[str, Any]) -> None:
        if block["type"] == "text":
            self.line(f"refold: {block['text']}")
        elif block["type"] == "tool_use":
            words = " ".join(str(v) for v in block["input"].values() if isinstance(v, (str, int)))
            self.line(self._as("36", f"  > {block['name']} {' '.join(words.split())[:90]}".rstrip()))

    def _result(self, text: str) -> None:
        lines = text.strip("\n").rstrip().splitlines()
        for line in lines[:SHOWN]:
            self.line(self._as("2", f"    {line[:110]}"))
        if len(lines) > SHOWN:
            self.line(self._as("2", f"    ... {len(lines) - SHOWN} more lines"))

    def _as(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours else text
