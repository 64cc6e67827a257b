"""`refold permissions` and `refold doctor`: what may run here, and what works here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.doctor import Finding, examine
from agent.exits import Exit, Stop
from agent.identity import git_root
from agent.permissions import RuleError, explain_lines
from agent.safety import Safety
from agent.settings import Settings

Values = dict[str, Any]


def permissions(values: Values) -> int:
    """Explains a command (exit 0: it runs unasked, 3: it does not), or lists the rules."""
    return told(lambda: _permissions(values))


def _permissions(values: Values) -> int:
    cwd, settings = _settings(values)
    words = list(values["words"] or [])
    try:
        safety = Safety(settings, git_root(cwd) or cwd)
    except RuleError as error:
        raise Stop(Exit.CONFIG, str(error)) from error
    gate = safety.permissions
    if words[:1] == ["explain"] and words[1:]:
        judgement = gate.explain(" ".join(words[1:]), cwd)
        print("\n".join(explain_lines(gate, judgement)))
        return Exit.OK if judgement.decision == "allow" else Exit.DENIED
    if words not in ([], ["list"]):
        raise Stop(Exit.USAGE, "refold permissions [list] or refold permissions explain 'COMMAND'")
    print(f"mode {gate.mode}, sandbox {safety.sandbox.kind}")
    for rule in gate.rules:
        print(f"{rule.decision:<6} {rule!s:<50} {rule.scope}")
    return Exit.OK


def doctor(values: Values) -> int:
    """Says what works; exit 1 where something does not that has to."""
    return told(lambda: _doctor(values))


def _doctor(values: Values) -> int:
    problems: list[str] = []
    cwd, settings = _settings(values, problems)
    found = list(examine(settings, git_root(cwd) or cwd, problems))
    for finding in found:
        print(_line(finding))
        if finding.fix:
            print(f"{'':<12}  to mend it: {finding.fix}")
    return Exit.FAILED if any(f.state == "bad" for f in found) else Exit.OK


def _line(finding: Finding) -> str:
    mark = {"ok": "+", "note": "-", "bad": "!"}[finding.state]
    return f"{mark} {finding.about:<10}  {finding.text}"


def _settings(values: Values, problems: list[str] | None = None) -> tuple[Path, Settings]:
    cwd = folder_of(values)
    flags = {"permission_mode": values.get("permission_mode")}
    return cwd, Settings.load(flags, os.environ, cwd, problems)
