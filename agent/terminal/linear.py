"""The chat on a terminal that can only print lines (TERM=dumb), and for screen readers: no colours, no live lines.

What is typed while it works goes to the model at its next step. Ctrl-C stops, twice quits; Ctrl-D quits.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from agent.clean import one_line, plain
from agent.commands._own import commands_for, expanded
from agent.commands.base import Choice, find, unknown
from agent.permissions import Approval, Verdict
from agent.session import Session
from agent.settings import Settings
from agent.terminal import outside, shell
from agent.terminal.words import call_title, end_line, facts, lines_of, retry_line
from agent.version import VERSION
from runtime.events import (
    AnswerRecorded,
    Compacted,
    CompactFailed,
    Event,
    Notice,
    Retrying,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from runtime.folding import failed_line
from transcripts.records import User

OUTPUT_LINES = 6
"""Lines of a call's output that are printed."""

KEYS = (
    ("Enter", "send; while it works: tell it at its next step"),
    ("Ctrl-C", "stop, everything is kept; twice: quit"),
    ("Ctrl-D", "quit"),
    ("! command", "run a command of yours; !! keeps it from the model"),
)


class Linear:
    """One chat in lines; the Face of its commands as well."""

    def __init__(
        self, settings: Settings, session: Session, another: Callable[..., Session], env: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._another = another
        self._env = env
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._question: asyncio.Future[str | None] | None = None
        self._answer = ""
        self._fresh = True
        self._left = False
        self._stopped_at = 0.0
        self._shelling = self._in_turn = False
        self._running: dict[str, str] = {}
        self._working: asyncio.Task[Any] | None = None
        self._adopt(session)

    def _adopt(self, session: Session) -> None:
        self._session = session
        session.approve = self.approve
        session.toolbox.ctx.ask = self.answer_question

    async def run(self, prompt: str = "") -> int:
        """Talks until the person leaves."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        self._line(f"refold {VERSION}, {self._session.model.name}, {self._session.cwd}. /help tells what can be typed.")
        for notice in self._session.notices:
            self.say(notice, "warn")
        if prompt:
            await self._work(self.send(expanded(self._session, prompt)))
        while not self._left:
            self._write("> ")
            line = await self._lines.get()
            if line is None:
                break
            if line.strip():
                await self._work(self._take(line.strip()))
        self._session.close()
        return 0

    # -- lines in ---------------------------------------------------------------------------------------------------

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(self._arrived, line.rstrip("\n"))
        loop.call_soon_threadsafe(self._arrived, None)

    def _arrived(self, line: str | None) -> None:
        """A line: the answer to a question, else for the model while it works, else the next thing to do."""
        if self._question is not None and not self._question.done():
            self._question.set_result(line)
        elif self._in_turn and line and not line.startswith(("/", "!")):
            self._session.steer(line)
        else:
            self._lines.put_nowait(line)

    def _interrupt(self) -> None:
        if self._working is not None and self._shelling:
            self._working.cancel()
        elif self._working is not None:
            self._session.interrupt()
            if self._question is not None and not self._question.done():
                self._question.set_result(None)
        elif time.monotonic() - self._stopped_at < 2:
            self._left = True
            self._lines.put_nowait(None)
        else:
            self._stopped_at = time.monotonic()
            self.say("Ctrl-C again quits.")
            self._write("> ")

    async def _work(self, work: Any) -> None:
        task = self._working = asyncio.ensure_future(work)
        try:
            await task
        finally:
            self._working = None

    async def _take(self, line: str) -> None:
        name, _, words = line[1:].partition(" ")
        if line.startswith("!") and line.strip("! "):
            await self._shell(line)
        elif line.startswith("/") and "/" not in name:
            commands = commands_for(self._session)
            command = find(commands, name)
            if command is None:
                self.say(unknown(commands, name), "warn")
            else:
                await command.run(self, words.strip())
        else:
            await self.send(line)

    async def _shell(self, line: str) -> None:
        ctx = self._session.toolbox.ctx
        self._shelling = True
        try:
            ran = await shell.run(line.lstrip("!").strip(), ctx.cwd, ctx.env, lambda text: self._write(plain(text)))
        finally:
            self._shelling = False
        self.say("stopped" if ran.stopped else f"exit {ran.code}")
        if not line.startswith("!!"):
            self._session.engine.append(User(ran.message(), "shell"))

    async def _ask_line(self, words: str) -> str | None:
        self._write(words)
        self._question = asyncio.get_running_loop().create_future()
        try:
            return await self._question
        finally:
            self._question = None

    # -- lines out --------------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._fresh = text.endswith("\n")

    def _line(self, text: str) -> None:
        self._write(("" if self._fresh else "\n") + plain(text).rstrip() + "\n")

    def _show(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._write(plain(text))
            case AnswerRecorded(message):
                self._answer = message.text or self._answer
                self._write("" if self._fresh else "\n")
            case ToolStarted(call):
                self._running[call.id] = self._title(call)
            case ToolFinished(call, result):
                self._running.pop(call.id, None)
                said = facts(result)
                self._line(f"* {one_line(self._title(call), 160)}{f' ({said})' if said else ''}")
                lines = str(result.meta.get("diff") or "").split("\n") if result.meta.get("diff") else lines_of(result)
                if result.meta.get("diff") or "exit_code" in result.meta or result.status != "ok":
                    self._some(lines, 40 if result.meta.get("diff") else OUTPUT_LINES)
            case Steered(text):
                self._line(f"> {text}")
            case Compacted(_, line):
                self._line(line)
            case CompactFailed(why, floor):
                self._line(f"Could not fold: {failed_line(why, floor)}")
            case Retrying():
                self._line(retry_line(event))
            case Notice(text, _):
                self._line(text)
            case TurnEnded():
                for title in self._running.values():
                    self._line(f"* {one_line(title, 160)} (stopped)")
                self._running.clear()
                self._line(words) if (words := end_line(event)[1]) else None
            case _:
                pass

    def _title(self, call: Any) -> str:
        try:
            return self._session.toolbox.title(call.name, call.args)
        except (ValueError, KeyError, TypeError):
            return call_title(call)

    def _some(self, lines: Sequence[str], most: int) -> None:
        most = most if len(lines) > most + 1 else len(lines)
        for line in lines[:most]:
            self._line(f"  {line}")
        if len(lines) > most:
            self._line(f"  ... {len(lines) - most} more lines")

    # -- questions --------------------------------------------------------------------------------------------------

    async def approve(self, approval: Approval) -> Verdict:
        """Asks whether a call may run."""
        by = f"{approval.by}: " if approval.by else ""
        self._line(f"May this run? {one_line(by + approval.title, 400)}")
        self._some(plain(approval.preview).split("\n"), 40)
        if approval.judgement.danger or approval.judgement.reason:
            self._line(f"  ({approval.judgement.danger or approval.judgement.reason})")
        rule = one_line(approval.judgement.rule, 120)
        session = f", s = yes and not ask again in this session ({rule})" if rule else ""
        while True:
            said = (await self._ask_line(f"y = yes, once{session}, n = no, or words for the model: ") or "n").strip()
            match said.lower():
                case "y" | "yes":
                    return Verdict(True)
                case "s" | "a" if rule:
                    return Verdict(True, "session")
                case "n" | "no" | "":
                    return Verdict(False)
                case letter if len(letter) == 1:  # a key of the other chat, and no words for a model
                    self._line(f"There is no {said} here.")
                case _:
                    return Verdict(False, message=said)

    async def answer_question(self, question: str, choices: Sequence[str]) -> str:
        """What the model wants to know."""
        chosen = (
            await self.choose(question, [Choice(c, c) for c in choices])
            if choices
            else await self._ask_line(f"{question} ")
        )
        return chosen or ""

    async def choose(self, title: str, choices: Sequence[Choice], *, search: bool = False) -> Any | None:
        self._line(title)
        for n, choice in enumerate(choices, 1):
            self._line(f"  {n}. {one_line(choice.label, 100)}{f'  ({choice.note})' if choice.note else ''}")
        said = (await self._ask_line("Which number? ") or "").strip()
        return choices[int(said) - 1].value if said.isdigit() and 0 < int(said) <= len(choices) else None

    async def ask(self, label: str, text: str = "") -> str | None:
        return await self._ask_line(label)

    # -- the rest of a Face -----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        return self._session

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def answer(self) -> str:
        return self._answer

    @property
    def keys(self) -> Sequence[tuple[str, str, str]]:
        return [(key, "", words) for key, words in KEYS]

    def say(self, text: str, role: str = "info") -> None:
        self._line(text)

    def markdown(self, text: str) -> None:
        self._line(text)

    def diff(self, text: str) -> None:
        self._line(text)

    def table(self, rows: Sequence[Sequence[str]], head: Sequence[str] = (), title: str = "") -> None:
        if title:
            self._line(f"{title}:")
        for row in rows:
            self._line("  " + ": ".join(plain(cell) for cell in row if cell))

    def gauge(self, parts: Sequence[tuple[str, int]], whole: int) -> None:
        for label, size in parts:
            self._line(f"  {label}: {size:,} ({size / whole if whole else 0:.1%})")

    async def page(self, title: str, text: str) -> None:
        self._line(text)

    async def follow(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self._show(event)

    async def send(self, text: str, shown: str = "") -> None:
        self._in_turn = True
        try:
            await self.follow(self._session.send(text))
        finally:
            self._in_turn = False

    async def open(self, *, resume: str = "", fork: bool = False, name: str = "") -> None:
        new = self._another(resume=resume, fork=fork, name=name)
        self._session.close()
        self._adopt(new)

    def put(self, text: str) -> None:
        self._line(text)

    def copy(self, text: str) -> bool:
        return outside.copy(text, self._env)

    def clear(self) -> None:
        """A printed line stays where it is."""

    def set_theme(self, name: str) -> None:
        raise ValueError("This terminal shows no colours.")

    def quit(self) -> None:
        self._left = True


def chat(
    settings: Settings, session: Session, another: Callable[..., Session], env: Mapping[str, str], prompt: str
) -> int:
    """Talks in lines until the person leaves; closes the session."""
    linear = Linear(settings, session, another, env)
    code = asyncio.run(linear.run(prompt))
    last = linear.session
    if last.path is not None and len(last.engine.history):
        print(f"Go on with: refold --resume {shlex.quote(last.name or last.id)}")
    return code
