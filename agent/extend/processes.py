"""Runs the command of one hook: JSON on its standard input, its output and exit code, ended at its time or by Esc."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LEASH = Path(__file__).parents[1] / "leash.py"
MOST = 64 * 1024
"""Bytes of each output that are kept; what comes after is read and forgotten."""
LINGER = 1.0
"""Seconds in which a hook's output has to end after the hook has: a program it left behind may hold it open."""


@dataclass(frozen=True)
class Ran:
    """What became of a hook. `code` None: it did not end by itself, and `problem` says why."""

    code: int | None
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    problem: str = ""


async def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str], data: bytes, timeout: float) -> Ran:
    """Runs a command to its end or `timeout` seconds. A cancel ends it and all it started, then goes on; so does the
    end of this process, however that came."""
    start = time.monotonic()
    pipe = asyncio.subprocess.PIPE
    held, leash = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(LEASH), str(held), *argv, cwd=cwd, env=dict(env), pass_fds=(held,),
            stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        os.close(leash)
        return Ran(None, problem=f"it cannot be started: {error.strerror if isinstance(error, OSError) else error}")
    except BaseException:
        os.close(leash)
        raise
    finally:
        os.close(held)
    assert process.stdin and process.stdout and process.stderr
    reading = [asyncio.ensure_future(_drain(stream)) for stream in (process.stdout, process.stderr)]
    feeding = asyncio.ensure_future(_feed(process.stdin, data))
    problem = ""
    try:
        await asyncio.wait_for(process.wait(), timeout)
    except TimeoutError:
        problem = f"it was stopped after {timeout:g} s"
    finally:
        with contextlib.suppress(OSError):
            os.write(leash, b"k")
        os.close(leash)
        feeding.cancel()
        await process.wait()
        done, late = await asyncio.wait(reading, timeout=LINGER)
        for task in late:
            task.cancel()
    out, err = (task.result() if task in done else "" for task in reading)
    return Ran(None if problem else process.returncode, out, err, time.monotonic() - start, problem)


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):  # a hook need not read
        stream.write(data)
        await stream.drain()
        stream.close()


async def _drain(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while piece := await stream.read(1 << 16):
        kept += piece[: max(0, MOST - len(kept))]
    return kept.decode("utf-8", "replace").strip()
