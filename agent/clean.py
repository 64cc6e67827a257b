"""What a terminal may be shown of words that came from elsewhere: letters, never orders.

A tool's output, a model's answer and a pasted text can hold escape sequences that set the clipboard, the title or the
cursor. Everything that is printed goes through here.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # the short ones
)
"""Whole sequences. One that opens a string and never closes it loses only its opening: it must not hide text."""

_LINE_ENDS = re.compile("\r\n|[\u2028\u2029]")

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What is left of controls, the marks that turn the reading direction round, and halves of characters."""


def plain(text: str) -> str:
    """The text as letters, newlines and tabs. Of a line that overwrites itself (progress bars) the last state stays."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", _LINE_ENDS.sub("\n", text))
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROL.sub("", text)


def pasted(text: str) -> str:
    """A pasted text as it goes into the input: every kind of line end is a newline, no controls."""
    return _CONTROL.sub("", _SEQUENCE.sub("", _LINE_ENDS.sub("\n", text).replace("\r", "\n")))


def one_line(text: str, width: int = 200) -> str:
    """The text on one line of at most `width` characters."""
    words = " ".join(plain(text[: width * 8]).split())
    return words if len(words) <= width else words[: max(0, width - 1)] + "…"


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
