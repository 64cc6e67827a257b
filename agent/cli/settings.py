"""The words of the command line as settings: quick to import, for the chat reads them before it draws."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from agent.cli import table as cli
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.settings import NAMES, Settings

Values = dict[str, Any]


def folder_of(values: Values) -> Path:
    """The folder to work in. Raises Stop where there is none."""
    try:
        cwd = Path(os.path.realpath(os.path.expanduser(values["cd"] or ".")))
    except FileNotFoundError:
        raise Stop(Exit.USAGE, "the folder this shell is in was deleted; cd somewhere else first") from None
    _need(cwd, "folder", str(values["cd"] or cwd))
    return cwd


def _need(path: Path, kind: str, asked: str) -> None:
    """Raises Stop where there is no folder or file of this name, or one that cannot even be looked at."""
    try:
        mode = os.stat(path).st_mode
        right = stat.S_ISDIR(mode) if kind == "folder" else stat.S_ISREG(mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        right = False
    except OSError as error:
        shown = asked if len(asked) < _LONG else f"{asked[: _LONG // 2]} ... {asked[-_LONG // 2 :]}"
        raise Stop(Exit.USAGE, f"the {kind} {shown} cannot be used: {reason(error, path)}") from None
    if not right:
        raise Stop(Exit.USAGE, f"there is no {kind} {asked}")


_LONG = 400
"""Characters of a path that are shown whole."""


def open_settings(values: Values) -> tuple[Settings, Path]:
    """(settings, folder to work in). Raises SettingsError, Stop."""
    cwd = folder_of(values)
    flags: Values = {**_pairs(values["set"]), **cli.settings_flags(values)}
    if values["yolo"]:
        if flags.get("permission_mode", "yolo") != "yolo":
            raise Stop(Exit.USAGE, "--yolo and --permission-mode contradict each other")
        flags["permission_mode"] = "yolo"
    if values["max_turns"] is not None and values["max_turns"] < 1:
        raise Stop(Exit.USAGE, "--max-turns must be at least 1")
    if values["timeout"] is not None and values["timeout"] <= 0:
        raise Stop(Exit.USAGE, "--timeout must be more than 0 seconds")
    folders = tuple(Path(os.path.realpath(os.path.expanduser(d))) for d in values["add_dir"])
    for folder in (cwd, *folders):
        _need(folder, "folder", str(folder))
        if not os.access(folder, os.X_OK):
            raise Stop(Exit.USAGE, f"the folder {folder} cannot be used: its permissions do not allow it")
    named = tuple(Path(os.path.realpath(os.path.expanduser(f))) for f in values["mcp_config"])
    for file in named:
        _need(file, "file", str(file))
    flags |= {
        "mcp_config": named,
        "no_mcp": values["no_mcp"],
        "no_hooks": values["no_hooks"],
        "add_dirs": folders,
        "allow": tuple(values["allow"]),
        "deny": tuple(values["deny"]),
        "bare": values["bare"],
    }
    return Settings.load(flags, os.environ, cwd), cwd


def _pairs(given: list[str]) -> Values:
    out: Values = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        name = name.strip().lower().replace("-", "_").removeprefix("refold_")
        if not equals or name not in NAMES:
            raise Stop(Exit.USAGE, f"--set takes NAME=VALUE; names: {', '.join(NAMES)}")
        out[name] = value
    return out


def resumes(values: Values) -> bool:
    """Whether an old session is asked for."""
    return bool(values["continue_"] or values["resume"])
