"""Judging a shell command: each simple command of the line has to be allowed, and a deny is found wherever it hides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent.permissions.rules import strongest, words_match
from agent.permissions.shell import analyse
from agent.permissions.verdicts import Judgement

if TYPE_CHECKING:
    from agent.permissions.gate import Permissions


def judge(gate: Permissions, command: str, cwd: Path, *, network: bool = False) -> Judgement:
    """What may happen to one command line."""
    analysis = analyse(command)
    rules = [r for r in gate.rules if r.tool in ("bash", "*")]
    fitting = [
        r for p in analysis.parts for r in rules
        if r.pattern == "*" or words_match(r.pattern, p.words, whole=r.decision == "allow")
    ]  # fmt: skip
    strong = strongest(fitting)
    if strong is not None and strong.decision == "deny":
        return Judgement("deny", f"your rule {strong} forbids it", str(strong), command)
    if analysis.safe:
        return Judgement("allow", "it only reads")
    if gate.mode == "plan":
        return Judgement("deny", "the mode plan only reads", "", command)
    if gate.mode == "yolo":
        return Judgement("allow", "the mode yolo asks for nothing", sandbox="off")
    if strong is not None and len(analysis.parts) == 1:
        return Judgement(strong.decision, f"your rule {strong} says so", str(strong), command)
    return Judgement("ask", analysis.error or "nobody has allowed it", f"bash({' '.join(command.split())})", command)
