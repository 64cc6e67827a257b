"""The usual design, to measure against: everything before the last ten rounds becomes one summary, written anew from
the first message each time; it begins when characters / 3 say that 80 % of the window are full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.parts.provider import PrefixCache

RETAINED_ROUNDS = 10
THRESHOLD = 0.8
CHARS_PER_TOKEN = 3
RESULT_CHARS = 500
"""Characters of a tool result that the request for a summary shows; calls are not shown in it."""

PROMPT = "Summarise this conversation: goals, decisions, state of the files, errors, what is left to do.\n\n"


@dataclass
class RollingSummary:
    """A conversation kept that way. `patient`: summarises only when that would cover more than the last summary."""

    system: str
    tools: list[Any]
    cache: PrefixCache
    write: Callable[[str], str]
    patient: bool = False
    messages: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    retained_from: int = 0

    def view(self) -> list[dict[str, Any]]:
        """What a request shows after system prompt and tools."""
        head = [{"role": "system", "content": f"[Previous summary]\n{self.summary}"}] if self.retained_from else []
        return [*head, *self.messages[self.retained_from :]]

    def ask(self) -> None:
        """One request for a step, after a summary where one is due."""
        if self._chars() / CHARS_PER_TOKEN >= THRESHOLD * self.cache.window:
            self._summarise()
        self.cache.charge([{"role": "system", "content": self.system}, self.tools, *self.view()], summary=False)

    def _chars(self) -> int:
        shown = sum(len(str(m.get("content") or "")) + len(str(m.get("tool_calls") or "")) for m in self.view())
        return shown + len(self.system) + len(str(self.tools))

    def _summarise(self) -> None:
        rounds = [n for n, m in enumerate(self.messages) if m["role"] == "user"]
        if len(rounds) <= RETAINED_ROUNDS:
            return
        start = rounds[-RETAINED_ROUNDS]
        if self.patient and start <= self.retained_from:
            return
        text = "\n".join(_told(m) for m in self.messages[:start])
        self.cache.charge([{"role": "user", "content": PROMPT + text}], summary=True)
        self.summary, self.retained_from = self.write(text), start


def _told(message: dict[str, Any]) -> str:
    content = str(message.get("content") or "")
    return f"[{message['role']}]: {content[:RESULT_CHARS] if message['role'] == 'tool' else content}"
