"""The chat from start to end, in two steps: a prompt that takes keys, and then everything behind it.

The screen is there before the session: importing the engine, the renderer and the provider takes longer than a person
is willing to wait, and less long than they type.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.clean import one_line
from agent.exits import NO_MODEL, THREE_WAYS, Exit, Stop
from agent.settings import Settings, SettingsError
from agent.terminal.background import answers
from agent.terminal.deck import Deck
from agent.terminal.keyboard import know_more_keys
from agent.terminal.keymap import DEFAULT, Keymap, KeysError, read_keys
from agent.terminal.keys import bindings
from agent.terminal.theme import Theme, choose_theme, for_background, ground_known, read_colors
from agent.version import VERSION

BEHIND = "agent.terminal.chat"
WIZARD = "agent.terminal.wizard"
SESSIONS = "agent.terminal.sessions"
"""Modules of the second step; named, not imported, for importing them is what takes the time."""

SWITCH = 0.001
"""Seconds a thread that imports may hold the interpreter while keys wait (Python's own value is 0.005)."""


@dataclass(frozen=True)
class Start:
    """What a chat begins with. `first(settings, ref)` opens the session of the command line (`ref`: the one that was
    chosen from a list), `another(settings, **words)` those that are changed to; both raise Stop or SessionError.
    `choose`: ask which session. `prompt` is sent at once."""

    settings: Settings
    cwd: Path
    first: Callable[[Settings, str], Any]
    another: Callable[..., Any]
    prompt: str = ""
    choose: bool = False
    resumes: bool = False


def chat(start: Start) -> int:
    """Talks until the person leaves; returns the exit code. Raises Stop where there is nothing to talk with."""
    return asyncio.run(_Evening(start).run())


class _Evening:
    """One chat from the first frame to the word of parting."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._settings = start.settings
        self._env = dict(os.environ)
        self._theme = _theme(start.settings, self._env)
        vi = start.settings.editing == "vi"
        keymap = _keymap(start.settings)
        self._theme = replace(self._theme, more=keymap.name("output"))
        self._deck = Deck(self._theme, self._env, home=start.settings.home, cwd=start.cwd, vi=vi, keymap=keymap)
        self._deck.screen.rings = start.settings.notify
        if not start.settings.theme and self._theme.color and not ground_known(self._env) and answers(self._env):
            self._deck.screen.ask_background(self._background)
        self._chat: Any = None
        self._failure: Exception | None = None

    async def run(self) -> int:
        know_more_keys()
        screen = self._deck.screen
        screen.build(self._deck.region.layout, bindings(self._deck))
        screen.print_raw(greeting(self._start.cwd, self._theme, screen.width), gap=False)
        loading: list[asyncio.Task[None]] = []
        self._catch_signals()
        try:
            code = await screen.run(lambda: loading.append(asyncio.get_running_loop().create_task(self._load())))
        finally:
            for task in loading:
                task.cancel()
                await asyncio.wait([task])
            if self._chat is not None:
                await self._chat.talk.wind_up()
            self._part()
            self._deck.screen.output.flush()
        if self._failure is not None:
            raise self._failure
        return code

    def _background(self, light: bool) -> None:
        """The terminal has said whether it is light."""
        own = read_colors(self._start.settings.colors)
        self._deck.screen.set_theme(for_background(light, own, self._env, unicode=self._theme.unicode))

    async def _load(self) -> None:
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        gc.disable()
        try:
            behind = await asyncio.to_thread(importlib.import_module, BEHIND)
            if not self._settings.model and not self._start.resumes:
                self._settings = await self._first_start()
            ref = await self._ask_which() if self._start.choose else ""
            session = await asyncio.to_thread(self._start.first, self._settings, ref)
            await self._deck.screen.answered()
            self._chat = behind.Chat.begin(
                self._deck, self._settings, session, self._another, self._env, self._start.prompt
            )
        except Exception as error:  # noqa: BLE001  # raised again by `run`, when the terminal is back
            self._failure = error
            self._deck.screen.leave(1)
        finally:
            sys.setswitchinterval(before)
            # What is loaded stays; looked through for garbage again and again it would hold up a key for 40 ms.
            gc.freeze()
            gc.enable()

    def _another(self, **words: Any) -> Any:
        return self._start.another(self._settings, **words)

    async def _first_start(self) -> Settings:
        made = await importlib.import_module(WIZARD).first_start(self._deck, self._settings, self._env)
        if made is None:
            raise Stop(Exit.NO_MODEL, NO_MODEL, THREE_WAYS)
        return made

    async def _ask_which(self) -> str:
        """The id of the session to go on with."""
        ref = await importlib.import_module(SESSIONS).choose(self._deck, self._settings.home, self._start.cwd)
        if not ref:
            raise Stop(Exit.OK, "")
        return ref

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            loop.add_signal_handler(number, self._leave, 128 + number)

    def _leave(self, code: int) -> None:
        if self._chat is not None:
            self._chat.quit(code)
        else:
            self._deck.screen.leave(code)

    def _part(self) -> None:
        if self._chat is None:
            return
        session = self._chat.talk.session
        session.close()
        if session.path is not None and len(session.engine.history):
            with contextlib.suppress(OSError):
                sys.stdout.write(f"Go on with: refold --resume {shlex.quote(session.name or session.id)}\n")
                sys.stdout.flush()


def _theme(settings: Settings, env: Mapping[str, str]) -> Theme:
    """The theme that is set. Raises SettingsError."""
    try:
        own = read_colors(settings.colors)
        return choose_theme(settings.theme, own, env, sys.stdout.encoding or "ascii")
    except ValueError as error:
        name = "theme" if str(error).startswith("theme") else "colors"
        raise SettingsError(f"{error} ({settings.source(name)})") from None


def _keymap(settings: Settings) -> Keymap:
    """The keys, with the person's own. Raises SettingsError."""
    try:
        return DEFAULT if settings.bare else read_keys(settings.home)
    except KeysError as error:
        raise SettingsError(str(error)) from None


def greeting(cwd: Path, theme: Theme, width: int) -> str:
    """Two lines: who talks here and where, and how to find one's way."""
    bold, dim, off = "\x1b[1m", "\x1b[90m" if theme.color else "", "\x1b[0m"
    dot = theme.sign("·", "-")
    where = one_line(f"{VERSION} {dot} {short_path(cwd)}", max(4, width - 8))
    help_ = one_line(f"/ commands {dot} @ files {dot} ! shell {dot} /help", width - 1)
    return f"{bold}refold{off} {dim}{where}{off}\n{dim}{help_}{off}\n"


def short_path(path: Path, env: Mapping[str, str] = os.environ) -> str:
    """A path as people write it: ~ for the home folder."""
    home = env.get("HOME", "")
    text = str(path)
    return "~" + text[len(home) :] if home and (text == home or text.startswith(home + "/")) else text
