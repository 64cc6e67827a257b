"""The rung of Landlock: the kernel restricts a process that asks for it; no namespaces, no privileges needed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.bwrap import nothing, probe
from agent.sandbox.layout import FORGOTTEN, Layout

HELPER = Path(__file__).with_name("confine.py")


@dataclass(frozen=True)
class Landlock:
    """Files by Landlock, sockets by a seccomp filter; both set up by a helper that then becomes the command."""

    kind: str = "landlock"

    def why_not(self) -> str:
        """Why this rung does not work here; "" where it does. Runs it once."""
        if sys.platform != "linux":
            return "it exists on Linux only"
        return probe(self.wrap([nothing()], Path("/"), Layout()))

    def fix(self, why: str) -> str:
        """What a person can do about it."""
        return "a Linux kernel of 5.13 or later with landlock in its list of security modules (lsm=landlock,...)"

    def limits(self) -> tuple[str, ...]:
        """What this rung cannot do."""
        return (
            "secret files inside the workspace stay readable where the workspace is writable",
            "the modes of files outside the workspace can be changed, their contents cannot",
            "hooks and config of the repository can be written",
            "no sockets at all, loopback included, unless the network is allowed",
            "no single hosts: a command reaches none of those that rules for fetch allow",
        )

    def wrap(self, argv: Sequence[str], cwd: Path, layout: Layout) -> list[str]:
        """The command line that runs `argv` inside."""
        writable = [*layout.writable, "/dev/shm"] if layout.writable else [layout.scratch]
        spec = {
            "hidden": [h for h in layout.hidden if not any(h.startswith(w + "/") for w in writable)],
            "writable": writable,
            "fixed_modes": not layout.writable,
            "network": layout.network,
            "forget": FORGOTTEN,
            "env": {"TMPDIR": layout.scratch, **layout.env},
        }
        return [sys.executable, "-I", "-S", str(HELPER), json.dumps(spec), *argv]
