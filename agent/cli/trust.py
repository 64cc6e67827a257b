"""`refold trust`: what a folder brings along, and whether it counts; for folders that no chat is opened in."""

from __future__ import annotations

from typing import Any

from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.folders import workspace_root
from agent.settings import home_folder
from agent.trust import Trust, TrustState


def trust(values: dict[str, Any]) -> int:
    """Lists what would have to be trusted (exit 3 where something waits for that), trusts it as it is, or takes the
    trust back."""
    return told(lambda: _trust(values))


def _trust(values: dict[str, Any]) -> int:
    action = values["action"] or "list"
    if action not in ("list", "grant", "revoke"):
        raise Stop(Exit.USAGE, "refold trust [list | grant | revoke]")
    cwd = folder_of(values)
    root = workspace_root(cwd)
    trusted = Trust(home_folder(cwd), root)
    state = trusted.state()
    try:
        if action == "revoke":
            trusted.revoke()
            print(f"Nothing that {root} brings along is trusted any more.")
            return Exit.OK
        if action == "grant":
            trusted.grant((*state.known, *state.new, *state.changed))
            state = trusted.state()
    except OSError as error:
        raise Stop(Exit.FAILED, f"it cannot be kept: {reason(error)}") from error
    return _list(str(root), state)


def shown(path: str) -> str:
    """A path on one line of plain characters: names of files may hold anything, also what looks like another line."""
    return path if path.isprintable() else ascii(path)


def _list(root: str, state: TrustState) -> int:
    parts = (("trusted", state.known), ("new", state.new), ("changed", state.changed))
    for how, files in parts:
        for file in files:
            print(f"{how:<8} {file.what:<14} {shown(file.path)}")
    if not any(files for _, files in parts):
        print(f"{root} brings nothing along that would have to be trusted.")
    elif state.asks:
        print("What is new or changed does nothing. Look at it; refold trust grant trusts all of it as it is now.")
    return Exit.DENIED if state.asks else Exit.OK
