"""What a shell command would do, found out without running it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One simple command of a line: its words, and why it may not run unasked ("" where it only reads)."""

    text: str
    words: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Analysis:
    """Every simple command of a line; `error` where the line could not be understood whole."""

    parts: tuple[Part, ...] = ()
    error: str = ""
    danger: str = ""

    @property
    def safe(self) -> bool:
        """True where every part is known to read only."""
        return not self.error and bool(self.parts) and all(not p.why for p in self.parts)


def analyse(command: str) -> Analysis:
    """The parts of a command line. Never raises; what cannot be understood has an `error`."""
    words = tuple(command.split())
    plain = all(c.isalnum() or c in " _-./" for c in command) and bool(words)
    if not plain:
        return Analysis(error="it could not be analysed")
    known = words[0] in ("ls", "pwd", "cat", "head", "wc", "true", "echo") or words in (
        ("git", "status"),
        ("git", "diff"),
    )
    return Analysis((Part(command, words, "" if known else f"{words[0]} is not known to read only"),))
