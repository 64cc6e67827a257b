"""An earlier conversation, drawn again when it is resumed: what the person and the model said, calls as one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from agent.terminal import blocks
from agent.terminal.clean import one_line
from agent.terminal.markdown import Page
from agent.terminal.screen import Screen
from agent.terminal.words import facts
from transcripts.log import Entry
from transcripts.records import Assistant, ToolCall, ToolResult, User

Keep = Callable[[str, ToolResult], None]

SHOWN = 60
"""Messages that are drawn again; the earlier ones are counted."""

_SAID = re.compile(r"\[The person did not allow this call\. They said: (.*)\]", re.S)
"""The result of a call that was denied with a word: the word was the person's."""

UNFINISHED = "no result: refold ended before this was over"


def replay(screen: Screen, entries: Sequence[Entry], title_of: Callable[[ToolCall], str], keep: Keep) -> None:
    """Prints the end of a conversation. What refold itself told the model is left out. `keep(title, result)` gets each
    output, for Ctrl-O."""
    told = [e for e in entries if e.kind != "user" or e.record.source != "harness"]
    hidden = len(told) - SHOWN if len(told) > SHOWN + 1 else 0
    if hidden:
        screen.print(
            blocks.note(
                f"{hidden:,} earlier messages are not drawn again; all of them are there.", "info", screen.theme
            )
        )
    calls: dict[str, ToolCall] = {}
    for entry in told[hidden:]:
        _message(screen, entry.record, calls, title_of, keep)
    for call in calls.values():
        head = blocks.heading(one_line(title_of(call), 160), "unknown", screen.theme)
        screen.print(blocks.hanging(Text.assemble(head, (f"  {UNFINISHED}", "warn"))))


def _message(
    screen: Screen, record: Any, calls: dict[str, ToolCall], title_of: Callable[[ToolCall], str],
    keep: Keep,
) -> None:  # fmt: skip
    theme = screen.theme
    match record:
        case User(text, source):
            screen.print(blocks.user(_shortened(text), theme, "! " if source == "shell" else ""))
        case Assistant(text, made):
            calls.update({c.id: c for c in made})
            if text.strip():
                screen.print(Page(text, theme), prose=True)
        case ToolResult(call_id):
            call = calls.pop(call_id, None)
            title = title_of(call) if call else record.name
            head = blocks.heading(one_line(title, 160), record.status, theme)
            if record.status == "denied" and (said := _SAID.fullmatch(record.text)):
                screen.print(blocks.user(_shortened(said[1]), theme, theme.sign("↳ ", "> ")))
            screen.print(blocks.hanging(Text.assemble(head, (f"  {facts(record)}", "dim"))), short=True)
            keep(one_line(title, 160), record)
        case _:
            pass


def _shortened(text: str) -> str:
    lines = text.split("\n")
    return text if len(lines) <= 12 else "\n".join([*lines[:10], f"… {len(lines) - 10} more lines"])
