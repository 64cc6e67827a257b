"""Copies the last answer to the clipboard.

`/copy code` takes the last block of code in it, without its fence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.commands.base import Face
from transcripts.records import Assistant

TAKES = "[code]"
WHILE_BUSY = True

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[^\n]*\n(.*?)^ {0,3}\2[`~]*[ \t]*$", re.M | re.S)


async def run(face: Face, words: str) -> None:
    text = face.answer or _earlier(face)
    if words == "code":
        text = last_code(text)
    if not text:
        face.say("There is no code in the last answer." if words else "There is no answer yet.", "warn")
    elif face.copy(text):
        face.say(f"Copied: {len(text):,} characters.", "ok")
    else:
        face.say("There is no clipboard here (wl-copy, xclip, pbcopy, or a terminal that knows OSC 52).", "error")


def _earlier(face: Face) -> str:
    """The last answer of a session that was resumed: nothing has come in since."""
    said = (e.record for e in reversed(face.session.engine.history.messages))
    return next((r.text for r in said if isinstance(r, Assistant) and r.text.strip()), "")


def last_code(text: str) -> str:
    """The last fenced block, without its fence; "" where there is none."""
    blocks = _FENCE.findall(text)
    return blocks[-1][2].rstrip("\n") if blocks else ""


def complete(face: Face, words: str) -> Sequence[str]:
    return [w for w in ("code",) if w.startswith(words)]
