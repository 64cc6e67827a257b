"""Writes the session to a file: Markdown, a page (html), json (can be imported again) or atif.

The end of the file's name says which; alone, it is Markdown in this folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from agent.commands.base import Face
from agent.export.forms import FORMATS
from agent.faults import reason

TAKES = "[file.md|.html|.json|.atif]"
WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    session = face.session
    file = session.cwd / Path(os.path.expanduser(words or f"refold-{session.name or session.id}.md"))
    form = file.suffix.removeprefix(".") or "md"
    if form not in FORMATS:
        face.say(f"There is no format {form!r}; there are {', '.join(FORMATS)}.", "error")
        return
    try:
        text = await asyncio.to_thread(FORMATS[form], session.log)
        file.write_text(text, encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        face.say(f"{session.toolbox.ctx.short(file)} could not be written: {reason(error, file)}", "error")
        return
    face.say(f"Written: {session.toolbox.ctx.short(file)} ({len(text):,} characters).", "ok")


def complete(face: Face, words: str) -> Sequence[str]:
    """The name with each ending."""
    stem = words.partition(".")[0] or f"refold-{face.session.name or face.session.id}"
    return [f"{stem}.{form}" for form in FORMATS if f"{stem}.{form}".startswith(words)]
