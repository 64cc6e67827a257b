"""A change looked at hunk by hunk: take it, leave it, or write it yourself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from rich.text import Text

from agent.clean import one_line
from agent.permissions import Approval, Verdict
from agent.review import Choice, Hunk, concluded, edited, hunks_of
from agent.terminal import blocks, diff, outside
from agent.terminal.deck import Deck
from agent.terminal.dialogs import Option, Picker
from agent.terminal.fragments import Fragments
from agent.terminal.paper import Paper

TAKE, LEAVE, EDIT, ALL, NONE = "take", "leave", "edit", "all", "none"

_OPTIONS = (
    Option(TAKE, "Take this hunk", "y"),
    Option(LEAVE, "Leave it out", "n"),
    Option(EDIT, "Edit it first", "e"),
    Option(ALL, "Take this one and all that follow", "a"),
    Option(NONE, "Leave out this one and all that follow", "d"),
)


async def review(
    deck: Deck, approval: Approval, env: Mapping[str, str], full: Callable[[Hunk], None]
) -> Verdict | None:
    """The person's verdict on a change, hunk by hunk; None where they left the review. `full` shows a hunk whole."""
    assert approval.ctx is not None
    hunks = hunks_of(approval.contents, approval.ctx)
    choices: list[Choice] = []
    rest = ""
    for number, hunk in enumerate(hunks, 1):
        answer = rest or await deck.pick(
            lambda n=number, h=hunk: _question(h, n, len(hunks), lambda: deck.screen.paper, full), called=True
        )
        if answer is None:
            return None
        rest = {ALL: TAKE, NONE: LEAVE}.get(answer, rest)
        choices.append(await _chosen(deck, hunk, rest or answer, env))
    return await _verdict(deck, approval, choices)


async def _chosen(deck: Deck, hunk: Hunk, answer: str, env: Mapping[str, str]) -> Choice:
    if answer == LEAVE:
        return Choice(hunk, None)
    if answer == TAKE:
        return Choice(hunk, hunk.new)
    text = b"".join(hunk.new).decode("utf-8", "replace")

    async def edit() -> str:
        return await asyncio.to_thread(outside.edit, text, env)

    return edited(hunk, await deck.screen.away(edit))


async def _verdict(deck: Deck, approval: Approval, choices: list[Choice]) -> Verdict:
    assert approval.ctx is not None
    left_out = [c for c in choices if c.new is None]
    if not left_out and not any(c.edited for c in choices):
        return Verdict(True)
    why = await deck.fill("Why? (for the model, may be empty) › ", escape="no word") if left_out else ""
    reason = (why or "").strip()
    screen = deck.screen
    if reason:
        screen.print(blocks.user(reason, screen.theme, screen.theme.sign("↳ ", "> ")))
    if len(left_out) == len(choices):
        return Verdict(False, message=reason)
    changed = sum(c.edited for c in choices)
    words = [f"{len(left_out)} left out"] if left_out else []
    words += [f"{changed} edited by you"] if changed else []
    hunks = "1 hunk" if len(choices) == 1 else f"{len(choices)} hunks"
    screen.print(blocks.note(f"Of {hunks} {', '.join(words)}.", "info", screen.theme))
    return Verdict(True, review=concluded(approval.contents, choices, reason, approval.ctx))


def _question(hunk: Hunk, number: int, count: int, paper: Callable[[], Paper], full: Callable[[Hunk], None]) -> Picker:
    def head(width: int, height: int) -> Fragments:
        lines = [line for text in diff.render(hunk.text) for line in paper().lines(text, width)]
        room = max(1, height)
        if len(lines) > room:
            more = Text(f"… {len(lines) - room + 1} more lines (Ctrl-E shows all)", style="aside")
            lines = [*lines[: room - 1], *paper().lines(more, width)]
        return [*paper().fragments(lines), ("", "\n")]

    return Picker(
        f"Hunk {number} of {count} in {one_line(hunk.path.name, 60)}",
        _OPTIONS,
        head=head,
        full=lambda: full(hunk),
        escape="back",
    )
