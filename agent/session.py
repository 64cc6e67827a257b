"""Session: one conversation, from the first word to the last, in this process and after it.

Open, resume or fork; `send` gives the events of one turn; `steer` hands in lines while it works; `interrupt` stops it
and keeps everything. A session owns its log, engine, tools, model and permissions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from agent import workshop
from agent.models import make_model
from agent.permissions import Approval, Approver, Judgement, Permissions, Verdict
from agent.settings import Settings
from agent.version import VERSION
from runtime.context.compact import CompactOutcome
from runtime.context.ledger import Row, ledger
from runtime.context.report import ContextReport, report_on
from runtime.crew import Crew, Limits, Permit, total
from runtime.events import AnswerRecorded, Compacted, CompactFailed, Compacting, Event, TurnEnded
from runtime.folding import fold_line
from runtime.loop import run_turn
from runtime.model import Model, ModelErrorKind
from tools.base import Tool, check_arguments
from transcripts.catalog import NotFound, find_session, new_path
from transcripts.lines import VersionError
from transcripts.log import LogHeld, TranscriptLog
from transcripts.records import Image, Note, SessionStart, ToolCall, Usage, User

Ask = Callable[[str, Sequence[str]], Awaitable[str]]


class SessionError(Exception):
    """A session that cannot be opened; the message says why and what to do."""


class Session:
    """One conversation. Make one with `Session.start`; it is closed with `close` or as a context manager."""

    def __init__(
        self, *, settings: Settings, log: TranscriptLog, ident: str, cwd: Path, model: Model, approve: Approver | None
    ) -> None:
        self.settings, self.log, self.id, self.cwd, self.model = settings, log, ident, cwd, model
        self.root = workshop.workspace_root(cwd)
        self.approve = approve
        self.permissions: Permissions = workshop.make_permissions(settings, self.root)
        self.notices: list[str] = []
        self.name = ""
        self.limits = Limits(max_steps=settings.max_steps)
        self.usage = Usage()
        self._lines: list[str] = []
        self._task: asyncio.Task[Any] | None = None
        self._interrupting = False
        self._answered = False
        self._make_parts()

    def _make_parts(self) -> None:
        profile = workshop.profile_of(self.model)
        self.toolbox = workshop.make_toolbox(self.settings, profile, self.root, self.cwd)
        self.engine = workshop.make_engine(self.settings, profile, self.log, self.toolbox, self.notices)
        self.limits = workshop.limits_for(profile, self.limits)
        self.engine.set_window(self.model.window, self.model.window_source)
        ctx = self.toolbox.ctx
        ctx.recall, ctx.share = self.engine.recall, self.engine.policy.share
        workshop.restore_tools(ctx, self.engine.history.messages)

    @classmethod
    def start(
        cls, settings: Settings, *, cwd: Path, approve: Approver | None = None, model: Model | None = None,
        resume: str = "", fork: bool = False, name: str = "", persist: bool = True, ask: Ask | None = None,
    ) -> Session:  # fmt: skip
        """A new session, or, with `resume` ("latest", an id or the beginning of one, a name, a path), an old one.

        `fork` continues an old one in a new file. Raises SessionError, ModelError (no such model), SettingsError.
        """
        cwd = cwd.resolve()
        log, ident = _open_log(settings.home, cwd, resume, fork, persist)
        try:
            spec = model.name if model else _spec_for(settings, log, resume)
            model = model or make_model(spec, workshop.model_options(settings, log))
            session = cls(settings=settings, log=log, ident=ident, cwd=_cwd_of(log, cwd), model=model, approve=approve)
        except BaseException:
            log.close()
            if not log.entries and log.path:
                log.path.unlink(missing_ok=True)
            raise
        session.toolbox.ctx.ask = ask
        session._begin(ident, name, spec)
        return session

    def _begin(self, ident: str, name: str, spec: str) -> None:
        """Writes down where and by whom the session is opened, and takes up what its log says of it.

        `spec` is the model as it was named: a later resume makes the same one of it.
        """
        if not any(e.kind == "session" for e in self.log.entries[:3]):
            branch = workshop.branch_of(self.root)
            self.log.append(SessionStart(ident, str(self.cwd), f"refold {VERSION}", spec, name, branch))
        notes = {e.record.key: e.record.value for e in self.log.entries if e.kind == "note"}
        start = next((e.record for e in self.log.entries if e.kind == "session"), None)
        self.name = name or notes.get("name") or (start.name if start else "")
        for entry in self.log.entries:
            if entry.kind == "usage":
                self.usage = total(self.usage, entry.record)
        self.notices += self.log.problems
        if floor := workshop.floor_words(self.engine):
            self.notices.append(floor)
        self.engine.append(Note("opened", {"pid": os.getpid(), "name": self.name, "model": self.model.name}))
        if name and notes.get("name") != name:
            self.engine.append(Note("name", name))
        if spec != next((m for e in reversed(self.log.entries) if (m := _model_of(e))), ""):
            self.engine.append(Note("model", spec))

    # -- a turn -----------------------------------------------------------------------------------------------------

    async def send(self, text: str, images: Sequence[Image] = (), source: str = "typed") -> AsyncIterator[Event]:
        """One turn. The last event is TurnEnded; after `interrupt` its reason is "interrupted"."""
        self.engine.set_window(self.model.window, self.model.window_source)
        self.toolbox.ctx.share = self.engine.policy.share
        if refusal := workshop.floor_refusal(self.engine):
            yield TurnEnded("error", message=refusal, kind=ModelErrorKind.CONFIG)
            return
        crew = Crew(self.engine, self.model, self.toolbox, self._permit, self._steered, self.limits)
        turn = run_turn(crew, User(text, source, tuple(images)))
        self._interrupting = False
        try:
            while (event := await self._next(turn)) is not None:
                self._note(event)
                yield event
        except asyncio.CancelledError:
            if not self._interrupting or self._task is None:
                raise
            self._task.uncancel()
            yield TurnEnded("interrupted")
        finally:
            self._task = None
            await turn.aclose()

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
        self._lines.append(text)

    def take_back(self) -> str | None:
        """The newest line that was not handed over yet, taken out again."""
        return self._lines.pop() if self._lines else None

    def _steered(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _note(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            self.usage = total(self.usage, event.usage)

    async def _permit(self, call: ToolCall) -> Permit:
        """Whether a call may run: by mode and rules, else by asking the person."""
        tool, ctx = self.toolbox.tools[call.name], self.toolbox.ctx
        problem, args = check_arguments(tool.schema, call.args)
        if problem:
            return Permit(True)
        judgement = self.permissions.judge(tool, args, ctx)
        if judgement.decision == "ask":
            return await self._put_question(call, tool, args, judgement)
        if judgement.decision == "deny":
            return Permit(False, f"[Denied: {judgement.reason}]")
        return Permit(True)

    async def _put_question(self, call: ToolCall, tool: Tool, args: dict[str, Any], judgement: Judgement) -> Permit:
        if self.approve is None:
            way = f" The rule that would allow it: {judgement.rule}" if judgement.rule else ""
            return Permit(False, f"[Not allowed, and nobody is here to ask: {judgement.reason}{way}]")
        preview = tool.preview(self.toolbox.ctx, args) if tool.preview else str(args.get("command", ""))
        title = self.toolbox.title(call.name, args)
        verdict: Verdict = await self.approve(Approval(call, title, tool.effect, preview, judgement))
        if not verdict.allow:
            said = f" They said: {verdict.message}" if verdict.message else ""
            return Permit(False, f"[The person did not allow this call.{said}]")
        if verdict.scope != "once" and judgement.rule:
            for rule in judgement.rule.splitlines():
                self.permissions.remember(rule, verdict.scope)
        return Permit(True)

    # -- beside the turns -------------------------------------------------------------------------------------------

    async def compact(self, focus: str = "") -> AsyncIterator[Event]:
        """Folds now, whatever the estimate says."""
        self.engine.close_open_calls()
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
        self.model = model
        self.engine.append(Note("model", spec))
        self._make_parts()

    def set_mode(self, mode: str) -> None:
        """Changes the permission mode. Raises ValueError for a mode that does not exist."""
        self.permissions.set_mode(mode)
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
        """Ends what the tools left running and gives the log back."""
        workshop.close_tools(self.toolbox.ctx)
        self.log.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _open_log(home: Path, cwd: Path, resume: str, fork: bool, persist: bool) -> tuple[TranscriptLog, str]:
    """(log, id): a new one, one that exists, or a copy of one."""
    if not resume:
        ident, path = new_path(home, cwd)
        try:
            return (TranscriptLog.create(path) if persist else TranscriptLog.memory()), ident
        except OSError as error:
            raise SessionError(f"The session cannot be written to {path.parent}: {error.strerror}") from error
    try:
        path = find_session(home, cwd, resume)
        if fork:
            return _fork(home, cwd, path)
        log = TranscriptLog.open(path)
    except NotFound as error:
        raise SessionError(str(error)) from error
    except LogHeld as error:
        raise SessionError(f"{error}. Close it there, or go on in a copy with --fork-session.") from error
    except (VersionError, OSError) as error:
        raise SessionError(f"The session {resume} cannot be opened: {error}") from error
    start = next((e.record for e in log.entries if e.kind == "session"), None)
    return log, start.id if start else path.stem.rpartition("-")[2]


def _fork(home: Path, cwd: Path, source: Path) -> tuple[TranscriptLog, str]:
    """A new session that begins with everything another one said; the name stays with the other one."""
    old = TranscriptLog.open(source, readonly=True)
    ident, path = new_path(home, cwd)
    log = TranscriptLog.create(path)
    start = next((e.record for e in old.entries if e.kind == "session"), None)
    last = old.entries[-1].seq if old.entries else 0
    model, parent = (start.model, start.id) if start else ("", "")
    log.append(SessionStart(ident, str(cwd), f"refold {VERSION}", model, parent=parent, parent_seq=last))
    workshop.copy_entries(old, log)
    log.append(Note("name", ""))
    old.close()
    return log, ident


def _cwd_of(log: TranscriptLog, cwd: Path) -> Path:
    """Where the session works: where it began, as long as that folder is there."""
    start = next((e.record for e in log.entries if e.kind == "session"), None)
    began = Path(start.cwd) if start and start.cwd else cwd
    return began if began.is_dir() else cwd


def _spec_for(settings: Settings, log: TranscriptLog, resume: str) -> str:
    """The model named on the command line, else the one the session used last, else the configured one."""
    if resume and not settings.source("model").startswith("--"):
        return next((m for e in reversed(log.entries) if (m := _model_of(e))), "") or settings.model
    return settings.model


def _model_of(entry: Any) -> str:
    if entry.kind == "note" and entry.record.key == "model":
        return str(entry.record.value)
    return entry.record.model if entry.kind == "session" else ""
