"""Who may do what: each call is allowed, asked about or denied, by mode and rules."""

from agent.permissions.gate import Permissions, explain_lines
from agent.permissions.rules import Rule, RuleError, parse_rule
from agent.permissions.store import rules_of_table
from agent.permissions.verdicts import (
    MODES,
    Approval,
    Approver,
    Confinement,
    Decision,
    Judgement,
    Mode,
    Scope,
    Verdict,
    strictest,
)

__all__ = [
    "MODES", "Approval", "Approver", "Confinement", "Decision", "Judgement", "Mode", "Permissions", "Rule", "RuleError",
    "Scope", "Verdict", "explain_lines", "parse_rule", "rules_of_table", "strictest",
]  # fmt: skip
