"""The rung of macOS: sandbox-exec with a profile made for each command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.bwrap import probe
from agent.sandbox.enter import PROXIES
from agent.sandbox.layout import FORGOTTEN, Layout

_PROGRAM = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/dtracehelper")


@dataclass(frozen=True)
class Seatbelt:
    """Everything is allowed that the profile does not deny: writing, hidden paths, the network."""

    kind: str = "sandbox-exec"

    def why_not(self) -> str:
        """Why this rung does not work here; "" where it does. Runs it once."""
        if sys.platform != "darwin":
            return "it exists on macOS only"
        return probe(self.wrap(["/usr/bin/true"], Path("/"), Layout()))

    def fix(self, why: str) -> str:
        """What a person can do about it."""
        return "it comes with macOS; inside of another sandbox it cannot be used"

    def limits(self) -> tuple[str, ...]:
        """What this rung cannot do."""
        return ()

    def wrap(self, argv: Sequence[str], cwd: Path, layout: Layout) -> list[str]:
        """The command line that runs `argv` inside."""
        unset = [word for name in FORGOTTEN for word in ("-u", name)]
        env = [f"{k}={v}" for k, v in {**layout.env, **_proxies(layout)}.items()]
        return [_PROGRAM, "-p", profile(layout), "/usr/bin/env", *unset, *env, *argv]


def profile(layout: Layout) -> str:
    """The profile of a layout. A later line beats an earlier one."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    lines += [f"(allow file-write* (literal {json.dumps(d)}))" for d in _DEVICES]
    lines += [f"(allow file-write* (subpath {_quoted(p)}))" for p in layout.writable]
    lines += [f"(deny file-write* (subpath {_quoted(p)}))" for p in layout.fixed]
    lines += [f"(deny file-write-unlink (literal {_quoted(p)}))" for p in layout.unmoved]
    lines += [f"(deny file-read* file-write* (subpath {_quoted(p)}))" for p in layout.hidden]
    below = [p for p in layout.writable if any(p.startswith(h + "/") for h in layout.hidden)]
    lines += [f"(allow file-read* file-write* (subpath {_quoted(p)}))" for p in below]
    # Other programs could act in its place.
    lines += ["(deny appleevent-send)", "(deny lsopen)"]
    if not layout.network:
        lines += ["(deny network*)", "(allow network* (local unix-socket))"]
    if layout.door is not None:
        # Written by what is documented; it was never tried on a Mac.
        lines.append(f'(allow network-outbound (remote ip "localhost:{layout.door.path.rpartition(":")[2]}"))')
    return "\n".join(lines)


def _proxies(layout: Layout) -> dict[str, str]:
    """What tells programs of the way out to the hosts that rules allow."""
    if layout.door is None:
        return {}
    names = {name: layout.door.path for name in PROXIES} | {"NO_PROXY": layout.door.direct}
    return names | {name.lower(): value for name, value in names.items()}


def _quoted(path: str) -> str:
    return json.dumps(os.path.realpath(path), ensure_ascii=False)
