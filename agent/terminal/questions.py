"""Questions of the session to the person: may this run, and what the model wants to know."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from agent.clean import one_line
from agent.permissions import Approval, Verdict
from agent.review import Hunk
from agent.terminal import permission
from agent.terminal.dialogs import Option, Picker
from agent.terminal.review import review
from agent.terminal.talk import Talk, rang


class Questions:
    """Asks on the deck of a talk. While one question is open, others wait."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._deck = talk.deck

    async def approve(self, approval: Approval) -> Verdict:
        """Whether a call may run. Esc says no and stops the turn."""

        def full() -> None:
            self._talk.beside(self._deck.page([(approval.title, approval.preview or approval.title)]))

        while True:
            self._ring(f"refold asks: {one_line(approval.title, 80)}")
            answer = await self._deck.pick(lambda: permission.question(approval, lambda: self._deck.screen.paper, full))
            if isinstance(answer, Verdict):
                return self._said(approval, answer)
            if answer == permission.REVIEW:
                verdict = await review(self._deck, approval, os.environ, self._full_hunk)
                if verdict is not None:
                    return verdict
                continue
            if answer is None:
                self._talk.view.not_run(approval.title)
                self._talk.stop()
                await asyncio.sleep(0)  # where the stop takes hold: nothing more of the turn runs
                return permission.NO
            words = await self._deck.fill("No. Tell it › ", escape="back")
            if words is not None:
                self._talk.view.told(words.strip())
                return Verdict(False, message=words.strip())

    def _full_hunk(self, hunk: Hunk) -> None:
        self._talk.beside(self._deck.page([(hunk.path.name, hunk.text)]))

    def _said(self, approval: Approval, verdict: Verdict) -> Verdict:
        if verdict.allow and verdict.scope != "once":
            rules = one_line(" and ".join(approval.judgement.rule.splitlines()), 160)
            where = "everywhere" if verdict.scope == "user" else f"in this {verdict.scope}"
            self._talk.view.note(f"Allowed from now on {where}: {rules}", "ok")
        return verdict

    async def answer(self, question: str, choices: Sequence[str]) -> str:
        """What the model wants to know."""
        self._ring(f"refold asks: {one_line(question, 80)}")
        view = self._talk.view
        view.asked(question)
        chosen: Any = ""
        if choices:
            options = [*(Option(c, c) for c in choices), Option("", "something else")]
            chosen = await self._deck.pick(lambda: Picker("Your answer", options, escape="no answer"))
        if chosen == "":
            chosen = await self._deck.fill("Your answer › ", escape="no answer", called=bool(choices))
        view.told(str(chosen or "").strip() or "(no answer)")
        return str(chosen or "")

    def _ring(self, words: str) -> None:
        if rang(self._deck.activity.since):
            self._deck.screen.notify(words)
