"""Running the calls of one answer: asked for, durable before any effect, each answered exactly once, in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby
from typing import Any

from runtime.context.hashes import bytes_hash, file_hash
from runtime.context.redact import MARK
from runtime.crew import Crew, Turn
from runtime.events import Event, ToolFinished, ToolProgress, ToolStarted
from tools.base import Picture, ToolFailure, ToolOutput, check_arguments
from transcripts import records
from transcripts.log import LogWriteError
from transcripts.records import Image, ToolCall, ToolResult

_STUCK = "the same call gave the same result {count} times in a row"
_NUDGE = (
    "[This is time {count} that this call gave this very result. Asking again will not change it: "
    "do something else, or say what stands in the way.]"
)
_MARKED = (
    "[Not run: {mark} stands where a key was that you are not shown. Writing it would put the mark into the file in "
    "the place of the key. Change only what stands around it.]"
)


PART = "interrupted"
"""Where in ctx.state a tool that is stopped leaves a ToolOutput with what there is of its result."""

_CUT = "[Stopped while it ran; above is what it had printed. Look at what it did before you repeat it.]"


async def run_calls(crew: Crew, turn: Turn, calls: Sequence[ToolCall]) -> AsyncIterator[Event]:
    """Runs calls in order; reading ones that stand together run side by side. Every call gets its result."""
    for reading, group in groupby(calls, key=lambda call: effect_of(crew, call) == "read"):
        batch = list(group)
        if reading and len(batch) > 1:
            async for event in _side_by_side(crew, turn, batch):
                yield event
            continue
        for call in batch:
            async for event in _one(crew, turn, call):
                yield event


async def refuse_calls(crew: Crew, calls: Sequence[ToolCall], why: str) -> AsyncIterator[Event]:
    """Answers calls that are not run with the reason."""
    for call in calls:
        yield _finish(crew, call, ToolResult(call.id, call.name, why, "not_run"))


def effect_of(crew: Crew, call: ToolCall) -> str:
    """read, write or execute; a tool that does not exist reads."""
    found = crew.toolbox.tools.get(call.name)
    if found is None:
        return "read"
    return found.effect_of(call.args) if found.effect_of else found.effect


async def _one(crew: Crew, turn: Turn, call: ToolCall) -> AsyncIterator[Event]:
    refusal = await _refusal(crew, turn, call)
    if refusal is not None:
        yield _finish(crew, call, refusal)
        return
    yield _start(crew, call)
    said: asyncio.Queue[Event] = asyncio.Queue()
    crew.toolbox.ctx.progress = lambda text: said.put_nowait(ToolProgress(call, text))
    crew.toolbox.ctx.tell = said.put_nowait
    crew.toolbox.ctx.state.pop(PART, None)
    task = asyncio.ensure_future(crew.toolbox.run(call.name, call.args, call.id))
    try:
        async for event in _while_running(task, said):
            yield event
        output = await task
    except asyncio.CancelledError:
        await _stopped(task)
        _keep_part(crew, call)
        raise
    finally:
        await _stopped(task)
    result = _result(crew, turn, call, output)
    try:
        if crew.after is not None:
            result = await crew.after(call, result)
    finally:  # the call has run: its result is kept, also where what comes after it is stopped
        finished = _finish(crew, call, result, output.keep)
    yield finished


async def _while_running(task: asyncio.Future[Any], said: asyncio.Queue[Event]) -> AsyncIterator[Event]:
    """What running calls show, as it comes, until they are done."""
    while not task.done():
        waiting = asyncio.ensure_future(said.get())
        try:
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                yield waiting.result()
        finally:
            waiting.cancel()
    while not said.empty():
        yield said.get_nowait()


async def _stopped(task: asyncio.Future[Any]) -> None:
    """A call whose turn was stopped is stopped too, and waited for: it may have to end its processes."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # looked at: calls gathered and cancelled would else be complained of when they are gone


def _keep_part(crew: Crew, call: ToolCall) -> None:
    """Records what a stopped call leaves behind, where its tool says so; else its fate is told with the next turn."""
    part = crew.toolbox.ctx.state.pop(PART, None)
    if isinstance(part, ToolOutput):
        result = ToolResult(call.id, call.name, f"{part.text.rstrip()}\n{_CUT}", "interrupted", meta=part.meta)
        with contextlib.suppress(LogWriteError):
            crew.engine.append_result(result, part.keep)


async def _side_by_side(crew: Crew, turn: Turn, calls: list[ToolCall]) -> AsyncIterator[Event]:
    """Reading calls at once; results are kept in the order of the calls, and one failure does not lose the others."""
    refusals = [await _refusal(crew, turn, call) for call in calls]
    runs = [
        _nothing() if refused else crew.toolbox.run(call.name, call.args, call.id)
        for call, refused in zip(calls, refusals, strict=True)
    ]
    for call, refused in zip(calls, refusals, strict=True):
        if refused is None:
            yield _start(crew, call)
    said: asyncio.Queue[Event] = asyncio.Queue()
    crew.toolbox.ctx.progress = lambda text: None
    crew.toolbox.ctx.tell = said.put_nowait
    running = asyncio.gather(*runs, return_exceptions=True)
    try:
        async for event in _while_running(running, said):
            yield event
        outputs = await running
    finally:
        await _stopped(running)
    results = [
        None if isinstance(output, BaseException) else refused or _result(crew, turn, call, output or ToolOutput(""))
        for call, refused, output in zip(calls, refusals, outputs, strict=True)
    ]
    try:
        if crew.after is not None:
            for n, (call, refused, result) in enumerate(zip(calls, refusals, results, strict=True)):
                results[n] = await crew.after(call, result) if result is not None and refused is None else result
    finally:
        with crew.engine.log.together():
            finished = [
                _finish(crew, call, result, output.keep if isinstance(output, ToolOutput) else "both")
                for call, result, output in zip(calls, results, outputs, strict=True)
                if result is not None
            ]
    for event in finished:
        yield event
    for bug in (o for o in outputs if isinstance(o, BaseException)):
        raise bug


async def _nothing() -> None:
    return None


async def _refusal(crew: Crew, turn: Turn, call: ToolCall) -> ToolResult | None:
    """The result of a call that may not run; None where it may."""
    if call.problem:
        return ToolResult(call.id, call.name, f"[Not run: {call.problem}]", "error")
    if call.name not in crew.toolbox.tools:
        known = ", ".join(crew.toolbox.tools)
        return ToolResult(call.id, call.name, f"There is no tool {call.name!r}. The tools are: {known}.", "error")
    if effect_of(crew, call) == "write" and (mark := MARK.search(call.arguments)):
        return ToolResult(call.id, call.name, _MARKED.format(mark=mark[0]), "error")
    permit = await crew.approve(call)
    if permit.allow:
        return None
    turn.denials.append(crew.toolbox.title(call.name, call.args))
    facts = {"reason": permit.reason, "rule": permit.rule} if permit.reason else {}
    words = permit.message or "[The person did not allow this call.]"
    return ToolResult(call.id, call.name, words, "denied", meta=facts)


def _start(crew: Crew, call: ToolCall) -> Event:
    effect = effect_of(crew, call)
    if effect != "read":
        crew.engine.append(records.ToolStarted(call.id, call.name, effect, *_hashes(crew, call)))
    return ToolStarted(call, effect, crew.toolbox.title(call.name, call.args))


def _hashes(crew: Crew, call: ToolCall) -> tuple[dict[str, str], dict[str, str]]:
    """Content hashes of the files a call says it will write, as they are and as it will leave them, so that a crash
    can be judged later. What the call would refuse has none."""
    tool, ctx = crew.toolbox.tools[call.name], crew.toolbox.ctx
    problem, args = check_arguments(tool.schema, call.args)
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    if problem:
        return before, after
    with contextlib.suppress(ToolFailure, ValueError, TypeError, KeyError, AttributeError, OSError):
        before = {str(path): file_hash(path) for path in (tool.writes(ctx, args) if tool.writes else ())}
        after = {str(path): bytes_hash(data) for path, data in (tool.after(ctx, args) if tool.after else {}).items()}
    return before, after


def _result(crew: Crew, turn: Turn, call: ToolCall, output: ToolOutput) -> ToolResult:
    text = output.text
    count = _repeats(turn, call, text)
    if crew.limits.nudge_at and count >= crew.limits.nudge_at:
        text = f"{_NUDGE.format(count=count)}\n{text}"
    if crew.limits.stop_at and count >= crew.limits.stop_at:
        turn.stuck = _STUCK.format(count=count)
    images = tuple(_images(crew, output.pictures))
    return ToolResult(call.id, call.name, text, "ok" if output.ok else "error", images=images, meta=output.meta)


def _repeats(turn: Turn, call: ToolCall, text: str) -> int:
    key = (call.name, call.arguments)
    before, count = turn.seen.get(key, ("", 0))
    count = count + 1 if before == text else 1
    turn.seen[key] = (text, count)
    return count


def _images(crew: Crew, pictures: Sequence[Picture]) -> Iterator[Image]:
    for picture in pictures:
        yield Image(crew.engine.log.blobs.put(picture.data), picture.media)


def _finish(crew: Crew, call: ToolCall, result: ToolResult, keep: str = "both") -> Event:
    entry = crew.engine.append_result(result, keep)
    return ToolFinished(call, entry.record, entry.seq)
