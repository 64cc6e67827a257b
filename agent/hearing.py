"""Taking what the person says: it is on the disk before anything slow begins, so that no crash can lose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from agent.extend.hooking import Hooks
from transcripts.log import Entry, LogWriteError
from transcripts.records import Note, TurnEnd, User

LINE, LINE_BACK = "line", "line_back"
"""Notes: a line for the running turn, and one that was taken back before the model had it."""


@dataclass(frozen=True)
class Heard:
    """A message that was taken: as it was said, and its entry in the log or why a hook refused it."""

    prompt: User
    entry: Entry | None = None
    refused: str = ""


async def hear(prompt: User, hooks: Hooks | None, write: Callable[[User], Entry]) -> Heard:
    """Takes a message. Only a hook of the person's can keep one out of the log, for it may refuse it for what stands in
    it; so hooks are asked before it is written. Raises LogWriteError."""
    said = prompt
    if hooks and prompt.source == "typed":
        refused, context = await hooks.prompt(prompt.text)
        if refused:
            return Heard(said, refused=refused)
        prompt = replace(prompt, text=f"{prompt.text}\n\n{context}") if context else prompt
    return Heard(said, write(prompt))


class Lines:
    """Lines that were said while a turn runs. They wait for its next step, which may be long in coming, so each is in
    the log until then."""

    def __init__(self, note: Callable[[Note], object]) -> None:
        self._note = note
        self._lines: list[str] = []

    def add(self, text: str) -> None:
        """One more."""
        self._lines.append(text)
        self._write(Note(LINE, text))

    def take_back(self) -> str | None:
        """The newest that was not handed over yet, taken out again."""
        if not self._lines:
            return None
        text = self._lines.pop()
        self._write(Note(LINE_BACK, text))
        return text

    def taken(self) -> list[str]:
        """All that wait, for the model."""
        lines, self._lines = self._lines, []
        return lines

    def _write(self, note: Note) -> None:
        with suppress(LogWriteError):  # the turn that runs will tell
            self._note(note)


def left_lines(entries: Sequence[Entry]) -> list[str]:
    """Lines that were said and never handed over, oldest first: the process ended before that. A turn that was done
    has had all of its lines."""
    said: list[str] = []
    gone: list[str] = []
    for entry in reversed(entries):
        if entry.kind == TurnEnd.kind and entry.record.reason == "done":
            break
        if entry.key == LINE_BACK or (entry.kind == User.kind and entry.record.source == "steered"):
            gone.append(str(entry.record.value if entry.key else entry.record.text))
        elif entry.key == LINE:
            text = str(entry.record.value)
            gone.remove(text) if text in gone else said.insert(0, text)
    return said
