"""Hooks as they stand in files: commands of the person's, or of a trusted folder, that run at certain moments.

`~/.refold/hooks.json` is the person's; `.refold/hooks.json` and the key `hooks` of `.claude/settings.json` (and
`.local`) are a folder's. The shape is the one other programs use: event -> list of {matcher, hooks: [{type, command,
timeout}]}.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.extend.files import tidy
from agent.faults import reason
from agent.trust import Trust, content

EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
"""The moments at which hooks run, in the order of a turn."""
FILES = (".refold/hooks.json", ".claude/settings.json", ".claude/settings.local.json")
"""Where a workspace has its hooks."""
SCRIPTS = (".refold/hooks", ".claude/hooks")
"""Folders of programs that hooks start; with one of these files changed, none of the folder's hooks runs."""
TIMEOUT, MAX_TIMEOUT = 60.0, 600.0
"""Seconds a hook may take where it says nothing, and at most."""


class HookError(ValueError):
    """A file of hooks that cannot be read; the message is one line with its path."""


@dataclass(frozen=True)
class Hook:
    """One command: when it runs (`matcher` is a pattern for the whole name of a tool, "" for all), for how many seconds
    at most, the file it stands in, and whether that is the person's own."""

    event: str
    matcher: str
    command: str
    timeout: float
    file: str
    yours: bool

    def fits(self, names: Sequence[str]) -> bool:
        """Whether it is for one of these names (a tool has several)."""
        if self.matcher in ("", "*"):
            return True
        return any(re.fullmatch(self.matcher, name) for name in names)

    @property
    def title(self) -> str:
        """The command in one short line."""
        return tidy(self.command, 80)


def load_hooks(home: Path, trust: Trust, notices: list[str]) -> list[Hook]:
    """The hooks that count, the person's first. Raises HookError for a file that counts and is broken: a hook may be
    there to forbid something, so it is not passed over in silence."""
    own = _own_file(home)
    found = list(hooks_in(own[1], own[0], True, notices)) if own else []
    for path, data in trust.read_all(FILES).items() if _has_hooks(trust.root) else ():
        if not trust.stands(SCRIPTS):
            break
        found += hooks_in(data, os.path.join(trust.root, path), False, notices)
    return found


def _has_hooks(root: str) -> bool:
    return any(os.path.exists(os.path.join(root, path)) for path in FILES)


def _own_file(home: Path) -> tuple[str, bytes] | None:
    path = home / "hooks.json"
    try:
        return str(path), path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(f"the hooks in {path} cannot be read: {reason(error, path)}") from error


def hooks_in(data: bytes, file: str, yours: bool, notices: list[str]) -> Iterator[Hook]:
    """The hooks of one file. What we do not know is a notice each; a broken file raises HookError."""
    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HookError(f"the hooks in {file} cannot be read: {tidy(str(error), 120)}") from None
    if not isinstance(table, dict):
        raise HookError(f"the hooks in {file} cannot be read: it is no JSON object")
    plain = os.path.basename(file) == "hooks.json" and "hooks" not in table
    events = table if plain else table.get("hooks", {})
    if not isinstance(events, dict):
        raise HookError(f"the hooks in {file} cannot be read: `hooks` is no object of events")
    for event, groups in events.items():
        if event not in EVENTS:
            notices.append(f"{file}: refold has no hooks for {tidy(event, 40)}; they do not run.")
            continue
        for group in _objects(groups, file, event):
            for entry in _objects(group.get("hooks"), file, event):
                if hook := _hook(event, group.get("matcher"), entry, file, yours, notices):
                    yield hook


def takes_for_ever(pattern: str) -> bool:
    """Whether matching a name of 64 characters may take more than a moment: a repeated group, or more than four
    repetitions one after another."""
    plain = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "x", pattern, flags=re.DOTALL)
    parts = [plain] if "(" in plain else plain.split("|")
    return bool(re.search(r"\)[*+{]", plain)) or any(len(re.findall(r"[*+{]", part)) > 4 for part in parts)


def _objects(value: Any, file: str, event: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise HookError(f"the hooks in {file} cannot be read: {event} has to be a list of objects with a list `hooks`")
    return value


def _hook(
    event: str, matcher: Any, entry: dict[str, Any], file: str, yours: bool, notices: list[str]
) -> Hook | None:  # fmt: skip
    command, timeout = entry.get("command"), entry.get("timeout", TIMEOUT)
    if entry.get("type", "command") != "command" or not isinstance(command, str) or not command.strip():
        notices.append(f"{file}: a hook for {event} is no command and does not run.")
        return None
    pattern = matcher if isinstance(matcher, str) else ""
    try:
        re.compile(pattern if pattern != "*" else "")
        problem = "matching it could take for ever" if takes_for_ever(pattern) else ""
    except (re.error, RecursionError, OverflowError) as error:
        problem = str(error)
    if problem:
        raise HookError(f"the hooks in {file} cannot be read: matcher {tidy(pattern, 60)!r}: {tidy(problem, 120)}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        timeout = TIMEOUT
    return Hook(event, pattern, command, min(float(timeout), MAX_TIMEOUT), file, yours)


def listing(home: Path, trust: Trust) -> list[tuple[str, str, str, str, str]]:
    """(event, matcher, command, file, how it stands) of every hook, those too that are not trusted and do nothing.
    Raises HookError."""
    own = _own_file(home)
    found = [(h, "yours") for h in hooks_in(own[1], own[0], True, [])] if own else []
    counts, stands = trust.read_all(FILES), trust.stands(SCRIPTS)
    for path in FILES:
        file = os.path.join(trust.root, path)
        data = content(file)
        if data is None:
            continue
        state = "not trusted" if counts.get(path) != data else "trusted" if stands else "a script has changed"
        try:
            found += [(h, state) for h in hooks_in(data, file, False, [])]
        except HookError:
            if state != "not trusted":
                raise
            found.append((Hook("", "", "", 0, file, False), "not trusted, and it cannot be read"))
    return [(h.event, tidy(h.matcher or "*", 60), h.title, h.file, state) for h, state in found]
