"""One task of a batch: a workspace of its own, one run of the command, one result. Only the standard library is
needed, so that this can be sent to another machine as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from agent.faults import reason

NO_RESULT = 1
"""The exit code of a run that left no result line and ended by itself with 0, which would be a fault."""


def run_task(job: dict[str, Any]) -> dict[str, Any]:
    """Runs one job and gives its result; never raises for what the job or its folder can do wrong.

    `job`: id, attempt, argv (the command), source (the folder to work on, "" for an empty one), place (where its
    worktree or copy is made; what is there is removed), patch (the file for its changes), keep (the worktree), env.
    """
    started = time.monotonic()
    place = Path(job["place"])
    head = {"id": job["id"], "attempt": job["attempt"], "dir": str(place)}
    try:
        clear(place)
        cwd = lay(job["source"], place)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or reason(error)
        return {**head, "exit_code": 2, "cause": "workspace", "why": f"no workspace: {said.strip()}", "seconds": 0.0}
    env = {**os.environ, **job["env"], "REFOLD_DIE_WITH_PARENT": "1"}
    done = _run(job["argv"], cwd, env)
    result = {**head, **reported(done), "seconds": round(time.monotonic() - started, 3)}
    if is_worktree(place):
        result["patch"] = save_patch(place, Path(job["patch"]))
        if not job["keep"]:
            clear(place)
            result["dir"] = ""
    return result


def _run(argv: list[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
    )
    _RUNNING.add(process)
    try:
        out, err = process.communicate()
    finally:
        _RUNNING.discard(process)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


_RUNNING: set[subprocess.Popen[str]] = set()


def stop_all() -> None:
    """Asks every task that this process runs to end; each keeps its session."""
    for process in list(_RUNNING):
        process.terminate()


def reported(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the command said of itself in its result line."""
    last = done.stdout.strip().rpartition("\n")[2]
    why = done.stderr.strip().rpartition("\n")[2]
    try:
        line = json.loads(last)
        meta = line["meta"]
    except (ValueError, KeyError, TypeError):
        return {"exit_code": done.returncode or NO_RESULT, "cause": "crash", "why": why or "it left no result"}
    out = {"exit_code": done.returncode, "cause": meta["cause"], "why": meta["why"], "result": line["result"]}
    if "structured_output" in line:
        out["structured_output"] = line["structured_output"]
    cost = line["total_cost_usd"] if meta["cost_known"] else None
    return {
        **out,
        "session_id": line["session_id"],
        "num_turns": line["num_turns"],
        "usage": line["usage"],
        "cost_usd": cost,
    }


def lay(source: str, place: Path) -> Path:
    """Makes the workspace: a worktree of the source's commit, a copy of its folder, or an empty folder. Gives the
    folder in it that stands for the source. Raises OSError, CalledProcessError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    top = git_top(source) if source else ""
    if top:
        git(top, "worktree", "add", "--detach", "--force", str(place), "HEAD")
        return place / os.path.relpath(os.path.realpath(source), os.path.realpath(top))
    if source:
        shutil.copytree(source, place, symlinks=True)
    else:
        place.mkdir()
    return place


def git_top(folder: str) -> str:
    """The top of the git repository with at least one commit that `folder` lies in; "" where there is none."""
    try:
        git(folder, "rev-parse", "--verify", "HEAD")
        return git(folder, "rev-parse", "--show-toplevel").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def is_worktree(place: Path) -> bool:
    """Whether it is a worktree that `lay` made."""
    return os.path.isfile(place / ".git")


def save_patch(place: Path, patch: Path) -> str:
    """Writes the workspace's changes as a patch for `git apply`; "" where nothing changed."""
    git(str(place), "add", "--all")
    changes = git(str(place), "diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "HEAD")
    if not changes:
        return ""
    patch.write_text(changes, encoding="utf-8", errors="surrogateescape")
    return str(patch)


def clear(place: Path) -> None:
    """Removes a workspace; of a worktree also what its repository knows of it."""
    if is_worktree(place):
        try:
            git(str(place), "worktree", "remove", "--force", "--force", str(place))
        except subprocess.CalledProcessError:
            shutil.rmtree(place)
    elif os.path.exists(place):
        shutil.rmtree(place)


def git(folder: str, *words: str) -> str:
    """Runs git, and nothing that the repository's config or hooks would have it run. Gives its output. Raises
    CalledProcessError, OSError."""
    done = subprocess.run(
        ["git", "-C", folder, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout
