"""Terminal output as plain text for the model."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
    "|\x9b[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"  # titles, clipboard, DCS
    "|\x1b[ -/]*[0-~]?"
    "|[\x80-\x9f]"
)
_OVERSTRUCK = re.compile("[^\n\x08]\x08")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def clean(text: str) -> str:
    """Without escape sequences and control characters; a line that was drawn over again shows its last state."""
    if "\x1b" in text or not text.isascii():
        text = _ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    while "\x08" in text:
        shorter = _OVERSTRUCK.sub("", text)
        if shorter == text:
            break
        text = shorter
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    """What a terminal shows of a line with carriage returns: each part written over the one before."""
    if "\r" not in line:
        return line
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown
