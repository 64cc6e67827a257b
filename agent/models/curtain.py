"""Keeps a call that is being written as text off the screen until it is clear whether it is one."""

from __future__ import annotations

import re

_MARKERS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function=", "<|tool_call", "<｜tool")
_BEGINS = ("```json", "```tool", "```\n{", "{", "[{", *_MARKERS)
_LINES = ("```", "{", "done", "<tool_call>")
_MIDDLE = re.compile("|".join(map(re.escape, _MARKERS)))
_LOOSE = re.compile(r"^[ \t]*(?:```|\{|done\b|<tool_call>)", re.MULTILINE | re.IGNORECASE)
_KEY = re.compile(r'"(?:name|tool|tool_name|function|action|type)"|```\w*\n?\s*$|\[TOOL|<', re.IGNORECASE)
ENOUGH = 200
"""Characters of a JSON answer within which a call names itself; without a name by then it is not one."""


class Curtain:
    """Passes text on, and holds back what may be a call. `loose` as in text_calls: calls may stand after prose."""

    def __init__(self, loose: bool) -> None:
        self._loose = loose
        self._open = ""
        self.held = ""
        self._down = False
        self._begun = False

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if self._down:
            self.held += text
            return self._release()
        self._open += text
        if not self._begun and self._maybe_begin():
            return ""
        found = (_LOOSE if self._loose else _MIDDLE).search(self._open)
        if found:
            shown, self.held, self._open, self._down = (
                self._open[: found.start()],
                self._open[found.start() :],
                "",
                True,
            )
            return shown
        keep = self._keep()
        shown, self._open = self._open[: len(self._open) - keep], self._open[len(self._open) - keep :]
        return shown

    def close(self) -> str:
        """All that was held back: to be shown where it turned out not to be a call."""
        rest, self._open, self.held = self._open + self.held, "", ""
        return rest

    def _maybe_begin(self) -> bool:
        start = self._open.lstrip()
        if any(start.startswith(b) for b in _BEGINS):
            self._begun = self._down = True
            self.held, self._open = self._open, ""
            return True
        self._begun = bool(start) and not any(b.startswith(start) for b in _BEGINS)
        return not self._begun

    def _keep(self) -> int:
        """How many characters at the end could still become the begin of a call."""
        if self._loose:
            line = self._open[self._open.rfind("\n") + 1 :]
            return len(line) if any(b.startswith(line.strip().lower()) for b in _LINES) else 0
        at = max(self._open.rfind("<"), self._open.rfind("["))
        tail = self._open[at:] if at >= 0 else "-"
        return len(tail) if any(m.startswith(tail) for m in _MARKERS) else 0

    def _release(self) -> str:
        if self._loose or len(self.held) < ENOUGH or _KEY.search(self.held[:ENOUGH]):
            return ""
        shown, self.held, self._down = self.held, "", False
        return shown
