"""Commands as jobs: started in a session of their own, output in a file, watched until they end or are stopped.

Output goes straight into a file and never through a pipe of ours: nothing waits for a pipe's end that a left-behind
process holds open, a job that moves to the background goes on writing, and a gigabyte costs disk, not memory.
"""

from __future__ import annotations

import asyncio
import atexit
import codecs
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools._keeper import Keeper
from tools._processes import GRACE, MARK, group_alive, marked, runs
from tools.base import ToolContext, ToolFailure

QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}
"""Tells programs that nobody is there to answer or to leaf through pages."""

MAX_OUTPUT = 2 * 1024**3
"""Bytes of output after which a job is stopped: a runaway must not fill the disk."""

_SHOW_AT_ONCE = 64 * 1024
"""Bytes of new output shown live in one go; of more only the end is shown."""


@dataclass
class Job:
    """One command. `told` is how many bytes of its output the model has been given."""

    id: int
    command: str
    process: subprocess.Popen[bytes]
    output: Path
    cwd_pipe: int
    mark: str
    started: float
    confined: bool = False
    argv: tuple[str, ...] = ()
    """The command line as it was started, in the sandbox or bare."""
    told: int = 0
    ended: float | None = None
    announced: bool = False
    keep: bool = False
    overflowed: bool = False
    pipe: tuple[int, ...] = ()
    """How each part of the pipe ended that it ended with, once that is known."""

    @property
    def exit_code(self) -> int | None:
        """The shell's exit code, -N where signal N killed it, None while it runs."""
        code = self.process.poll()
        if code is not None and self.ended is None:
            self.ended = time.monotonic()
        return code

    @property
    def seconds(self) -> float:
        """How long it has run or ran."""
        return (self.ended or time.monotonic()) - self.started

    def size(self) -> int:
        """Bytes of output so far."""
        try:
            return self.output.stat().st_size
        except OSError:
            return 0

    def no_room(self) -> bool:
        """Whether its output can grow no more: the disk is full, or no file may be larger. A program that prints then
        is told so, but cannot pass it on."""
        try:
            disk = os.statvfs(self.output)
        except OSError:
            return False
        free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return (disk.f_blocks > 0 and free == 0) or 0 <= most <= self.size()

    def alive(self) -> bool:
        """Whether the shell or any process of its group still runs."""
        return self.exit_code is None or group_alive(self.process.pid)


_FOLDER = "refold-jobs-"


def _remove_abandoned() -> None:
    """Removes the outputs of programs that were killed, unless a job of theirs still writes there."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        owner, _, mark = folder.name.removeprefix(_FOLDER).partition("-")
        if owner.isdigit() and not runs(int(owner)) and not marked(f"{mark}-", exactly=False):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Jobs:
    """All jobs of a session."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    folder: Path | None = None
    jobs: dict[int, Job] = field(default_factory=dict)
    last: int = 0
    watcher: threading.Thread | None = None
    owner: int = field(default_factory=os.getpid)
    running: list[Job] = field(default_factory=list)
    """All that were started and may still run, those in the foreground too."""
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        self.keeper = Keeper(self.mark)

    def tell_keeper(self) -> None:
        """Says what has to end when this process is gone."""
        self.running = [job for job in self.running if job.keep or job.alive()]
        groups = [job.process.pid for job in self.running if not job.keep]
        self.keeper.tell(groups, [job.id for job in self.running if job.keep])

    def open(self) -> Path:
        """The folder of the outputs; made with the first job."""
        if self.folder is None:
            _remove_abandoned()
            self.folder = Path(tempfile.gettempdir(), f"{_FOLDER}{self.owner}-{self.mark}")
            self.folder.mkdir(mode=0o700)
            atexit.register(self.close)
        return self.folder

    def close(self) -> None:
        """See close_jobs. A forked child leaves its parent's jobs alone."""
        if os.getpid() != self.owner:
            return
        atexit.unregister(self.close)
        ending = [job for job in self.jobs.values() if not job.keep]
        for pause in _asked_to_end(ending):
            time.sleep(pause)
        kill(ending)
        kept = [job for job in self.jobs.values() if job.keep and job.alive()]
        for job in self.jobs.values():
            final_cwd(job)
        _sweep(self, kept)
        self.jobs.clear()
        self.running.clear()
        self.keeper.close()
        if self.folder and not kept:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def jobs_of(ctx: ToolContext) -> Jobs:
    """The jobs of this session."""
    return ctx.state.setdefault("jobs", Jobs())


def start(ctx: ToolContext, command: str, cwd: Path) -> Job:
    """Starts a command with bash. Raises ToolFailure where it cannot even be started."""
    jobs = jobs_of(ctx)
    ctx.state.setdefault("closers", {})["jobs"] = lambda: close_jobs(ctx)
    jobs.last += 1
    output = jobs.open() / f"{jobs.last}.txt"
    mark = f"{jobs.mark}-{jobs.last}"
    read_end, write_end = os.pipe()
    bare = _argv(ctx, command, write_end)
    argv = bare
    try:
        argv = ctx.wrap(bare, cwd) if ctx.wrap else bare
        jobs.tell_keeper()
        process = _spawn(ctx, argv, cwd, output, write_end, mark)
    except BaseException as error:
        os.close(read_end)
        if not isinstance(error, OSError):
            raise
        raise ToolFailure(f"The command could not be started: {error.strerror or error}.") from None
    finally:
        os.close(write_end)
    os.set_blocking(read_end, False)
    job = Job(jobs.last, command, process, output, read_end, mark, time.monotonic(), argv != bare, tuple(argv))
    jobs.running.append(job)
    jobs.tell_keeper()
    return job


def _argv(ctx: ToolContext, command: str, pipe: int) -> list[str]:
    """The shell that runs a command and then says in `pipe` where it ended. The command is an argument of its own, so
    that its lines keep their numbers in error messages."""
    shell = shutil.which("bash", path=ctx.env.get("PATH")) or "/bin/sh"
    # A command that is ended inside of `eval` runs the trap where the pipe is closed: that complaint is nobody's.
    where = f'trap "{{ echo \\"\\${{__codes-}}\\"; pwd; }} 2>/dev/null >&{pipe}" EXIT; eval "$1" {pipe}>&-'
    return [shell, "-c", where, "bash", command + (_CODES if _asks_for_codes(shell, command) else "")]


_CODES = '\n\n{ __codes="$? ${PIPESTATUS[*]}"; exit "${__codes%% *}"; } 2>/dev/null'
"""Takes down how the parts of a pipe ended, for the shell's own code is that of the last part alone."""


def _asks_for_codes(shell: str, command: str) -> bool:
    """Whether a command may end with a pipe. Behind a here-document that is left open, what is added would be text."""
    return "|" in command and "<<" not in command and os.path.basename(shell) == "bash"


def _spawn(ctx: ToolContext, argv: list[str], cwd: Path, output: Path, pipe: int, mark: str) -> subprocess.Popen[bytes]:
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env={**ctx.env, **QUIET, "PWD": str(cwd), MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(pipe,),
        )
    finally:
        os.close(handle)


async def watch(job: Job, seconds: float, progress: Callable[[str], None]) -> bool:
    """Waits until the shell ends, at most `seconds`; True if it did. New output goes to `progress` as it comes."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    shown, pause, deadline = job.told, 0.002, time.monotonic() + seconds
    while True:
        ended = job.exit_code is not None
        shown = _show(job, shown, decoder, progress)
        if ended:
            return True
        if time.monotonic() >= deadline:
            return False
        if job.size() > MAX_OUTPUT:
            job.overflowed = True
            await stop([job])
            return True
        await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(pause * 1.5, 0.05)


def _show(job: Job, shown: int, decoder: codecs.IncrementalDecoder, progress: Callable[[str], None]) -> int:
    size = job.size()
    if size <= shown:
        return shown
    if size - shown > _SHOW_AT_ONCE:
        decoder.reset()
        shown = size - _SHOW_AT_ONCE
    with open(job.output, "rb") as f:
        f.seek(shown)
        data = f.read(size - shown)
    text = decoder.decode(data)
    if text:
        progress(text)
    return shown + len(data)


def final_cwd(job: Job) -> str:
    """The directory the shell ended in; "" where it did not say (it was replaced or killed). Takes down `pipe`."""
    if job.cwd_pipe < 0:
        return ""
    try:
        said = os.read(job.cwd_pipe, 65536).decode("utf-8", "surrogateescape")
        codes, _, cwd = said.removesuffix("\n").partition("\n")
        job.pipe = tuple(int(code) for code in codes.split()[1:] if code.isdigit())
        return cwd
    except OSError:
        return ""
    finally:
        os.close(job.cwd_pipe)
        job.cwd_pipe = -1


def head_and_tail(path: Path, start: int, limit: int) -> tuple[str, int]:
    """The bytes of a file from `start` on as text, and how many were left out of the middle to stay within `limit`."""
    with open(path, "rb") as f:
        size = max(0, os.fstat(f.fileno()).st_size - start)
        f.seek(start)
        if size <= limit:
            return f.read(size).decode("utf-8", "replace"), 0
        head = f.read(limit // 2)
        f.seek(start + size - limit // 2)
        tail = f.read(limit // 2)
    left_out = size - len(head) - len(tail)
    first = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    last = tail[_continuation(tail) :].decode("utf-8", "replace")
    return f"{first}\n… [{left_out:,} bytes left out here] …\n{last}", left_out


def _continuation(data: bytes) -> int:
    """How many bytes at the start belong to a character that began before."""
    return next((n for n, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


async def stop(jobs: Iterable[Job]) -> None:
    """Ends jobs and all they started: TERM, then KILL for what is left after GRACE seconds. Also when cancelled."""
    left = list(jobs)
    try:
        for pause in _asked_to_end(left):
            await asyncio.sleep(pause)
    finally:
        kill(left)


def _asked_to_end(jobs: list[Job]) -> Iterator[float]:
    """Sends TERM; then pauses, in seconds, for as long as something lives and has time left."""
    _signal(jobs, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while any(_alive(job) for job in jobs) and time.monotonic() < deadline:
        yield 0.02


def kill(jobs: Iterable[Job]) -> None:
    """Ends jobs at once, without asking them."""
    left = list(jobs)
    _signal(left, signal.SIGKILL)
    for job in left:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.process.wait(2)
        job.exit_code  # noqa: B018 - notes the end


def _alive(job: Job) -> bool:
    return job.alive() or bool(marked(job.mark))


def _signal(jobs: Iterable[Job], number: int) -> None:
    for job in jobs:
        with contextlib.suppress(OSError):
            if job.exit_code is None or group_alive(job.process.pid):
                os.killpg(job.process.pid, number)
        for pid in marked(job.mark):
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def settle(ctx: ToolContext, job: Job) -> bool:
    """Keeps a job in the list while anything of it runs; True if it does. Otherwise it is done with."""
    jobs = jobs_of(ctx)
    jobs.tell_keeper()
    if not job.alive():
        jobs.jobs.pop(job.id, None)
        return False
    jobs.jobs[job.id] = job
    if jobs.watcher is None or not jobs.watcher.is_alive():
        jobs.watcher = threading.Thread(target=_guard, args=(jobs,), name="refold-jobs", daemon=True)
        jobs.watcher.start()
    return True


def _guard(jobs: Jobs) -> None:
    """Stops background jobs whose output grows without end."""
    while running := [job for job in list(jobs.jobs.values()) if job.alive()]:
        for job in running:
            if job.size() > MAX_OUTPUT:
                job.overflowed = True
                kill([job])
        time.sleep(0.5)


def close_jobs(ctx: ToolContext) -> None:
    """Ends every job of the session but those that were asked to stay, and removes their output. Call it at the end;
    it takes GRACE seconds at most, and a little. Where nobody does, it happens when the program ends."""
    jobs_of(ctx).close()


def _sweep(jobs: Jobs, kept: list[Job]) -> None:
    """Ends what no job is listed for any more: processes that left their group and outlived their command."""
    spared = {job.mark for job in kept}
    for number in range(1, jobs.last + 1):
        mark = f"{jobs.mark}-{number}"
        for pid in marked(mark) if mark not in spared else []:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    for job in kept:
        job.process.returncode = 0  # it goes on without us, which is no leak
