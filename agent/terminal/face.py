"""What commands can do with the chat: print, ask, send, change the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent.commands.base import Choice
from agent.session import Session
from agent.settings import Settings
from agent.terminal import outside
from agent.terminal.dialogs import Option, Picker
from agent.terminal.printing import Printing
from agent.terminal.talk import Talk
from agent.terminal.theme import choose_theme, read_colors
from runtime.events import Event


class ChatFace(Printing):
    """The Face of one chat. `opener` starts a session, `adopt` makes it the one that is talked with."""

    def __init__(
        self,
        talk: Talk,
        settings: Settings,
        env: dict[str, str],
        *,
        opener: Callable[..., Session],
        adopt: Callable[[Session], None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__(talk.deck.screen)
        self._talk = talk
        self._deck = talk.deck
        self._settings = settings
        self._env = env
        self._opener = opener
        self._adopt = adopt
        self._leave = leave

    @property
    def session(self) -> Session:
        return self._talk.session

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def answer(self) -> str:
        return self._talk.view.answer

    @property
    def keys(self) -> Sequence[tuple[str, str, str]]:
        return self._deck.keymap.rows()

    async def choose(self, title: str, choices: Sequence[Choice], *, search: bool = False) -> Any | None:
        letters = [{"Yes": "y", "No": "n"}.get(c.label.partition(",")[0], "") for c in choices]
        keys = letters if all(letters) else [""] * len(choices)
        options = [Option(c.value, c.label, key, c.note) for c, key in zip(choices, keys, strict=True)]
        return await self._deck.pick(lambda: Picker(title, options, search=search), called=True)

    async def ask(self, label: str, text: str = "") -> str | None:
        return await self._deck.fill(label, text)

    async def page(self, title: str, text: str) -> None:
        await self._deck.page([(title, text)])

    async def follow(self, events: AsyncIterator[Event]) -> None:
        await self._talk.follow(events)

    async def send(self, text: str, shown: str = "") -> None:
        await self._talk.turns(text, shown)

    async def open(self, *, resume: str = "", fork: bool = False, name: str = "") -> None:
        old = self._talk.session
        if resume and not fork and resume in (old.id, old.name):
            self.say("That is the session you are in.")
            return
        new = await asyncio.to_thread(self._opener, resume=resume, fork=fork, name=name)
        old.close()
        self._adopt(new)

    def put(self, text: str) -> None:
        self._deck.editor.put(text)

    def copy(self, text: str) -> bool:
        return outside.copy(text, self._env)

    def clear(self) -> None:
        self._deck.screen.clear()

    def set_theme(self, name: str) -> None:
        theme = self._deck.screen.theme
        self._deck.screen.set_theme(
            choose_theme(name, read_colors(self._settings.colors), self._env, "utf-8" if theme.unicode else "ascii")
        )

    def quit(self) -> None:
        self._leave()
