"""The chat from start to end: theme, screen, session, signals, the word of parting."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from agent.session import Session
from agent.settings import Settings
from agent.terminal.chat import Chat
from agent.terminal.clean import one_line
from agent.terminal.deck import Deck
from agent.terminal.keys import know_more_keys
from agent.terminal.theme import Theme, choose_theme
from agent.version import VERSION

Opener = Callable[..., Session]
"""Starts a session: (resume, fork, name) -> Session. Raises SessionError, ModelError."""


def chat(settings: Settings, session: Session, opener: Opener, *, prompt: str = "") -> int:
    """Talks until the person leaves; returns the exit code. `session` is open; it (or the one that took its place) is
    closed at the end. `prompt` is sent at once."""
    return asyncio.run(_chat(settings, session, opener, prompt))


async def _chat(settings: Settings, session: Session, opener: Opener, prompt: str) -> int:
    env = dict(os.environ)
    theme = choose_theme(settings.theme, {}, env, sys.stdout.encoding or "ascii")
    know_more_keys()
    deck = Deck(theme, env, home=settings.home, cwd=session.cwd)
    face = Chat(deck, settings, session, opener, env)
    deck.screen.print_raw(greeting(session, settings, theme), gap=False)
    loop = asyncio.get_running_loop()
    for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        loop.add_signal_handler(number, face.quit, code)
    try:
        return await deck.screen.run(lambda: _begin(face, prompt))
    finally:
        last = face.talk.session
        last.close()
        sys.stdout.write(parting(last))
        sys.stdout.flush()


def _begin(face: Chat, prompt: str) -> None:
    """The first frame stands: now what takes time."""
    face.show_session()
    face.talk.beside(_prepare(face))
    if prompt:
        face.talk.say(prompt)


async def _prepare(face: Chat) -> None:
    prepare = getattr(face.talk.session.model, "prepare", None)
    if prepare is not None:
        await prepare()


def greeting(session: Session, settings: Settings, theme: Theme) -> str:
    """Two lines: who talks here and where, and how to find one's way."""
    bold, dim, off = ("\x1b[1m", "\x1b[90m", "\x1b[0m") if theme.color else ("\x1b[1m", "", "\x1b[0m")
    where = one_line(_home_short(session.cwd), 60)
    model = one_line(session.model.name, 60)
    return (
        f"{bold}refold{off} {dim}{VERSION} · {model} · {where}{off}\n{dim}/ commands · @ files · ! shell · /help{off}\n"
    )


def parting(session: Session) -> str:
    """How to go on another time; nothing where nothing was said."""
    if session.path is None or not len(session.engine.history):
        return ""
    return f"Go on with: refold --resume {session.name or session.id}\n"


def _home_short(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}".rstrip("/.")
    except ValueError:
        return str(path)
