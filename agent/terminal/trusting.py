"""The question about what a folder brings along: asked once, when nobody types and nothing runs."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence

from agent.clean import one_line
from agent.extend.extensions import Untrusted
from agent.session import Session
from agent.terminal.dialogs import Option, Picker
from agent.terminal.face import ChatFace
from agent.terminal.fragments import Fragments
from agent.terminal.talk import Talk
from agent.trust import Brought, content
from agent.trust_asked import Asked

LOOK = 0.25
"""Seconds between two looks whether it is a good moment."""

LATER, VIEW, TRUST, NEVER, MOVED = "later", "view", "trust", "never", "moved"

_OPTIONS = (
    Option(LATER, "Not now", "n", "quiet until they change; /trust asks at any time"),
    Option(VIEW, "View them", "v"),
    Option(TRUST, "Trust them as they are", "t", "Enter takes it; a change asks again", careful=True),
    Option(NEVER, "Never ask in this folder", "x", "Enter takes it", careful=True),
)

_DOES = {
    "hooks": "hooks: commands that run around what it does",
    "MCP servers": "MCP servers: programs that are started",
    "rules": "rules: what may run without a question",
    "configuration": "settings",
    "skill": "skill: instructions for the model",
    "command": "command: a prompt you can send",
    "agent": "agent: instructions for a helper",
}


async def ask(talk: Talk, face: ChatFace) -> None:
    """Asks what a folder's files may do, where they are new or changed and the person has not said."""
    session = talk.session
    untrusted = await asyncio.to_thread(session.extensions.untrusted)
    asked = Asked(session.settings.home, session.safety.trust.root)
    if not untrusted.files or asked.quiet(untrusted.files):
        return
    try:
        answer = await _answer(talk, session, untrusted)
        if answer != MOVED and talk.session is session:
            await _act(answer, talk, face, untrusted, asked)
    except OSError as error:
        face.say(f"It cannot be kept: {error}", "error")


async def _answer(talk: Talk, session: Session, untrusted: Untrusted) -> str | None:
    """LATER, TRUST, NEVER or None (Esc); MOVED where another session was gone to before there was a good moment."""
    deck = talk.deck
    while True:
        while await _in_the_way(talk):
            await asyncio.sleep(LOOK)
        if talk.session is not session:
            return MOVED
        answer = await deck.pick(lambda: _question(untrusted))
        if answer != VIEW:
            return answer
        root = session.safety.trust.root
        await deck.page([(b.path, await asyncio.to_thread(_text, root, b)) for b in untrusted.files], 0)


async def _in_the_way(talk: Talk) -> bool:
    """Whether the question would come up while something runs, or over a line that is being written."""
    if not (talk.busy or talk.deck.asking or talk.deck.editor.text):
        await talk.deck.pause()
    return bool(talk.busy or talk.deck.asking or talk.deck.editor.text)


async def _act(answer: str | None, talk: Talk, face: ChatFace, untrusted: Untrusted, asked: Asked) -> None:
    session = talk.session
    if answer == TRUST:
        session.safety.trust.grant(untrusted.files)
        if talk.busy or len(session.engine.history) or session.name:
            face.say("Trusted. It counts from the next session on.", "ok")
        else:
            await face.open()
            face.say("Trusted. A change asks again; /trust revoke takes it back.", "ok")
    elif answer == NEVER:
        asked.never()
        face.say("Nothing of this folder is trusted, and it is not asked again. /trust shows what there is.")
    else:
        asked.put_off(untrusted.files)


def _question(untrusted: Untrusted) -> Picker:
    count = len(untrusted.files)
    files = "a file that does" if count == 1 else f"{count} files that do"
    return Picker(
        f"This folder brings along {files} nothing until you trust {'it' if count == 1 else 'them'}.",
        _OPTIONS,
        head=lambda width, height: _head(untrusted, width, height),
        escape="not now",
    )


def _head(untrusted: Untrusted, width: int, height: int) -> Fragments:
    """One line a file: its path, and what it would do."""
    room = max(1, height)
    shown: Sequence[Brought] = untrusted.files[: room if len(untrusted.files) <= room else room - 1]
    wide = min(max((len(b.path) for b in shown), default=0), max(12, width // 2))
    out: Fragments = []
    for file in shown:
        changed = "changed since you trusted it; " if file in untrusted.changed else ""
        does = one_line(changed + _DOES.get(file.what, file.what), max(4, width - wide - 4))
        out += [("", f"  {one_line(file.path, wide):<{wide}}"), ("class:dim", f"  {does}\n")]
    if len(shown) < len(untrusted.files):
        out.append(("class:dim", f"  … {len(untrusted.files) - len(shown)} more; v shows all\n"))
    return out


def _text(root: str, file: Brought) -> str:
    """What a file says, as long as it is the one the question is about."""
    data = content(os.path.join(root, file.path))
    if data is None:
        return "It cannot be read: it is no file any more, or too large."
    if hashlib.sha256(data).hexdigest() != file.sha:
        return "It has changed since the question came up; it would not be trusted by a yes."
    return data.decode("utf-8", "replace")
