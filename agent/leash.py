"""Holds a program on a leash: it and all it started end when whoever holds the other end of a pipe lets go, however
that came about. A script of its own, started by path; nothing of ours is imported.

    python -I -S leash.py DESCRIPTOR program argument ...

At the end of the pipe DESCRIPTOR: TERM, and KILL after GRACE seconds; KILL at once where a byte came before the end.
Where the program ends by itself, what it left behind is ended as well.
"""

import ctypes
import os
import select
import signal
import sys
import time

GRACE = 0.5
"""Seconds between TERM and KILL."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(descriptor: int, argv: "list[str]") -> int:
    """The program in a process group of its own."""
    child = os.fork()
    if child:
        return child
    try:
        os.close(descriptor)
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def reap(child: int, codes: "list[int]") -> bool:
    """Takes up what has ended; False where no child is left. The code of the program itself goes into `codes`."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                codes.append(os.waitstatus_to_exitcode(ended[1]))
    except ChildProcessError:
        return False
    return True


def children() -> "list[int]":
    """The processes whose parent this one is; those that lost theirs come to it (Linux)."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b") ")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def send(number: int, child: int) -> None:
    """Signals the program's group and every process that has come to this one."""
    for target, call in [(child, os.killpg), *((pid, os.kill) for pid in children())]:
        try:
            call(target, number)
        except OSError:
            continue


def end(child: int, codes: "list[int]", grace: float) -> None:
    """Ends the program and all it started, at most a few seconds long."""
    deadline = time.monotonic() + grace
    if grace:
        send(signal.SIGTERM, child)
    while reap(child, codes) and time.monotonic() < deadline:
        time.sleep(0.01)
    while reap(child, codes) and time.monotonic() < deadline + 5:
        send(signal.SIGKILL, child)
        time.sleep(0.005)


def main(arguments: "list[str]") -> int:
    descriptor, argv = int(arguments[0]), arguments[1:]
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *caught: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = start(descriptor, argv)
    # The pipes to the program are the program's alone: whoever reads its output must see its end.
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    codes: list[int] = []
    grace = GRACE
    while not codes:
        ready = select.select([descriptor, wake], [], [])[0]
        if wake in ready:
            os.read(wake, 4096)
        reap(child, codes)
        if descriptor in ready:
            if not os.read(descriptor, 1):
                break
            grace = 0.0
    end(child, codes, 0.0 if codes else grace)
    return codes[0] if codes and codes[0] >= 0 else 128 - (codes or [-9])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
