"""The chat: what keys and lines mean, which commands there are, what the status line says."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agent.clean import one_line
from agent.commands._own import commands_for
from agent.commands.base import Command, find, unknown
from agent.extend.extensions import UNTRUSTED
from agent.identity import git_branch
from agent.permissions import MODES
from agent.session import Session
from agent.settings import Settings
from agent.terminal import blocks, keys, outside, trusting
from agent.terminal.deck import Deck
from agent.terminal.dialogs import Option, Picker
from agent.terminal.face import ChatFace
from agent.terminal.files import FileIndex
from agent.terminal.fragments import Rows, row
from agent.terminal.paper import Paper
from agent.terminal.questions import Questions
from agent.terminal.replay import replay
from agent.terminal.status import Status
from agent.terminal.statusline import StatusLine, facts_of
from agent.terminal.talk import Talk

AGAIN = 2.0
"""Seconds in which a key pressed a second time means it."""

Opener = Callable[..., Session]


class Chat:
    """Acts on the keys of one deck; sessions may change under it. `opener` starts sessions."""

    def __init__(self, deck: Deck, settings: Settings, session: Session, opener: Opener, env: dict[str, str]) -> None:
        self.deck = deck
        self.talk = Talk(deck, session, self._refresh)
        self.face = ChatFace(self.talk, settings, env, opener=opener, adopt=self.change_session, leave=self.quit)
        self._questions = Questions(self.talk)
        self._env = env
        self._commands: dict[str, Command] = {}
        self._armed = ("", 0.0)
        self._ending: asyncio.Task[None] | None = None
        self._status = Status(unicode=deck.screen.theme.unicode)
        deck.live.status = self._status.fragments
        deck.live.own_line = self._own_line
        self._line, self._own = StatusLine(settings.status_command, self._set_own, self._complain), ""
        deck.live.sign = self._sign
        deck.suggest.commands = self._matching
        deck.suggest.arguments = self._arguments
        deck.screen.use_paper(Paper)
        self._adopt(session)
        asyncio.get_running_loop().set_exception_handler(self._bug)

    def _bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error in the hand that acts on a key, or in a task nobody waits for: shown, and the chat goes on."""
        error = context.get("exception")
        words = "".join(traceback.format_exception(error)) if error else str(context.get("message"))
        self.face.say(f"A bug in refold. The session is kept.\n{words}", "error")

    @classmethod
    def begin(
        cls, deck: Deck, settings: Settings, session: Session, opener: Opener, env: dict[str, str], prompt: str
    ) -> Chat:
        """Puts the chat on a deck that is on the screen already; lines that were entered meanwhile are sent."""
        entered: list[str] = getattr(deck.hands, "lines", [])
        chat = deck.hands = cls(deck, settings, session, opener, env)
        chat.show_session()
        deck.suggest_again()
        chat.talk.beside(chat.prepare())
        if prompt:
            chat._begin_with(prompt)
        draft = deck.editor.text
        for line in entered:
            deck.editor.clear()
            deck.editor.put(line)
            chat.enter()
        if entered and draft:
            deck.editor.put(draft)
        return chat

    def _begin_with(self, prompt: str) -> None:
        """Sends the prompt of the command line; one that names a command of the person's is what that says."""
        name, _, words = prompt[1:].partition(" ") if prompt.startswith("/") else ("", "", "")
        command = find(self.commands, name) if name else None
        if command is not None and command.own:
            self.talk.start(command.run(self.face, words.strip()))
        else:
            self.talk.say(prompt)

    async def prepare(self) -> None:
        """What takes time before the first request is done while the person types."""
        prepare = getattr(self.talk.session.model, "prepare", None)
        if prepare is not None:
            await prepare()

    # -- sessions ---------------------------------------------------------------------------------------------------

    def _adopt(self, session: Session) -> None:
        self.talk.session, self._told, self._commands = session, 1 << 30, {}
        session.approve = self._questions.approve
        self.talk.view.begin_session(session.engine.estimate(), session.model.window)
        self.deck.suggest.files = FileIndex(session.cwd, self.deck.suggest.offer, self.deck.screen.refresh).ask
        self._status.branch = git_branch(session.root)
        self.deck.screen.title(f"refold · {session.name or session.cwd.name}")
        self._refresh()

    def change_session(self, session: Session) -> None:
        """Another session takes the place of this one; what was said in it is drawn again."""
        self._adopt(session)
        self.show_session()

    def show_session(self) -> None:
        """Draws again what was said, and what there is to know about how it was found."""
        replay(self.talk.view, self.deck.screen, self.talk.session.log.entries)
        self._told = 0
        self._show_notices()
        self.talk.beside(trusting.ask(self.talk, self.face))

    def _show_notices(self) -> None:
        """Says what the session has to say beside its events, each once."""
        notices = self.talk.session.notices
        while self._told < len(notices):
            self._told += 1
            if not notices[self._told - 1].startswith(UNTRUSTED):  # it is asked about
                self.face.say(notices[self._told - 1], "warn")

    def _refresh(self) -> None:
        session, view, status = self.talk.session, self.talk.view, self._status
        status.mode, status.model, status.name = session.permissions.mode, session.model.name, session.name
        status.used, status.window = view.used, view.window or session.model.window
        status.cost = session.usage.cost
        status.sandbox = session.safety.sandbox_words
        self._line.update(facts_of(session, status), session.cwd, session.toolbox.ctx.env)
        session.toolbox.ctx.ask = self._questions.answer  # a change of the model makes a new toolbox
        self._show_notices()
        self.deck.screen.refresh()

    def _own_line(self, width: int) -> Rows:
        return [row("class:dim", one_line(self._own, width - 1))] if self._own else []

    def _set_own(self, words: str) -> None:
        """What the person's own command says of the status."""
        self._own = words
        self.deck.screen.refresh()

    def _complain(self, words: str) -> None:
        self.face.say(words, "warn")

    # -- sending ----------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self.talk.busy

    def enter(self) -> None:
        """Enter: takes the suggestion, goes on in a new line, or sends."""
        deck = self.deck
        if deck.suggest.items and not keys.accept(deck):
            return
        if not deck.editor.continues() and deck.editor.text.strip():
            self._send(self.talk.say)

    def newline(self) -> None:
        """Ctrl+J, Shift+Enter."""
        self.deck.editor.buffer.insert_text("\n")

    def queue(self) -> None:
        """Tab or Alt+Enter while it works: for after this turn."""
        if self.deck.editor.text.strip():
            self._send(self.talk.queue)

    def _send(self, give: Callable[[str], None]) -> None:
        line = self.deck.editor.text.strip()
        self._status.hint, self._armed = "", ("", 0.0)
        idle = not self.busy
        if line.startswith("/") and not _is_path(line):
            self._start_command(line)
        elif self.deck.editor.runs and line.strip("! "):
            self._start_shell(line)
        else:
            self.deck.editor.take()
            give(line)
        if idle or line.startswith("/"):
            self.deck.line_ended()

    def _start_command(self, line: str) -> None:
        name, _, words = line[1:].partition(" ")
        command = find(self.commands, name)
        if command is None:
            self._hint(unknown(self.commands, one_line(name, 40)))
        elif self.busy and not command.while_busy:
            self._hint(f"/{name} has to wait until this is over; Esc stops it.")
        else:
            self.deck.editor.take()
            if not command.own:  # what it sends is shown under its name
                self.deck.screen.print(blocks.user(line, self.deck.screen.theme))
            run = self.talk.beside if self.busy else self.talk.start
            run(command.run(self.face, words.strip()))

    def _start_shell(self, line: str) -> None:
        if self.busy:
            self._hint("A command of yours has to wait until this is over; Esc stops it.")
            return
        self.deck.editor.take()
        self.talk.start(self.talk.shell(line))

    @property
    def commands(self) -> dict[str, Command]:
        """All commands of the session; they are read when first needed."""
        if not self._commands:
            self._commands = commands_for(self.talk.session)
            self._show_notices()
        return self._commands

    def _matching(self, name: str) -> Sequence[tuple[str, str, bool]]:
        """(name, summary, takes words) of the commands that begin with, or contain, what was typed."""
        found = [c for c in self.commands.values() if any(n.startswith(name) for n in (c.name, *c.aliases))]
        found = found or [c for c in self.commands.values() if name in c.name]
        found.sort(key=lambda c: (not c.name.startswith(name), c.name != "help" and not name, c.name))
        return [(c.name, c.summary, bool(c.takes) and not c.takes.startswith("[")) for c in found]

    def _arguments(self, name: str, words: str) -> Sequence[str]:
        command = find(self.commands, name)
        return command.complete(self.face, words) if command and command.complete else []

    # -- keys -------------------------------------------------------------------------------------------------------

    def escape(self) -> None:
        """Esc: closes the suggestions, else stops what runs, else (twice) clears the input or, where it is empty,
        goes back to an earlier message."""
        deck = self.deck
        if deck.suggest.items:
            deck.suggest.close(deck.editor.buffer.document.text_before_cursor)
        elif self.busy:
            self.talk.stop()
        elif deck.editor.text:
            if self._again("esc"):
                deck.editor.clear()
            else:
                self._hint("Esc again clears the input.")
        elif "rewind" in self.commands and self._again("esc"):
            self._status.hint = ""
            deck.line_ended()
            self._start_command("/rewind")
        deck.screen.refresh()

    def control_c(self) -> None:
        """Ctrl-C: clears the input, else stops what runs, else (the second time) quits."""
        if self.deck.screen.is_away:
            return  # it is meant for the program that has the terminal
        if self.deck.editor.text:
            self.deck.editor.clear()
        elif self._again("c"):
            self.quit()
        elif self.busy:
            self.talk.stop()
        else:
            self._hint("Ctrl-C again quits.")

    def control_d(self) -> None:
        """Ctrl-D: quits, on an empty input; while something runs only the second time."""
        if self.deck.editor.text:
            self.deck.editor.delete_right()
        elif not self.busy or self._again("d"):
            self.quit()
        else:
            self._hint("It still works. Ctrl-D again stops it and quits.")

    def up(self) -> None:
        """Up: takes the last waiting line back, else goes up in the input and in the history."""
        line = None if self.deck.editor.text else self.talk.take_back()
        if line is not None:
            self.deck.editor.put(line)
        else:
            self.deck.editor.buffer.auto_up()

    def next_mode(self) -> None:
        """Shift+Tab: the next permission mode."""
        session = self.talk.session
        session.set_mode(MODES[(MODES.index(session.permissions.mode) + 1) % len(MODES)])
        self._refresh()

    def expand(self) -> None:
        """Ctrl-O: the newest output in full."""
        if not self.talk.view.outputs:
            self._hint("There is no output yet.")
            return
        blobs = self.talk.session.engine.log.blobs
        texts = [(o.title, partial(o.whole, blobs) if o.blob else o.text) for o in self.talk.view.outputs]
        self.talk.beside(self.deck.page(texts))

    def search_history(self) -> None:
        """Ctrl-R: what was typed before."""
        self.talk.beside(self._search_history())

    async def _search_history(self) -> None:
        entries = [Option(text, text) for text in self.deck.editor.buffer.history.load_history_strings()]
        chosen = await self.deck.pick(lambda: Picker("What was typed before", entries, search=True), at_once=True)
        if chosen:
            self.deck.editor.clear()
            self.deck.editor.put(chosen)

    def edit_outside(self) -> None:
        """Ctrl-G: the input in the person's editor."""
        self.talk.beside(self._edit_outside())

    async def _edit_outside(self) -> None:
        editor = self.deck.editor
        text = editor.expanded(editor.text)

        async def edit() -> str:
            return await asyncio.to_thread(outside.edit, text, self._env)

        try:
            changed = await self.deck.screen.away(edit)
        except OSError as error:
            self._hint(f"The editor cannot be started: {error}. Set $EDITOR.")
            return
        editor.clear()
        editor.put(changed)

    def paste_picture(self) -> None:
        """Ctrl-V: a picture from the clipboard."""
        self.talk.beside(self._paste_picture())

    async def _paste_picture(self) -> None:
        path = await asyncio.to_thread(outside.clipboard_picture, self.face.settings.home / "pasted")
        if path is None:
            self._hint("There is no picture on the clipboard (or neither wl-paste, xclip nor pngpaste).")
        else:
            self.deck.editor.attach(path)
        self.deck.screen.refresh()

    def stash(self) -> None:
        """Ctrl-S: puts the input aside; on an empty one, brings back what was put aside last."""
        if not self.deck.editor.unstash() and not self.deck.editor.stash():
            self._hint("There is nothing to put aside, and nothing to bring back.")
        self.deck.screen.refresh()

    def redraw(self) -> None:
        """Ctrl-L: a clear screen; the scrollback stays."""
        self.deck.screen.clear()

    # -- the end ----------------------------------------------------------------------------------------------------

    def quit(self, code: int = 0) -> None:
        """Stops what runs and leaves."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._quit(code))

    async def _quit(self, code: int) -> None:
        if asyncio.current_task() is not self.talk.task:
            await self.talk.wind_up()
        self.deck.screen.leave(code)

    def _again(self, key: str) -> bool:
        """Whether the key comes the second time within AGAIN."""
        before, moment = self._armed
        self._armed = (key, time.monotonic())
        return before == key and time.monotonic() - moment < AGAIN

    def _hint(self, words: str) -> None:
        """Words in the place of the status line, for a while."""
        self._status.hint = words
        self.deck.screen.refresh()
        asyncio.get_running_loop().call_later(AGAIN + 1, self._unhint, words)

    def _unhint(self, words: str) -> None:
        if self._status.hint == words:
            self._status.hint = ""
            self.deck.screen.refresh()

    def _sign(self) -> tuple[str, str]:
        theme = self.deck.screen.theme
        return ("class:shell" if self.deck.editor.runs else "class:accent"), theme.sign("› ", "> ")


def _is_path(line: str) -> bool:
    """Whether a line that begins with a slash is a path and no command."""
    first = line.split(maxsplit=1)[0]
    return "/" in first[1:] or os.path.exists(first)
