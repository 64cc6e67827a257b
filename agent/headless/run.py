"""One-shot: a prompt in, an answer out, an exit code that tells the truth."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.commands._own import expanded
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.headless.checks import Problem, answer_problem, run_check, schema_words
from agent.headless.conversation import Prompts, Said
from agent.headless.guard import Guard, Limits
from agent.headless.outcome import Outcome, error_words, of_error, of_turn
from agent.headless.output import Output
from agent.headless.pipes import OutputClosed
from agent.session import Session
from runtime.events import Notice, ToolFinished, TurnEnded
from runtime.model import ModelError
from transcripts.log import LogWriteError
from transcripts.records import Rewind

REPAIRS = 3
"""How often an answer that does not fit the schema is sent back."""
STOPPED = "interrupted"
"""The cause of a turn that was stopped by a request of the conversation."""
CHECK_ROUNDS = 5
"""How often a check's failure is sent back where no limit ends it before."""


@dataclass(frozen=True)
class Order:
    """What a one-shot run is to do. `schema` is a JSON Schema for the answer, `check` a shell command."""

    limits: Limits = field(default_factory=Limits)
    check: str = ""
    schema: dict[str, Any] | None = None
    last_message: Path | None = None


async def run_prompts(session: Session, prompts: Prompts, order: Order, output: Output) -> Outcome:
    """Runs prompts one after the other and reports each. Gives the outcome of the last that failed, else of the last;
    one that was stopped by request is no failure once another was answered.

    Obeys signals and limits; a run that was stopped takes no further prompt.
    """
    guard = Guard(order.limits, session.interrupt, on_stop=[output.hurry])
    run = _Run(session, order, output, guard)
    total = Outcome(Exit.USAGE, "no_prompt", "there was no prompt")
    with guard.watching():
        try:
            prompts.attend(run.cut_short, output.answer)
            await run.opened(prompts)
            while (said := await run.next_prompt(prompts)) is not None:
                outcome = await run.answered(said)
                passing = total.cause in ("no_prompt", STOPPED)
                total = outcome if not total.code or passing or outcome.code and outcome.cause != STOPPED else total
                if guard.stopped is not None:
                    break
        except OutputClosed as closed:
            total = run.stopped() if guard.stopped else Outcome(Exit.FAILED, "output_closed", str(closed))
        except Stop as stop:
            total = Outcome(stop.code, "input", stop.why)
            await output.result(total, guard)
        except asyncio.CancelledError:
            if guard.stopped is None:
                raise
            total = run.stopped()
            await output.result(total, guard)
        finally:
            await run.left(prompts)
    await session.finish()
    return total


def facts(session: Session) -> dict[str, Any]:
    """What the first line of a run tells of its session."""
    return {
        "session_id": session.id,
        "cwd": str(session.cwd),
        "model": session.model.name,
        "permissionMode": str(session.permissions.mode),
        "tools": list(session.toolbox.tools),
        "mcp_servers": session.servers.facts(),
        "apiKeySource": session.settings.source("api_key") if session.settings.api_key else "none",
        "meta": {"short": session.name or session.id, "log": str(session.path or ""), "window": session.model.window},
    }


@dataclass
class _Run:
    """The turns of one run."""

    session: Session
    order: Order
    output: Output
    guard: Guard
    lost: str = ""
    _first: asyncio.Task[Said | None] | None = None
    _taken: bool = False
    _in_turn: bool = False

    async def opened(self, prompts: Prompts) -> None:
        """Tells what session this is; its MCP servers are started before, for they bring tools. The first message is
        taken as soon as it is there, and does not wait for them."""
        self.guard.idle = True
        self._first = asyncio.create_task(self._take(prompts))
        await asyncio.sleep(0)
        async for event in self.session.open_servers():
            await self.output.event(event)
        self.guard.idle = False
        await self.output.start(facts(self.session))
        for notice in self.session.notices:
            await self.output.event(Notice(notice, "warning"))

    async def left(self, prompts: Prompts) -> None:
        """Takes no more messages."""
        if self._first is not None:
            self._first.cancel()
            with suppress(asyncio.CancelledError, Stop):
                await self._first
        await prompts.leave()

    def cut_short(self) -> bool:
        """Stops the message that is worked on, for whoever said it; False where there is none."""
        if not self._taken:
            return False
        self.guard.cut = True
        self.guard.end_beside()
        if self._in_turn:
            self.session.interrupt()
        return True

    async def next_prompt(self, prompts: Prompts) -> Said | None:
        """The next prompt; None at the end, and where the run was stopped while it waited."""
        self.guard.idle = True
        first, self._first = self._first, None
        try:
            return await (first or self._take(prompts))
        except asyncio.CancelledError:
            if self.guard.stopped is None:
                raise
            await self.output.result(self.stopped(), self.guard)
            return None
        finally:
            self.guard.idle = False

    async def _take(self, prompts: Prompts) -> Said | None:
        """The next prompt, in the log already. One that begins with the name of a command of the person's is what that
        says."""
        said = await prompts.next()
        if said is not None:
            self._taken, self.guard.cut = True, said.cut
            said.text = await self._expanded(said.text)
            with suppress(LogWriteError):  # the turn will tell
                await self.session.hear(self._asked(said.text))
        return said

    async def answered(self, said: Said) -> Outcome:
        """The outcome of one prompt, reported."""
        self.guard.denied.clear()
        try:
            outcome = await self.prompt(said.text)
        except asyncio.CancelledError:
            if self.guard.stopped is None:
                raise
            outcome = self.stopped()
        self._taken = self.guard.cut = False
        if not self.lost:
            await self.output.result(outcome, self.guard)
        return _kept(self.order, outcome)

    async def _expanded(self, text: str) -> str:
        told = len(self.session.notices)
        text = expanded(self.session, text)
        for notice in self.session.notices[told:]:
            await self.output.event(Notice(notice, "warning"))
        return text

    async def prompt(self, text: str) -> Outcome:
        """One prompt with all that the order asks of its answer: check and schema, sent back until they hold.

        A small model begins anew with the task and the last failure: its own failed tries would only be repeated.
        """
        rounds = {"check": CHECK_ROUNDS, "schema": REPAIRS}
        ask = task = self._asked(text)
        source, start = "typed", self._before_it()
        while True:
            outcome, problem = await self._round(ask, source)
            if problem is None or outcome.code:
                return outcome
            rounds[problem.of] -= 1
            if rounds[problem.of] < 0:
                return replace(outcome, code=problem.code, cause=problem.cause, why=problem.why)
            if found := self.guard.over():
                return replace(outcome, code=found[0], cause=found[1], why=f"{found[2]}; {problem.why}")
            ask, source = problem.message, "harness"
            if getattr(self.session.model, "small", False):
                self.session.engine.append(Rewind(start))
                ask = f"{task}\n\n{problem.brief}"

    def _asked(self, text: str) -> str:
        return text + (schema_words(self.order.schema) if self.order.schema is not None else "")

    def _before_it(self) -> int:
        """The number of the record before the message that was taken."""
        entry = self.session.heard
        entries = self.session.log.entries
        return entry.seq - 1 if entry is not None else entries[-1].seq if entries else 0

    async def _round(self, text: str, source: str) -> tuple[Outcome, Problem | None]:
        ended = await self._turn(text, source)
        outcome = self._outcome(ended)
        if outcome.cause == "stuck" and self.order.check:
            outcome = Outcome(Exit.OK, text=outcome.text, stop_reason="end_turn")  # the check tells what it was worth
        if outcome.code:
            return outcome, None
        problem = await self._verify(ended)
        if self.guard.stopped is not None:
            return self.stopped(), None
        if self.guard.cut:
            return Outcome(Exit.INTERRUPTED, STOPPED, "interrupted by request", outcome.text), None
        if problem is None and self.order.schema is not None:
            _, outcome = answer_problem(self.order.schema, outcome)
        return outcome, problem

    async def _turn(self, text: str, source: str) -> TurnEnded:
        self.session.limits = self._remaining()
        ended = TurnEnded("interrupted")
        async for event in self.session.send(text, source=source):
            self.guard.see(event)
            if self.guard.cut and not self._in_turn:
                self.session.interrupt()  # it was asked for before there was a turn
            self._in_turn = True
            if isinstance(event, TurnEnded):
                ended = event
            if not self.lost:
                try:
                    await self.output.event(event)
                except OutputClosed as closed:
                    self.lost = str(closed)
                    self.guard.stop(Exit.FAILED, "output_closed", self.lost)
        self._in_turn = False
        return ended

    def _remaining(self) -> Any:
        """The turn's limits: the session's own, or what is left of the command's where that is less."""
        limits, used = self.order.limits, self.guard.usage
        now = self.session.limits
        if limits.turns is not None:
            left = max(1, limits.turns - self.guard.requests)
            now = replace(now, max_steps=left, max_requests=left)
        if limits.tokens is not None:
            now = replace(now, max_tokens=max(1, limits.tokens - (used.input or 0) - (used.output or 0)))
        if limits.usd is not None:
            now = replace(now, max_cost=max(1e-9, limits.usd - (used.cost or 0.0)))
        return now

    def _outcome(self, ended: TurnEnded) -> Outcome:
        if self.guard.stopped is not None:
            return self.stopped()
        if self.guard.cut and ended.reason == "interrupted":
            return Outcome(Exit.INTERRUPTED, STOPPED, "interrupted by request", ended.text or self.guard.answer)
        denied = [self._denial(event) for event in self.guard.denied]
        outcome = of_turn(ended, denied)
        if outcome.code == Exit.LIMIT and (found := self.guard.over()):
            outcome = replace(outcome, cause=found[1], why=found[2])
        return replace(outcome, stop_reason="end_turn" if not outcome.code else "")

    def _denial(self, event: ToolFinished) -> str:
        """A refused call, why, and the option that would allow it."""
        title, facts = self.session.toolbox.title(event.call.name, event.call.args), event.result.meta
        reason = facts.get("reason") or event.result.text.strip("[]")
        way = "".join(f" --allow {shlex.quote(rule)}" for rule in str(facts.get("rule", "")).splitlines())
        return f"{title} ({reason})" + (f"; to allow it:{way}" if way else "")

    def stopped(self) -> Outcome:
        """The outcome of a run that the guard stopped, with what had been said until then."""
        cause = self.guard.stopped
        assert cause is not None
        return Outcome(cause.code, cause.cause, cause.why, self.guard.answer)

    async def _verify(self, ended: TurnEnded) -> Problem | None:
        if self.order.check:
            problem = await run_check(self.order.check, self.session.cwd, self.guard, self.session.toolbox.ctx.env)
            if problem is not None:
                return problem
        if self.order.schema is not None:
            return answer_problem(self.order.schema, Outcome(Exit.OK, text=ended.text))[0]
        return None


def _kept(order: Order, outcome: Outcome) -> Outcome:
    """Writes --output-last-message; a file that cannot be written is a failure of a run that had none."""
    if order.last_message is None or not outcome.text:
        return outcome
    try:
        order.last_message.write_text(outcome.text + ("" if outcome.text.endswith("\n") else "\n"), encoding="utf-8")
    except OSError as error:
        why = f"the answer could not be written to {order.last_message}: {reason(error, order.last_message)}"
        return outcome if outcome.code else replace(outcome, code=Exit.FAILED, cause="output_file", why=why)
    return outcome


def failed(error: ModelError) -> Outcome:
    """The outcome where not even a session could be opened for want of a model."""
    code, cause = of_error(error.kind)
    return Outcome(code, cause, error_words(error.kind, error.message))
