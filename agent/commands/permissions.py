"""Shows the rules of what may run, explains what would happen to a command, adds and removes rules.

/permissions explain CMD says what would happen and why. /permissions allow|ask|deny RULE [session|project|user] adds a
rule such as bash(git log *) or edit(src/**); /permissions drop RULE removes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.commands.base import Face
from agent.faults import reason
from agent.permissions import Rule, RuleError, explain_lines, parse_rule
from agent.permissions.verdicts import Decision, Scope

TAKES = "[explain CMD | allow RULE | ask RULE | deny RULE | drop RULE]"
WHILE_BUSY = True
_DECISIONS: tuple[Decision, ...] = ("allow", "ask", "deny")
_SCOPES: tuple[Scope, ...] = ("session", "project", "user")


async def run(face: Face, words: str) -> None:
    verb, _, rest = words.strip().partition(" ")
    try:
        if verb == "explain":
            gate = face.session.permissions
            for line in explain_lines(gate, gate.explain(rest, face.session.toolbox.ctx.cwd)):
                face.say(line)
        elif verb in _DECISIONS:
            _add(face, verb, rest)
        elif verb == "drop":
            _drop(face, rest.strip())
        else:
            _list(face)
    except (RuleError, OSError) as error:
        face.say(reason(error), "error")


def complete(face: Face, words: str) -> Sequence[str]:
    return [w for w in ("explain ", "allow ", "ask ", "deny ", "drop ") if w.startswith(words)]


def _list(face: Face) -> None:
    gate = face.session.permissions
    rows = [(rule.decision, str(rule), rule.scope) for rule in gate.rules]
    sandbox = face.session.safety.sandbox
    face.say(f"The mode is {gate.mode}; the sandbox is {sandbox.kind}.")
    for limit in sandbox.limits():
        face.say(f"Its limit: {limit}.")
    if rows:
        face.table(rows, ("decision", "rule", "kept for"))
    else:
        face.say("There are no rules.")


def _add(face: Face, decision: Decision, words: str) -> None:
    text, _, last = words.strip().rpartition(" ")
    named: list[Scope] = [s for s in _SCOPES if s == last]
    scope: Scope = named[0] if named else "session"
    rule = parse_rule(text if named and text else words, decision, scope)
    face.session.permissions.rules.add(rule)
    face.say(f"{decision} {rule}, kept for this {scope}.", "ok")


def _drop(face: Face, text: str) -> None:
    rules = face.session.permissions.rules
    found: list[Rule] = [r for r in rules if str(r) == text]
    for rule in found:
        rules.drop(rule)
    if found:
        face.say(f"{text} is gone.", "ok")
    else:
        face.say(f"There is no rule {text!r}.", "error")
