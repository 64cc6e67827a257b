"""A face without a terminal: what a command shows, as a list, for tests of the commands themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent.session import Session
from runtime.events import Event


class PlainFace:
    """Collects what is shown in `lines`; answers questions with the next of `answers`."""

    def __init__(self, session: Session, answers: Sequence[Any] = ()) -> None:
        self.session, self.settings = session, session.settings
        self.lines: list[str] = []
        self.events: list[Event] = []
        self.answers = list(answers)
        self.answer = ""
        self.keys: Sequence[tuple[str, str, str]] = ()

    def say(self, text: str, role: str = "info") -> None:
        self.lines.append(text if role == "info" else f"{role}: {text}")

    markdown = diff = put = say

    def table(self, rows: Sequence[Sequence[str]], head: Sequence[str] = (), title: str = "") -> None:
        self.lines += [" | ".join(row) for row in ([head] if head else []) + list(rows)]

    def gauge(self, parts: Sequence[tuple[str, int]], whole: int) -> None:
        self.lines += [f"{label}: {tokens}" for label, tokens in parts]

    async def choose(self, title: str, choices: Sequence[Any], *, search: bool = False) -> Any | None:
        return self.answers.pop(0)

    async def ask(self, label: str, text: str = "") -> str | None:
        return self.answers.pop(0)

    async def page(self, title: str, text: str) -> None:
        self.lines.append(text)

    async def send(self, text: str, shown: str = "") -> None:
        await self.follow(self.session.send(text))

    async def follow(self, events: AsyncIterator[Event]) -> None:
        self.events += [event async for event in events]
