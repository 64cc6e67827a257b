"""The two edges of every command.

Where it begins, standard streams are made sure of, and Ctrl-C ends it at once with one line: a KeyboardInterrupt in the
middle of an import would be a traceback, or be taken for a fault of what is imported. Where it ends, what this machine
refused is one line as well.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

INTERRUPTED = "interrupted by Ctrl-C (SIGINT)"
CLOSED = "standard output was closed by its reader"


def enter() -> None:
    """Called before anything slow is imported."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # nohup and `&` have it ignored: so it stays
        signal.signal(signal.SIGINT, _end_at_once)
    ensure_standard_streams()


def left_with(body: Callable[[], int]) -> int:
    """The code that the command ends with, all that it printed written; from then on Ctrl-C changes nothing."""
    try:
        code = body()
        sys.stdout.flush()
    except BrokenPipeError:
        silence(1)
        code = 1
    except Exception as error:
        faults = importlib.import_module("agent.faults")
        if not faults.refused(error):
            raise
        silence(1)
        print(f"refold: {faults.reason(error)}", file=sys.stderr)
        code = 1
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))
    return code


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it Ctrl-C raises KeyboardInterrupt, as Python has it: for what has something to end or to tell."""
    before = signal.getsignal(signal.SIGINT)
    if before is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if before is _end_at_once:
            signal.signal(signal.SIGINT, before)


@contextmanager
def stopping(tell: Callable[[int], None]) -> Iterator[None]:
    """Within it SIGINT, SIGTERM and SIGHUP call `tell` with their number and end the process with 128 and that. One
    that is ignored, or has another handler, is left alone."""

    def end(number: int, frame: FrameType | None) -> None:
        try:
            tell(number)
        finally:
            os._exit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    ours = {number for number, handler in before.items() if handler is signal.SIG_DFL or _is_an_end(handler)}
    end.ends = True  # type: ignore[attr-defined]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _is_an_end(handler: Any) -> bool:
    return handler is _end_at_once or hasattr(handler, "ends")


def ensure_standard_streams() -> None:
    """Puts /dev/null where stdin, stdout or stderr are closed, so that no file of ours gets their numbers; standard
    error that cannot be written (a full disk) is no reason to end otherwise."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    file = io.BufferedWriter(_Patient(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(file, encoding, "backslashreplace", line_buffering=True)


def silence(number: int) -> None:
    """Nothing more is written to this stream, and nothing is waited for."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


class _Patient(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _end_at_once(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, f"refold: {INTERRUPTED}\n".encode())
    finally:
        os._exit(128 + number)
