"""bash: a command in the session's shell directory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from tools._clean import clean
from tools._files import shown
from tools._jobs import Job, close_jobs, final_cwd, head_and_tail, jobs_of, kill, settle, start, stop, watch
from tools.base import ToolContext, ToolFailure, ToolOutput, failed_parts, tool

MAX_TEXT = 16_000_000
"""Bytes of output given in one result, half from each end: what of it is kept for as long as the session is. The file
with all of it is named too, and goes when the session ends."""

MAX_SECONDS = 3600
"""The longest wait for a command before it goes on in the background."""

_FIRST_LOOK = 0.5
"""Seconds a background command is watched, so that one that fails at once says so."""

__all__ = ["TOOL", "bash", "close_jobs"]


def _title(args: Mapping[str, Any]) -> str:
    return "$ " + " ".join(str(args.get("command", "")).split())[:200]


@tool(effect="execute", title=_title)
async def bash(
    ctx: ToolContext,
    command: Annotated[str, "Command line"],
    timeout: Annotated[int, "Seconds; a longer command goes on in the background"] = 120,
    background: Annotated[bool, "Return at once; see jobs"] = False,
    outside: Annotated[bool, "Ask the person to let it run outside of the sandbox"] = False,
) -> ToolOutput:
    """Runs a command with bash. The working directory is kept between calls. There is no input and no terminal."""
    if not command.strip():
        raise ToolFailure("The command is empty.")
    if "\0" in command:
        raise ToolFailure("A command cannot contain a NUL character.")
    note = recover_cwd(ctx)
    seconds = _seconds(timeout)
    job = start(ctx, command, ctx.cwd)
    try:
        ended = await watch(job, _FIRST_LOOK if background else seconds, ctx.progress)
    except asyncio.CancelledError:
        await _cancelled(ctx, job)
        raise
    return _finished(ctx, job, note) if ended else _moved(ctx, job, note, 0 if background else seconds)


TOOL = bash


def _seconds(timeout: int) -> float:
    """Values beyond MAX_SECONDS are what programs that count in milliseconds call a timeout."""
    return max(1.0, float(timeout) if timeout <= MAX_SECONDS else min(timeout / 1000, MAX_SECONDS))


def recover_cwd(ctx: ToolContext) -> str:
    """Moves out of a working directory that is gone; says so, or ""."""
    if os.path.isdir(ctx.cwd):
        return ""
    gone = ctx.cwd
    ctx.cwd = next(p for p in (ctx.root, *gone.parents, Path("/")) if os.path.isdir(p))
    return f"(cwd was reset to {ctx.cwd}: {gone} no longer exists)\n"


async def _cancelled(ctx: ToolContext, job: Job) -> None:
    """Ends all of it; what it had printed is left in ctx.state["interrupted"] for who wants to record it."""
    try:
        await stop([job])
    finally:
        kill([job])
        final_cwd(job)
        ctx.state["interrupted"] = out = _result(ctx, job, "[interrupted]", ok=False)
        if "output" not in out.meta:
            _drop(ctx, job)


def _finished(ctx: ToolContext, job: Job, note: str) -> ToolOutput:
    moved = _follow(ctx, job)
    code = job.exit_code or 0
    tail = [ended_words(job)] if code or job.overflowed else []
    if hidden_failure(job.pipe):
        tail.append(f"[exit codes in the pipe: {', '.join(map(str, job.pipe))}]")
    running = settle(ctx, job)
    if running:
        tail.append(f"[it left processes running: job {job.id}; jobs can read and stop it]")
    if code and job.confined and _REFUSED.search(_end_of(job)):
        tail.append("[it ran in the sandbox; outside=true asks the person to let it run outside]")
    tail += ctx.refused(job.argv)
    if moved:
        tail.append(f"[cwd: {ctx.cwd}]")
    out = _result(ctx, job, "\n".join([*tail, *ended_jobs(ctx)]), ok=code == 0 and not job.overflowed, note=note)
    if not running and "output" not in out.meta:
        _drop(ctx, job)
    return out


_REFUSED = re.compile(
    r"read-only file system|permission denied|operation not permitted|network is unreachable|could not resolve host"
    r"|name resolution|name or service not known|getaddrinfo|connection refused",
    re.IGNORECASE,
)
"""What programs say when the sandbox stops them."""


def _end_of(job: Job) -> str:
    with open(job.output, "rb") as f:
        f.seek(max(0, job.size() - 4000))
        return f.read(4000).decode("utf-8", "replace")


def _follow(ctx: ToolContext, job: Job) -> bool:
    """Takes the shell's last directory as the session's; True if it is another one."""
    last = final_cwd(job)
    if not last.startswith("/") or Path(last) == ctx.cwd:
        return False
    ctx.cwd = Path(last)
    return True


def _moved(ctx: ToolContext, job: Job, note: str, seconds: float) -> ToolOutput:
    """A command that goes on in the background."""
    settle(ctx, job)
    why = f"timed out after {seconds:g} s and goes on in the background" if seconds else "runs in the background"
    words = f"[{why} as job {job.id}; jobs can read it, wait for it and stop it]"
    return _result(ctx, job, "\n".join([*ctx.refused(job.argv), words]), ok=True, note=note)


def _result(ctx: ToolContext, job: Job, tail: str, ok: bool, note: str = "") -> ToolOutput:
    text, left_out = take_output(job)
    meta: dict[str, Any] = {
        "command": job.command,
        "exit_code": job.exit_code,
        "seconds": round(job.seconds, 3),
        "cwd": str(ctx.cwd),
    }
    if job.exit_code is None:
        meta["job"] = job.id
    if hidden_failure(job.pipe):
        meta["pipe"] = list(job.pipe)
    if left_out:
        meta["output"] = str(job.output)
        tail = f"{cut_words(ctx, job)}\n{tail}".rstrip()
    body = text.rstrip("\n")
    if not body:
        body = "(no output)" + (", exit code 0" if job.exit_code == 0 and ok else "")
    return ToolOutput(note + "\n".join(part for part in (body, tail) if part), ok=ok, meta=meta, keep="both")


def hidden_failure(codes: Sequence[int]) -> bool:
    """Whether a part of a pipe failed that the shell's exit code does not tell of."""
    return bool(failed_parts(codes[:-1]))


def cut_words(ctx: ToolContext, job: Job) -> str:
    """What is said where not all of the output is given."""
    return f"[truncated: head and tail kept; till the session ends, the whole output is in {shown(ctx, job.output)}]"


def take_output(job: Job) -> tuple[str, int]:
    """The output not given yet, cleaned, and how many bytes of it were left out."""
    size = job.size()
    text, left_out = head_and_tail(job.output, job.told, MAX_TEXT)
    job.told = max(size, job.told)
    lost = f"\n[{job.output.parent} takes nothing more: what it printed after this is lost]" if job.no_room() else ""
    return clean(text) + lost, left_out


def ended_words(job: Job) -> str:
    """How a command ended, as the last line of its result."""
    code = job.exit_code or 0
    if job.overflowed:
        return "[stopped: it printed more than 2 GB]"
    return f"[killed by signal {-code}]" if code < 0 else f"[exit code {code}]"


def ended_jobs(ctx: ToolContext) -> list[str]:
    """Background jobs that ended since the last word about them, one line each."""
    lines: list[str] = []
    for job in jobs_of(ctx).jobs.values():
        if job.exit_code is not None and not job.alive() and not job.announced:
            job.announced = True
            lines.append(f"[job {job.id} has ended: exit code {job.exit_code}; jobs can read its output]")
    return lines


def _drop(ctx: ToolContext, job: Job) -> None:
    jobs_of(ctx).jobs.pop(job.id, None)
    jobs_of(ctx).tell_keeper()
    job.output.unlink(missing_ok=True)
