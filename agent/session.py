"""Session: one conversation, from the first word to the last, in this process and after it.

Open, resume or fork; `send` gives the events of one turn; `steer` hands in lines while it works; `interrupt` stops it
and keeps everything. A session owns its log, engine, tools, model and permissions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agent import logbook, workshop
from agent.clean import one_line
from agent.extend.extensions import Extensions
from agent.extend.hooking import Facts
from agent.extend.turns import hooked_turn
from agent.hearing import Heard, Lines, hear, left_lines
from agent.logbook import SessionError
from agent.models import make_model
from agent.permissions import Approver, Permissions
from agent.permitting import Permitting
from agent.settings import Settings
from agent.subagents.crew import Subagents, with_task
from runtime.context.compact import CompactOutcome
from runtime.context.ledger import Row, ledger
from runtime.context.redact import told
from runtime.context.report import ContextReport, report_on
from runtime.crew import Crew, Limits, Spent, total
from runtime.events import (
    AnswerRecorded,
    Compacted,
    CompactFailed,
    Compacting,
    Event,
    Notice,
    TaskEvent,
    ToolFinished,
    TurnEnded,
)
from runtime.folding import fold_line
from runtime.loop import run_turn
from runtime.model import Model, ModelErrorKind
from transcripts.log import Entry, LogWriteError, TranscriptLog
from transcripts.records import Image, Note, TurnEnd, Usage, User

Ask = Callable[[str, Sequence[str]], Awaitable[str]]

__all__ = ["Ask", "Session", "SessionError"]


class Session:
    """One conversation. Make one with `Session.start`; it is closed with `close` or as a context manager."""

    def __init__(
        self, *, settings: Settings, log: TranscriptLog, ident: str, cwd: Path, model: Model, approve: Approver | None
    ) -> None:
        self.settings, self.log, self.id, self.cwd, self.model = settings, log, ident, cwd, model
        self.root = workshop.workspace_root(cwd)
        self.approve = approve
        self.notices: list[str] = list(settings.warnings)
        self.safety = workshop.make_safety(settings, self.root, self.notices)
        self.permissions: Permissions = self.safety.permissions
        self.extensions = Extensions(settings.home, self.safety.trust, self.notices, bare=settings.bare)
        self.servers = workshop.make_servers(settings, self.safety, self.notices)
        self.name, self.spec = "", model.name
        self.limits = Limits(max_steps=settings.max_steps)
        self.usage = Usage()
        self.spent = Spent()
        self.subagents = Subagents(self)
        self._lines = Lines(lambda note: self.engine.append(note))
        self._heard: Heard | None = None
        self._task: asyncio.Task[Any] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._interrupting = False
        self._answered = False
        self._mode = ""
        self._is_new = not any(e.kind == "user" for e in log.entries)
        self._kept = logbook.kept(log.entries)
        note = lambda note: self.engine.append(note)  # noqa: E731  # the engine changes with the model
        self.hooks = workshop.make_hooks(
            settings, self.safety, self.notices, self._facts, note, resumed=not self._is_new
        )
        self._make_parts()

    def _facts(self) -> Facts:
        """What hooks are told of the session."""
        return Facts(self.id, str(self.log.path or ""), str(self.toolbox.ctx.cwd), self.permissions.mode)

    def _make_parts(self) -> None:
        profile = workshop.profile_of(self.model)
        self.toolbox = workshop.make_toolbox(self.settings, profile, self.root, self.cwd)
        self.toolbox.tools = {
            **with_task(self.toolbox.tools, self.settings, self.model, self.extensions),
            **self.servers.tools,
        }
        self.engine = workshop.make_engine(
            self.settings, profile, self.log, self.toolbox, self.notices, self.extensions
        )
        self.limits = workshop.limits_for(profile, self.limits)
        self.engine.set_window(self.model.window, self.model.window_source)
        ctx = self.toolbox.ctx
        ctx.recall, ctx.share = self.subagents.recall, self.engine.policy.share
        ctx.task = self.subagents.run
        self.safety.install(ctx)
        before = self.hooks.before_call if self.hooks else None
        self.permitting = Permitting(
            self.toolbox, self.safety, self.permissions.judge, lambda: self.approve, self.engine.append, before=before
        )
        logbook.restore_tools(ctx, self.engine.history.messages, self._kept)

    @classmethod
    def start(
        cls, settings: Settings, *, cwd: Path, approve: Approver | None = None, model: Model | None = None,
        resume: str = "", fork: bool = False, name: str = "", persist: bool = True, ask: Ask | None = None,
    ) -> Session:  # fmt: skip
        """A new session, or, with `resume` ("latest", an id or the beginning of one, a name, a path), an old one.

        `fork` continues an old one in a new file. Raises SessionError, ModelError (no such model), SettingsError.
        """
        cwd = Path(os.path.realpath(cwd))
        log, ident = logbook.open_log(settings, cwd, resume, fork, persist)
        try:
            known = logbook.kept(log.entries)
            cwd = logbook.cwd_of(known, cwd)
            spec = model.name if model else logbook.spec_for(settings, known, resume)
            model = model or make_model(spec, workshop.model_options(settings, log))
            logbook.begin(log, ident, cwd, spec, name, workshop.branch_of(workshop.workspace_root(cwd)))
            session = cls(settings=settings, log=log, ident=ident, cwd=cwd, model=model, approve=approve)
        except BaseException:
            log.close()
            if not resume:
                logbook.discard_if_empty(log)
            raise
        session.toolbox.ctx.ask = ask
        session._begin(ident, name, spec)
        return session

    def _begin(self, ident: str, name: str, spec: str) -> None:
        """Writes down where and by whom the session is opened, and takes up what its log says of it.

        `spec` is the model as it was named: a later resume makes the same one of it.
        """
        known = self._kept
        self.name, self.spec, self.usage = name or known.name, spec, known.usage
        self.notices += self.log.problems
        self._mode = known.mode
        if known.mode and self.settings.source("permission_mode") == "default":
            self.permissions.set_mode(known.mode)
        self.safety.replay(self.log.entries)
        lost = left_lines(self.log.entries)
        self.notices += [f"Said while it worked, and taken up now: {one_line(text, 200)}" for text in lost]
        self.notices += filter(None, (workshop.floor_words(self.engine), self.extensions.untrusted_words()))
        self.engine.append(logbook.opened(self.name, self.model.name))
        if self.name != known.name:
            self.engine.append(Note("name", name))
        if spec != known.spec:
            self.engine.append(Note("model", spec))
        for text in lost:
            self._write(User(text, "steered"))

    # -- a turn -----------------------------------------------------------------------------------------------------

    async def hear(self, text: str, images: Sequence[Image] = (), source: str = "typed") -> None:
        """Takes what the person said: it is on the disk when this returns, before anything slow begins, and `send` of
        the same goes on from there. Only a hook may keep it out of the log. Raises LogWriteError."""
        self._heard = await hear(User(text, source, tuple(images)), self.hooks, self._write)

    @property
    def heard(self) -> Entry | None:
        """The message that was taken and not sent yet; None where there is none."""
        return self._heard.entry if self._heard else None

    def _write(self, prompt: User) -> Entry:
        self.settle()
        return self.engine.append(prompt)

    async def send(self, text: str, images: Sequence[Image] = (), source: str = "typed") -> AsyncIterator[Event]:
        """One turn. The last event is TurnEnded; after `interrupt` its reason is "interrupted"."""
        self._interrupting = False
        turn = opening = self._opening(User(text, source, tuple(images)))
        try:
            while (event := await self._next(turn)) is not None:
                for one in self._with_notices(event):
                    yield one
                if isinstance(event, TurnEnded):
                    return
            turn = self._turn()
            while (event := await self._next(turn)) is not None:
                for one in self._with_notices(event):
                    yield one
        except asyncio.CancelledError:
            if not self._interrupting or self._task is None:
                raise
            self._task.uncancel()
            if turn is opening:
                self._stopped_early()
            else:
                self.usage = total(self.usage, self.spent.usage)
                self._sum_up()
            yield TurnEnded("interrupted")
        finally:
            self._task = self._heard = None
            await turn.aclose()

    async def _opening(self, prompt: User) -> AsyncGenerator[Event, None]:
        """What stands before a turn, the message first. Ends with TurnEnded where there can be no turn."""
        try:
            if self._heard is None or self._heard.prompt != prompt:
                await self.hear(prompt.text, prompt.images, prompt.source)
            assert self._heard is not None
            if self._heard.refused:
                yield TurnEnded("denied", message=self._heard.refused)
                return
            async for event in self.open_servers():
                yield event
            await workshop.know_window(self.model)
            self.engine.set_window(self.model.window, self.model.window_source)
            self.toolbox.ctx.share = self.engine.policy.share
            if refusal := workshop.floor_refusal(self.engine):
                self.engine.append(TurnEnd("error", refusal))
                yield TurnEnded("error", message=refusal, kind=ModelErrorKind.CONFIG)
        except LogWriteError as error:
            yield TurnEnded("error", message=str(error), kind="log")

    def _turn(self) -> AsyncGenerator[Event, None]:
        assert self._heard is not None and self._heard.entry is not None
        prompt = self._heard.entry
        after = partial(self.hooks.after_call, self.toolbox) if self.hooks else None
        self.spent = Spent(self.limits)
        crew = Crew(
            self.engine, self.model, self.toolbox, self.permitting.permit, self._lines.taken, self.limits,
            spent=self.spent, after=after,
        )  # fmt: skip
        return hooked_turn(self.hooks, crew, prompt) if self.hooks else run_turn(crew, prompt)

    def _with_notices(self, event: Event) -> Iterator[Event]:
        """An event, and what the person is told beside it."""
        self._note(event)
        for words in self.hooks.take_told() if self.hooks else ():
            yield Notice(words, "warning")
        yield event
        inner = event.event if isinstance(event, TaskEvent) else event
        if isinstance(inner, ToolFinished) and (words := told(inner.result.meta.get("redacted") or {})):
            yield Notice(words, "warning")

    async def open_servers(self) -> AsyncGenerator[Event, None]:
        """Starts the MCP servers and takes up their tools, once: from then on both are what they are."""
        if not self.servers.waiting:
            return
        yield Notice(self.servers.greeting)
        problems, before = await self.servers.connect(), self.engine.floor()
        if self.servers.tools:
            self._remake_parts()
        for problem in [*problems, *workshop.weight_words(self.engine, before)]:
            yield Notice(problem, "warning")

    def _stopped_early(self) -> None:
        """Writes down that a turn was stopped before the model could be asked."""
        if self._heard is not None and self._heard.entry is not None:
            with contextlib.suppress(LogWriteError):
                self.engine.append(TurnEnd("interrupted"))

    async def _next(self, turn: AsyncGenerator[Event, None]) -> Event | None:
        """The turn's next event. An interrupt that came between two events is obeyed before any call begins, else
        where the turn next waits."""
        self._task = task = asyncio.current_task()
        assert task is not None
        if self._interrupting and self._answered:
            await turn.athrow(asyncio.CancelledError())
        late = asyncio.get_running_loop().call_soon(task.cancel) if self._interrupting else None
        try:
            event = await anext(turn, None)
        finally:
            if late is not None:
                late.cancel()
        self._answered = isinstance(event, AnswerRecorded)
        self._task = None
        return event

    def interrupt(self) -> None:
        """Stops the running turn; everything that came is kept."""
        self._interrupting = True
        if self._task is not None:
            self._task.cancel()

    def steer(self, text: str) -> None:
        """Hands a line to the model at its next step."""
        self._lines.add(text)

    def take_back(self) -> str | None:
        """The newest line that was not handed over yet, taken out again."""
        return self._lines.take_back()

    def settle(self) -> None:
        """Answers calls that an interrupt or a crash left open. Raises LogWriteError."""
        self.subagents.settle()
        self.engine.close_open_calls()

    def _note(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            self.usage, self.spent = total(self.usage, event.usage), Spent()
            self._sum_up()

    def _sum_up(self) -> None:
        """Notes where the session stands, so that a resume and a list need not read all of it."""
        known = logbook.state(self.usage, self.name, self.spec, self._mode, self.toolbox.ctx, len(self.engine.history))
        with contextlib.suppress(LogWriteError):
            self.engine.append(Note("state", known))

    # -- beside the turns -------------------------------------------------------------------------------------------

    async def compact(self, focus: str = "") -> AsyncIterator[Event]:
        """Folds now, whatever the estimate says."""
        self.settle()
        decision = self.engine.should_compact()
        yield Compacting("asked", decision.estimated_tokens, decision.threshold)
        outcome = await self.engine.compact(self.model, cause="asked", focus=focus)
        if outcome.checkpoint is None:
            yield CompactFailed(outcome.reason, outcome.floor)
        else:
            yield Compacted(outcome.checkpoint, fold_line(outcome.checkpoint))

    async def preview_compact(self) -> tuple[CompactOutcome, list[Row]]:
        """What a fold would do now, and what it would take out of the view; changes nothing and asks no model."""
        outcome = await self.engine.plan(None)
        return outcome, ledger(self.engine, outcome.checkpoint) if outcome.checkpoint else []

    def context(self) -> ContextReport:
        """What fills the window and what is out of view."""
        return report_on(self.engine)

    def use_model(self, spec: str) -> None:
        """Goes on with another model. Raises ModelError where there is no such one; nothing has changed then."""
        model = make_model(spec, workshop.model_options(self.settings, self.log))
        before, self.model, self.spec = self.model, model, spec
        self.engine.append(Note("model", spec))
        self._remake_parts()
        self._leave(before)

    def _remake_parts(self) -> None:
        """New parts for another model or other tools; what the tools know goes over, and nothing is said twice."""
        tools, said = self.toolbox.ctx, len(self.notices)
        self._make_parts()
        ctx = self.toolbox.ctx
        ctx.state, ctx.seen, ctx.cwd, ctx.ask = tools.state, tools.seen, tools.cwd, tools.ask
        self.notices[said:] = [n for n in self.notices[said:] if n not in self.notices[:said]]

    def _leave(self, model: Model) -> None:
        """Closes a model that is not used any more: beside what goes on, or at once where no event loop runs."""
        try:
            task = asyncio.get_running_loop().create_task(workshop.close_model(model))
        except RuntimeError:
            asyncio.run(workshop.close_model(model))
        else:
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def finish(self) -> None:
        """Closes the model and waits for that; to be called before `close` where an event loop runs that will end."""
        await workshop.close_model(self.model)
        await asyncio.gather(*self._leaving)

    def set_mode(self, mode: str) -> None:
        """Changes the permission mode. Raises ValueError for a mode that does not exist."""
        self.permissions.set_mode(mode)
        self.servers.mode_changed()
        self._mode = mode
        self.engine.append(Note("mode", mode))

    def rename(self, name: str) -> None:
        """Gives the session a name, by which it can be resumed from anywhere."""
        self.name = name
        self.engine.append(Note("name", name))

    @property
    def path(self) -> Path | None:
        """The log's file; None where nothing is kept."""
        return self.log.path

    def close(self) -> None:
        """Ends what the tools left running and the model, and gives the log back. A session in which nothing was said
        leaves none."""
        workshop.close_tools(self.toolbox.ctx)
        self._leave(self.model)
        self.servers.close()
        self.safety.close()
        self.log.close()
        if self._is_new:
            logbook.discard_if_empty(self.log)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
