"""The list below the input: commands after `/`, files after `@`, what a command takes after its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.clean import one_line
from agent.terminal.fragments import Fragments, row

ROWS = 8
"""Suggestions that are seen at once."""

_FILE = re.compile(r"(?:^|(?<=\s))@(\"[^\"\n]*|[^\s\"]*)$")


@dataclass(frozen=True)
class Suggestion:
    """`text` goes into the input from `start` to the cursor; `run` sends the line at once when Enter takes it."""

    text: str
    label: str
    note: str = ""
    start: int = 0
    run: bool = False


@dataclass
class Suggest:
    """What is suggested for the text before the cursor. `commands` and `arguments` answer at once; `files` may answer
    later by calling `offer` with the word it was asked about."""

    commands: Callable[[str], Sequence[tuple[str, str, bool]]]
    arguments: Callable[[str, str], Sequence[str]]
    files: Callable[[str], None]
    items: list[Suggestion] = field(default_factory=list)
    index: int = 0
    closed_for: str = ""
    _word: str = ""
    _start: int = 0

    def update(self, before: str, after: str) -> None:
        """The text before and after the cursor has changed."""
        if before == self.closed_for and before:
            return
        self.closed_for = ""
        mention = _FILE.search(before)
        if mention:
            self._word, self._start = mention[1].strip('"'), mention.start()
            self.files(self._word)
            return
        self._word = ""
        self._show(self._for_command(before) if before.startswith("/") and not after and "\n" not in before else [])

    def offer(self, word: str, paths: Sequence[str]) -> None:
        """Files that match `word`; forgotten where something else was typed since."""
        if word != self._word or (not word and not self._start and self.items and not paths):
            return
        self._show([Suggestion(_mention(p), p, start=self._start) for p in paths])

    def close(self, before: str = "") -> None:
        """Nothing more is suggested until the text changes."""
        self._show([])
        self.closed_for = before
        self._word = "\0"

    def move(self, by: int) -> None:
        self.index = (self.index + by) % len(self.items)

    @property
    def current(self) -> Suggestion | None:
        return self.items[self.index] if self.items else None

    def rows(self, width: int) -> list[Fragments]:
        """The list as rows of fragments."""
        first = max(0, min(self.index - ROWS // 2, len(self.items) - ROWS))
        rows = [self._row(n, s, width) for n, s in enumerate(self.items[first : first + ROWS], first)]
        more = [row("class:dim", f"  {self.index + 1} of {len(self.items)}")] if len(self.items) > ROWS else []
        return [*rows, *more]

    def _row(self, n: int, item: Suggestion, width: int) -> Fragments:
        here = n == self.index
        wide = min(max(len(i.label) for i in self.items), max(8, width - 12), 60)
        label = one_line(item.label, wide)
        note = one_line(item.note, max(0, width - wide - 5)) if width - wide > 16 else ""
        shown = f"{label:<{wide}}" if note else label
        out = row("class:select" if here else "", f"{'›' if here else ' '} {shown}")
        return [*out, ("class:dim", f"  {note}")] if note else out

    def _show(self, items: list[Suggestion]) -> None:
        self.items, self.index = items, 0

    def _for_command(self, before: str) -> list[Suggestion]:
        name, space, argument = before[1:].partition(" ")
        if space:
            start = len(name) + 2
            return [Suggestion(a, a, start=start, run=True) for a in self.arguments(name, argument.strip())]
        return [
            Suggestion(f"/{found} " if takes else f"/{found}", f"/{found}", note, 0, bool(name))
            for found, note, takes in self.commands(name)
        ]


def _mention(path: str) -> str:
    return f'@"{path}" ' if " " in path else f"@{path} "
