"""`refold batch`: many one-shot tasks, each in a workspace of its own, each done exactly once.

A result is one line of the results file, written and synced when its task has ended. Started again, a batch does what
has no result yet; a workspace that was left half way is made anew.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.batch.pools import make_pool
from agent.batch.task import clear, git, git_top
from agent.cli import table as cli
from agent.cli.common import told
from agent.edges import interruptible
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.settings import CHECKOUT

AGAIN = frozenset({int(Exit.RETRYABLE), int(Exit.INTERRUPTED), int(Exit.TERMINATED), int(Exit.HANGUP)})
"""Exit codes that leave a task undone: the next start of the batch does it again."""
_START = secrets.token_hex(3)
"""In the names of this start's workspaces: what a killed batch left running cannot reach them."""
KEYS = {"id", "prompt", "dir", "check", "model", "args"}

Values = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One line of the tasks file. `dir` is the folder it works on ("": an empty one), `args` are options of its own."""

    id: str
    prompt: str
    dir: str = ""
    check: str = ""
    model: str = ""
    args: tuple[str, ...] = ()


def batch(values: Values) -> int:
    """Runs a batch; 0 where every task has ended well."""
    return told(lambda: _batch(values))


def _batch(values: Values) -> int:
    path = Path(os.path.expanduser(values["tasks"]))
    tasks = read_tasks(path)
    results = Path(os.path.expanduser(values["results"] or path.with_suffix(".results.jsonl")))
    work = Path(os.path.realpath(os.path.expanduser(values["work"] or path.with_suffix(".work"))))
    pool = make_pool(values["on"] or "")
    side_by_side = values["jobs"] or max(1, (os.cpu_count() or 2))
    with interruptible(), _held(results) as file:
        before = read_results(results)
        left = [t for t in tasks if not _is_done(before.get(t.id), values["retry_failed"])]
        jobs = [_job(task, values, path.parent, work, before.get(task.id)) for task in left]
        _warn(tasks, path.parent)
        show = _Progress(len(tasks), len(tasks) - len(left))
        work.mkdir(parents=True, exist_ok=True)
        for place in (p for task in left for p in work.glob(f"{glob.escape(task.id)}.??????")):
            clear(place)
        signal.signal(signal.SIGTERM, lambda *_: _terminated())
        for result in pool.results(jobs, side_by_side):
            _write(file, result)
            show.ended(result)
    return _summary(tasks, read_results(results), results, show)


def _terminated() -> None:
    raise Stop(Exit.TERMINATED, "terminated (SIGTERM); start it again to go on")


# -- files ----------------------------------------------------------------------------------------------------------


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a JSONL file, in their order. Raises Stop(USAGE) naming the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(Exit.USAGE, f"the file of tasks {path} cannot be read: {reason(error, path)}") from None
    tasks = [_task(line, number, path) for number, line in enumerate(lines, 1) if line.strip()]
    twice = [i for i, n in Counter(t.id for t in tasks).items() if n > 1]
    if twice:
        raise Stop(Exit.USAGE, f"{path}: the id {twice[0]!r} stands there more than once")
    return tasks


def _task(line: str, number: int, path: Path) -> Task:
    where = f"{path}, line {number}"
    try:
        data = json.loads(line)
    except ValueError as error:
        raise Stop(Exit.USAGE, f"{where}, is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("prompt"), str) or not data["prompt"].strip():
        raise Stop(Exit.USAGE, f"{where}: a task needs a prompt")
    if unknown := data.keys() - KEYS:
        raise Stop(Exit.USAGE, f"{where}: a task has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(KEYS))}")
    values = {**data, "id": str(data.get("id", number)), "args": tuple(map(str, data.get("args", ())))}
    if "/" in values["id"] or values["id"].startswith("."):
        raise Stop(Exit.USAGE, f"{where}: the id {values['id']!r} cannot be the name of a folder")
    return Task(**values)


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """The newest result of each task; a torn last line is no result."""
    out: dict[str, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines() if os.path.exists(path) else ():
        try:
            result = json.loads(line)
            out[result["id"]] = result
        except (ValueError, KeyError, TypeError):
            continue
    return out


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """The results file, open for appending and held against a second batch; a torn last line is ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Stop(Exit.USAGE, f"another batch writes {path}") from None
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")
        yield file
    finally:
        os.close(file)


def _write(file: int, result: dict[str, Any]) -> None:
    os.write(file, (json.dumps(result, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
    os.fsync(file)


def _is_done(result: dict[str, Any] | None, retry_failed: bool) -> bool:
    if result is None or result["exit_code"] in AGAIN:
        return False
    return not (retry_failed and result["exit_code"])


# -- one task -------------------------------------------------------------------------------------------------------


def _job(task: Task, values: Values, base: Path, work: Path, before: dict[str, Any] | None) -> dict[str, Any]:
    given = {**values, "model": task.model or values["model"], "require_check": task.check or values["require_check"]}
    command = [sys.executable, str(CHECKOUT / "main.py"), "run", "-q", "-o", "json"]
    return {
        "id": task.id,
        "attempt": before.get("attempt", 0) + 1 if before else 1,
        "argv": [*command, *_options(given), *task.args, "--", task.prompt],
        "source": os.path.realpath(base / os.path.expanduser(task.dir)) if task.dir else "",
        "place": str(work / f"{task.id}.{_START}"),
        "patch": str(work / f"{task.id}.patch"),
        "keep": values["keep"],
        "env": {},
    }


def _options(values: Values) -> list[str]:
    """The options of the batch that are meant for its tasks, as words again."""
    out: list[str] = []
    for option in cli.TASK_OPTIONS:
        value = values[option.name]
        if option.name == "mcp_config":  # a task runs in a folder of its own
            value = [os.path.realpath(os.path.expanduser(file)) for file in value]
        flag = option.flags[0]
        if option.kind is bool:
            out += [flag] if value else []
        elif option.kind is list:
            out += [word for item in value for word in (flag, item)]
        elif value is not None and value != "":
            out += [flag, str(value)]
    return out


def _warn(tasks: list[Task], base: Path) -> None:
    """Says which repositories have changes that the worktrees will not show."""
    for folder in sorted({os.path.realpath(base / os.path.expanduser(t.dir)) for t in tasks if t.dir}):
        if (top := git_top(folder)) and git(top, "status", "--porcelain"):
            print(f"{folder} has changes that are not committed; its tasks work on the last commit", file=sys.stderr)


# -- what is shown --------------------------------------------------------------------------------------------------


class _Progress:
    """One line that is redrawn in a terminal, a line a task elsewhere."""

    def __init__(self, total: int, done_before: int) -> None:
        self.total, self.before, self.done, self.failed = total, done_before, 0, 0
        self.started = time.monotonic()
        self.terminal = sys.stderr.isatty()
        if done_before:
            print(f"{done_before} of {total} tasks were done before", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def ended(self, result: dict[str, Any]) -> None:
        """Counts one result and shows it."""
        self.done += 1
        self.failed += result["exit_code"] != 0
        count = f"{self.before + self.done}/{self.total}"
        if self.terminal:
            left = self.seconds / self.done * (self.total - self.before - self.done)
            line = f"\r\x1b[K{count} done, {self.failed} failed, about {left:.0f} s left"
            print(line, end="" if self.before + self.done < self.total else "\n", file=sys.stderr, flush=True)
            return
        state = "ok" if not result["exit_code"] else f"exit {result['exit_code']}: {result['why']}"
        print(f"{count} {result['id']}: {state} ({result['seconds']:.1f} s)", file=sys.stderr, flush=True)


def _summary(tasks: list[Task], results: dict[str, dict[str, Any]], path: Path, show: _Progress) -> int:
    mine = [results[t.id] for t in tasks if t.id in results]
    codes = Counter(r["exit_code"] for r in mine)
    tokens = sum(sum(r.get("usage", {}).values()) for r in mine)
    costs = [r.get("cost_usd") for r in mine]
    money = f"${sum(c or 0 for c in costs):.2f}" if costs and None not in costs else "n/a"
    print(f"{codes[0]} of {len(tasks)} tasks done in {show.seconds:.1f} s, {tokens:,} tokens, cost {money}")
    for code, count in sorted(codes.items()):
        if code:
            print(f"  exit {code}: {count} ({', '.join(r['id'] for r in mine if r['exit_code'] == code)[:200]})")
    print(f"results: {path}")
    if codes[0] != len(tasks):
        words = f"{len(tasks) - codes[0]} of {len(tasks)} tasks have not ended well"
        raise Stop(Exit.FAILED, f"{words}; the same with --retry-failed does those again")
    return 0
