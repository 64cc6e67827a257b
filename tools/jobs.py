"""jobs: background commands."""

from __future__ import annotations

from typing import Annotated, Literal

from tools._jobs import Job, final_cwd, jobs_of, stop, watch
from tools.base import ToolContext, ToolFailure, ToolOutput, tool
from tools.bash import cut_words, ended_words, take_output


@tool(effect="read")
async def jobs(
    ctx: ToolContext,
    action: Annotated[Literal["list", "read", "wait", "stop", "keep"], "keep: let it outlive the session"] = "list",
    id: Annotated[int, "Job number"] = 0,
    seconds: Annotated[int, "How long to wait"] = 60,
) -> ToolOutput:
    """Lists background commands, reads their new output, waits for one or stops it."""
    if action == "list":
        lines = [_line(job) for job in jobs_of(ctx).jobs.values()]
        return ToolOutput("\n".join(lines) or "No background jobs.")
    job = jobs_of(ctx).jobs.get(id)
    if job is None:
        known = ", ".join(map(str, jobs_of(ctx).jobs)) or "none"
        raise ToolFailure(f"There is no job {id}; there are: {known}.")
    if action == "keep":
        job.keep = True
        jobs_of(ctx).tell_keeper()
        return ToolOutput(f"Job {job.id} stays when the session ends.")
    if action == "wait":
        await watch(job, float(min(max(seconds, 1), 600)), ctx.progress)
    if action == "stop":
        await stop([job])
    return _report(ctx, job, action)


TOOL = jobs


def _report(ctx: ToolContext, job: Job, action: str) -> ToolOutput:
    text, left_out = take_output(job)
    code, alive = job.exit_code, job.alive()
    state = f"[job {job.id} is running, {job.seconds:.0f} s]" if alive else ended_words(job)
    if action == "stop":
        state = f"[job {job.id} was stopped]"
    notes = [*([cut_words(ctx, job)] if left_out else []), *ctx.refused(job.argv)]
    if not alive:
        job.announced = True
        final_cwd(job)
        jobs_of(ctx).jobs.pop(job.id)
        jobs_of(ctx).tell_keeper()
    meta = {"command": job.command, "exit_code": code, "seconds": round(job.seconds, 3), "job": job.id}
    body = text.rstrip("\n") or "(no new output)"
    return ToolOutput("\n".join([body, *notes, state]), meta=meta)


def _line(job: Job) -> str:
    code = job.exit_code
    state = f"running {job.seconds:.0f} s" if job.alive() else f"ended, exit code {code}"
    command = " ".join(job.command.split())[:100]
    return f"{job.id}  {state}  {job.size():,} bytes  {'(kept) ' if job.keep else ''}{command}"
