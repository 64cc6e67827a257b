"""What works here and what does not, why, and what would mend it: the facts behind `refold doctor`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.abandoned import abandoned, without_log
from agent.extend.hooks import HookError, listing
from agent.faults import reason
from agent.mcp.config import ConfigError, Found, find_servers
from agent.permissions import RuleError
from agent.permissions.hazards import config_hazard
from agent.permissions.store import RuleBook
from agent.sandbox import RUNGS, Rung, reports
from agent.settings import Settings
from agent.trust import Trust

State = Literal["ok", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """One fact: about what (sandbox, rules ...), how it stands, in one sentence, and the way to mend it ("")."""

    about: str
    state: State
    text: str
    fix: str = ""


def examine(settings: Settings, root: Path, problems: Sequence[str] = ()) -> Iterator[Finding]:
    """Everything that can be found out in a folder, without asking a model or the network. `problems`: what of the
    settings cannot be used."""
    yield from of_settings(settings, problems)
    yield from of_model(settings)
    yield from of_sandbox()
    yield from of_rules(settings, root)
    yield from of_folder(settings, root)
    yield from of_mcp(settings, root)
    yield from of_hooks(settings, root)
    yield from of_programs()
    yield from of_home(settings.home)
    yield from of_sessions(settings.home)


def of_settings(settings: Settings, problems: Sequence[str]) -> Iterator[Finding]:
    """What is wrong with the settings; every other command but this one ends there."""
    yield from (
        Finding("settings", "bad", problem, "mend what it names; till then refold ends with 52") for problem in problems
    )
    yield from (Finding("settings", "note", warning) for warning in settings.warnings)


def of_model(settings: Settings) -> Iterator[Finding]:
    """Which model, and whether a key is there; never the key itself."""
    if not settings.model:
        yield Finding(
            "model", "bad", "no model is chosen", "set REFOLD_MODEL, for example to openai_chat:gpt-5 or local"
        )
        return
    yield Finding("model", "ok", f"{settings.model} ({settings.source('model')})")
    if settings.model.startswith("openai"):
        state: State = "ok" if settings.api_key or settings.base_url else "bad"
        said = f"a key is set ({settings.source('api_key')})" if settings.api_key else "no key is set"
        where = f", for {settings.base_url}" if settings.base_url else ""
        yield Finding("model", state, said + where, "" if state == "ok" else "set OPENAI_API_KEY")


def of_sandbox(rungs: Sequence[Rung] = RUNGS) -> Iterator[Finding]:
    """Each rung of the ladder: which one is used, why the others are not, and what would help."""
    found = reports(rungs)
    used = next((r.kind for r in found if r.works), "")
    for report in found:
        ours = {"darwin": report.kind == "sandbox-exec"}.get(sys.platform, report.kind != "sandbox-exec")
        if report.works:
            how = "used" if report.kind == used else "works, a better one is used"
            yield Finding("sandbox", "ok", f"{report.kind}: {how}")
            if report.kind == used:
                yield from (Finding("sandbox", "note", f"{report.kind}: {limit}") for limit in report.limits)
        elif ours:
            state: State = "note" if used else "bad"
            harm = f" (no harm: {used} is used)" if used else ""
            yield Finding("sandbox", state, f"{report.kind} does not work: {report.why}{harm}", report.fix)
    if not used:
        yield Finding("sandbox", "bad", "nothing confines commands here, so each one is asked about")


def of_rules(settings: Settings, root: Path) -> Iterator[Finding]:
    """Whether the kept rules can be read, and how many there are."""
    try:
        count = len(list(RuleBook(settings.home, root)))
    except RuleError as error:
        yield Finding("rules", "bad", str(error), f"mend or remove {settings.home / 'permissions.toml'}")
        return
    yield Finding("rules", "ok", f"{count} kept in {settings.home / 'permissions.toml'}")


def of_folder(settings: Settings, root: Path) -> Iterator[Finding]:
    """What the folder brings along, and whether it is trusted."""
    state = Trust(settings.home, root).state()
    if state.asks:
        names = ", ".join(b.path for b in (*state.new, *state.changed)[:4])
        yield Finding("trust", "note", f"not trusted, so they do nothing: {names}", "look, then refold trust grant")
    else:
        files = "file of this folder is" if len(state.known) == 1 else "files of this folder are"
        yield Finding("trust", "ok", f"{len(state.known)} {files} trusted")
    hazard = config_hazard(str(root))
    if hazard:
        yield Finding("trust", "note", f"git would run what this repository configures as {hazard}; git is asked about")


def of_mcp(settings: Settings, root: Path) -> Iterator[Finding]:
    """Which MCP servers a session would start, without starting one."""
    try:
        found = find_servers(settings.home, Trust(settings.home, root), env=os.environ)
    except ConfigError as error:
        found = Found(problems=(str(error),))
    yield from (Finding("mcp", "bad", problem, "mend or remove it") for problem in found.problems)
    names = ", ".join(s.name for s in found.servers)
    if names and importlib.util.find_spec("mcp") is None:
        yield Finding("mcp", "bad", f"{names}: the package mcp is not installed", "pip install 'refold[mcp]'")
    elif names or not found.problems:
        yield Finding("mcp", "ok", f"{names}: refold mcp list starts them" if names else "no servers are configured")


def of_hooks(settings: Settings, root: Path) -> Iterator[Finding]:
    """Whether the hooks of the person and of the folder can be read."""
    try:
        count = len(listing(settings.home, Trust(settings.home, root)))
    except HookError as error:
        yield Finding("hooks", "bad", str(error), "mend or remove it; --no-hooks goes on without any")
        return
    if count:
        yield Finding("hooks", "ok", f"{count} can be read: refold hooks lists them")


def of_programs() -> Iterator[Finding]:
    """Programs that are used where they are there."""
    for name, without in (
        ("bash", "commands run with /bin/sh"),
        ("git", "the branch is not shown; undo works without it"),
    ):
        path = shutil.which(name)
        yield Finding("programs", "ok" if path else "note", path or f"{name} is not installed: {without}")


def of_sessions(home: Path) -> Iterator[Finding]:
    """What lies beside the sessions and belongs to none."""
    try:
        left, alone = list(abandoned(home)), list(without_log(home))
    except OSError as error:
        yield Finding("sessions", "bad", f"they cannot be read: {reason(error)}", "set REFOLD_HOME to another folder")
        return
    if left:
        words = f"an interrupted copy has left {', '.join(map(str, left))}"
        yield Finding("sessions", "note", words, "refold sessions removes it")
    for folder in alone:
        words = f"{folder} belongs to {folder.with_suffix('.jsonl').name}, which is gone"
        yield Finding("sessions", "note", words, "put that file back, or remove the folder")


def of_home(home: Path) -> Iterator[Finding]:
    """Whether refold's own folder can be written, and by nobody else: who can put rules and hooks there decides."""
    parent = next(p for p in (home, *home.parents) if os.path.lexists(p))
    if not (os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK)):
        yield Finding("home", "bad", f"{home} cannot be written", "set REFOLD_HOME to a folder that can")
    elif parent == home and (mode := home.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        state: State = "bad" if mode & stat.S_IWOTH else "note"
        yield Finding("home", state, f"{home}: others can write there, and so change what may run", f"chmod 700 {home}")
    else:
        yield Finding("home", "ok", str(home))
