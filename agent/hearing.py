"""Taking what the person says: it is on the disk before anything slow begins, so that no crash can lose it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.extend.hooking import Hooks
from transcripts.log import Entry
from transcripts.records import User


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
