"""ask_user: a question to the person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from tools.base import ToolContext, ToolFailure, tool

ANSWERED = "The person answered: "
"""How the result begins that has an answer."""


@tool(effect="read")
async def ask_user(
    ctx: ToolContext,
    question: Annotated[str, "One question"],
    choices: Annotated[Sequence[str], "Answers to choose from; another one can always be typed"] = (),
) -> str:
    """Asks the person and waits. Only for what you cannot find out and must not guess."""
    if not question.strip():
        raise ToolFailure("The question is empty.")
    if ctx.ask is None:
        raise ToolFailure("Nobody is there to answer. Decide yourself, and say at the end what you assumed.")
    answer = await ctx.ask(question.strip(), [c.strip() for c in choices if c.strip()])
    return f"{ANSWERED}{answer}" if answer.strip() else "The person gave no answer; decide yourself."


TOOL = ask_user
