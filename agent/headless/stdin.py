"""Standard input of a one-shot run: read where something is meant to come, never a hang where nothing is.

A pipe that nobody writes to looks like one whose writer is slow. So each wait for bytes is bounded, and on Linux the
bound depends on who holds the other end: a process beside us in a pipeline that works or talks to a network gets
time; a parent that just left its pipe open does not.
"""

from __future__ import annotations

import codecs
import os
import select
import stat
import time
from collections.abc import Callable
from pathlib import Path

from agent.exits import Exit, Stop

WITH_PROMPT, ALONE = 3.0, 10.0
"""Seconds an inherited pipe may stay silent: where the prompt is known already, and where it has to come from it."""
IDLE_PIPELINE = 15.0
"""Seconds a pipeline may stay silent while its writers use no processor and have no connection."""
BUSY_PIPELINE = 3600.0
"""Seconds a pipeline may stay silent while its writers are at work."""
TOO_MUCH = 256 * 1024 * 1024
"""Bytes; more is surely not meant as a prompt."""

Say = Callable[[str], None]


def piped_text(*, has_prompt: bool, explicit: bool, say: Say) -> str:
    """The text on standard input, "" where there is none to be had.

    `explicit`: it was asked for by `-`, so a terminal is read too, and nothing is bounded. Raises Stop(USAGE) where it
    is not text, or too much.
    """
    kind = _kind()
    if kind == "nothing" or (kind == "terminal" and not explicit):
        return ""
    if kind == "pipe" and not explicit:
        data, complete = _read_patiently(WITH_PROMPT if has_prompt else ALONE, say)
        if not complete:
            say("standard input was left open and is silent; going on with what came" if data else _SILENT)
    else:
        data = _read(lambda: True)[0]
    return decoded(data, say)


_SILENT = "standard input is an open pipe to which nobody writes; going on without it (</dev/null avoids the wait)"


def decoded(data: bytes, say: Say) -> str:
    """Bytes as text: UTF-8, or UTF-16 where a byte order mark says so. Raises Stop(USAGE) for what is no text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data:
        raise Stop(Exit.USAGE, "standard input is not text: it has NUL bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        say(f"standard input is not all UTF-8 (first at byte {error.start}); what is not is shown as \ufffd")
        return data.decode("utf-8-sig", errors="replace")


def _kind() -> str:
    mode = os.fstat(0).st_mode
    if os.isatty(0):
        return "terminal"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "pipe"
    return "file" if stat.S_ISREG(mode) else "nothing"


def _read(ready: Callable[[], bool]) -> tuple[bytes, bool]:
    """(bytes, whether the end was reached); `ready` False ends it before."""
    chunks: list[bytes] = []
    size = 0
    while ready():
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return b"".join(chunks), True
        chunks.append(chunk)
        size += len(chunk)
        if size > TOO_MUCH:
            raise Stop(Exit.USAGE, f"standard input has more than {TOO_MUCH >> 20} MiB; put it into a file and name it")
    return b"".join(chunks), False


def _read_patiently(bound: float, say: Say) -> tuple[bytes, bool]:
    return _read(lambda: _wait(bound, say))


def _wait(bound: float, say: Say) -> bool:
    """Whether bytes (or the end) came in time."""
    if select.select([0], [], [], min(bound, 1.0))[0]:
        return True
    started = changed = time.monotonic()
    writers, told = _pipeline(), False
    work = _work(writers)
    while True:
        if select.select([0], [], [], 0.25)[0]:
            return True
        now = time.monotonic()
        if _work(writers) != work:
            writers = _pipeline()
            work, changed = _work(writers), now
        limit = bound - 1.0 if not writers else BUSY_PIPELINE if _connected(writers) else IDLE_PIPELINE
        if now - (changed if writers else started) > limit:
            return False
        if not told and now - started > WITH_PROMPT:
            told = True
            say("waiting for standard input")


def _pipeline() -> list[int]:
    """The processes that hold the writing end of our standard input and are no ancestors of ours."""
    try:
        pipe = os.readlink("/proc/self/fd/0")
        pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    except OSError:
        return []
    ours = _ancestors()
    return [pid for pid in pids if pid not in ours and _writes(pid, pipe)]


def _ancestors() -> set[int]:
    found, pid = {os.getpid()}, os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ...; none where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _links(pid: int) -> dict[str, str]:
    folder, found = f"/proc/{pid}/fd", dict[str, str]()
    try:
        for name in os.listdir(folder):
            found[name] = os.readlink(f"{folder}/{name}")
    except OSError:
        pass
    return found


def _writes(pid: int, pipe: str) -> bool:
    for name, link in _links(pid).items():
        if link == pipe:
            try:
                flags = Path(f"/proc/{pid}/fdinfo/{name}").read_text().split("flags:")[1].split()[0]
            except (OSError, IndexError):
                continue
            if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                return True
    return False


def _connected(pids: list[int]) -> bool:
    return any(link.startswith("socket:") for pid in pids for link in _links(pid).values())


def _work(pids: list[int]) -> tuple[int, ...]:
    """Clock ticks used by each process and its ended children; changes while they work or when one ends."""
    return tuple(sum(map(int, fields[11:15])) if (fields := _stat(pid)) else -1 for pid in pids)
