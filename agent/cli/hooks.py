"""`refold hooks`: what would run in a folder, when, and from which file."""

from __future__ import annotations

from typing import Any

from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.exits import Exit, Stop
from agent.extend.hooks import HookError, listing
from agent.extend.skills import shown_path
from agent.folders import workspace_root
from agent.settings import home_folder
from agent.trust import Trust


def hooks(values: dict[str, Any]) -> int:
    """Lists the hooks of the person and of the folder, those too that are not trusted and so do nothing."""
    return told(lambda: _hooks(values))


def _hooks(values: dict[str, Any]) -> int:
    if values["action"] not in ("", "list"):
        raise Stop(Exit.USAGE, "refold hooks [list]")
    cwd = folder_of(values)
    home = home_folder(cwd)
    try:
        found = listing(home, Trust(home, workspace_root(cwd)))
    except HookError as error:
        raise Stop(Exit.CONFIG, str(error)) from error
    for event, matcher, command, file, state in found:
        print(f"{event:<17} {matcher:<16} {command}\n{'':<17} {state}: {shown_path(file)}")
    if not found:
        print("No hooks: neither in hooks.json of your own, nor in this folder.")
    return Exit.OK
