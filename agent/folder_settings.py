"""The settings that a folder may bring: `.refold/config.toml`, once it is trusted, and of it only what is listed here.

What decides where a conversation goes, what it costs a key, what may run and how refold looks is never a folder's.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.folders import workspace_root
from agent.trust import Trust

FILE = ".refold/config.toml"
ALLOWED = frozenset(
    {
        "model", "effort", "permission_mode", "compression_threshold", "min_retain_rounds", "keep_last",
        "max_result_chars", "keep_turns", "token_budget", "min_keep", "summary_timeout", "summarise", "max_steps",
    }
)  # fmt: skip
"""What a folder may set; `model` only of the provider that is used anyhow, `permission_mode` and
`max_steps` only stricter ones."""

_MODES = ("plan", "ask", "edits", "auto", "yolo")
_STEPS = 100
"""The default of max_steps."""
_SAFE_UNSET = "ask"
"""The loosest mode that is no looser than an unset one, whether or not a sandbox works here."""


@dataclass(frozen=True)
class FolderSettings:
    """What the file says that may count, what it says besides (by name), and its path; `problem` where it is broken."""

    path: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    problem: str = ""


def of_folder(home: Path, cwd: Path) -> FolderSettings:
    """The settings of the workspace around `cwd`; nothing where it has none or they are not trusted as they are."""
    root = workspace_root(cwd)
    path = root / FILE
    if not os.path.exists(path):
        return FolderSettings()
    data = Trust(home, root).read(FILE)
    if data is None:
        return FolderSettings()
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        return FolderSettings(str(path), problem=f"{path} cannot be read, so none of it counts: {error}")
    found = {k: v for k, v in table.items() if k in ALLOWED and not isinstance(v, (dict, list))}
    return FolderSettings(str(path), found, tuple(k for k in table if k not in found))


def too_loose(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    """Whether a folder asks for more than the person has allowed anyhow; `own` is what counts without it."""
    if name == "permission_mode":
        mode = own.get(name) or _SAFE_UNSET
        return value not in _MODES or _MODES.index(value) > _MODES.index(mode)
    if name == "model":
        provider = str(own.get(name) or "").partition(":")[0]
        return not provider.startswith("openai") or str(value).partition(":")[0] != provider
    return name == "max_steps" and value > own.get(name, _STEPS)
