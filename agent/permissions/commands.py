"""Judging a shell command: each simple command of the line has to be allowed, and a deny is found wherever it hides."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.permissions import places
from agent.permissions.files import only_filters, reads, writes
from agent.permissions.hazards import config_hazard, tool_hazard
from agent.permissions.matching import allowing, holding, named_anywhere, shell_rules, suggest
from agent.permissions.rules import Rule, parse_rule
from agent.permissions.shell import Analysis, Part, analyse
from agent.permissions.shell.danger import of_part, recursive_delete
from agent.permissions.shell.network import contacts, hosts_of
from agent.permissions.shell.readonly import why_not
from agent.permissions.shell.tool_reads import OUTSIDE
from agent.permissions.verdicts import Confinement, Decision, Judgement, Mode


class Gate(Protocol):
    """What judging a command needs to know of the session."""

    mode: Mode
    root: str

    @property
    def folders(self) -> tuple[str, ...]: ...
    @property
    def temporary(self) -> tuple[str, ...]: ...
    @property
    def rules(self) -> Iterable[Rule]: ...
    @property
    def confined(self) -> bool: ...
    def judge_path_read(self, path: str) -> Judgement: ...
    def judge_path_write(self, path: str) -> Judgement: ...
    def reaches(self, hosts: Iterable[str]) -> bool: ...


@dataclass(frozen=True)
class Gap:
    """Something in a line that nobody has allowed: the part, why, and the rule that would ("" where none can)."""

    part: Part
    why: str
    rule: str = ""
    decision: Decision = "ask"


def judge(gate: Gate, command: str, cwd: Path, *, outside: bool = False) -> Judgement:
    """What may happen to one command line. `outside`: the model asks to run it outside of the sandbox."""
    analysis = analyse(command)
    rules = shell_rules(gate.rules)
    held = _held(analysis, rules)
    if held is not None:
        return held
    if analysis.error:
        return _named(Judgement("ask", analysis.error, "", command), analysis)
    return _JUDGES[gate.mode](gate, analysis, str(cwd), outside)


def _held(analysis: Analysis, rules: Sequence[Rule]) -> Judgement | None:
    """The ask or deny rule that holds for any part of the line."""
    asked: Judgement | None = None
    for part in analysis.parts:
        rule, maybe = holding(part, rules, analysis.line)
        if rule is not None and rule.decision == "deny":
            return Judgement("deny", f"your rule {rule} forbids it", str(rule), part.text)
        if asked is None and rule is not None:
            asked = Judgement("ask", f"your rule {rule} wants to be asked", "", part.text)
        if asked is None and maybe is not None:
            asked = Judgement("ask", f"your rule {maybe} may hold for what it makes or runs", "", part.text)
    for rule in rules if analysis.error else ():
        if rule.decision == "deny" and named_anywhere(rule, analysis.command):
            return Judgement("deny", f"{analysis.error}, and it names what your rule {rule} forbids", str(rule))
    return _named(asked, analysis) if asked else None


def _named(judgement: Judgement, analysis: Analysis) -> Judgement:
    """The judgement with what cannot be taken back, and outside of the sandbox where a person has to decide."""
    return replace(judgement, danger=analysis.danger or analysis.loses, sandbox=judgement.sandbox or "off")


def _plan(gate: Gate, analysis: Analysis, cwd: str, outside: bool) -> Judgement:
    if outside:
        return Judgement("deny", "the mode plan never leaves the sandbox", "", analysis.command, mode="ask")
    if gate.confined:
        online = next((p for p in analysis.parts if contacts(p)), None)
        if online is not None:
            return Judgement(
                "deny", f"the mode plan has no network, and {online.program} needs it", "", online.text, mode="ask"
            )
        return Judgement("allow", "the sandbox lets it read only", sandbox="read-only", effects=False)
    gaps = _unread(gate, analysis, cwd)
    if not gaps:
        return Judgement("allow", "it only reads", sandbox="off", effects=False)
    worst = next((g for g in gaps if g.decision == "deny"), gaps[0])
    return Judgement("deny", f"the mode plan only reads: {worst.why}", "", worst.part.text, mode="ask")


def _ask(gate: Gate, analysis: Analysis, cwd: str, outside: bool) -> Judgement:
    unread = _unread(gate, analysis, cwd)
    if not unread:
        return _only_reading(gate, analysis)
    gaps = _gaps(gate, analysis, cwd)
    if gaps:
        # A line that only reads is asked about for what it reads.
        return _missing(gaps if analysis.why_not_safe else unread, analysis)
    return Judgement("allow", "your rules allow every part of it", _used(gate, analysis), sandbox="off")


def _only_reading(gate: Gate, analysis: Analysis) -> Judgement:
    """A line that only reads, where it can change nothing; outside of the sandbox where it asks a service."""
    inside = gate.confined and not any(p.program in OUTSIDE for p in analysis.parts)
    return Judgement("allow", "it only reads", sandbox="read-only" if inside else "off", effects=False)


def _auto(gate: Gate, analysis: Analysis, cwd: str, outside: bool) -> Judgement:
    if not gate.confined:
        return _ask(gate, analysis, cwd, outside)
    if any(p.program in OUTSIDE for p in analysis.parts) and not _unread(gate, analysis, cwd):
        return _only_reading(gate, analysis)
    gaps = [*_dangers(gate, analysis, cwd), *_leaving(gate, analysis, cwd, outside)]
    if gaps:
        return _missing(gaps, analysis)
    if all(allowing(p, shell_rules(gate.rules, "outside")) for p in analysis.parts if not p.transparent):
        return Judgement("allow", "your rules let it run outside of the sandbox", sandbox="off")
    online = any(_leaves_for_network(gate, p) for p in analysis.parts)
    confinement: Confinement = "network" if online else "workspace"
    effects = bool(analysis.why_not_safe)
    return Judgement("allow", "it runs in the sandbox", danger=analysis.loses, sandbox=confinement, effects=effects)


def _yolo(gate: Gate, analysis: Analysis, cwd: str, outside: bool) -> Judgement:
    gaps = _dangers(gate, analysis, cwd)
    if gaps:
        return _missing(gaps, analysis)
    effects = bool(analysis.why_not_safe)
    why = "the mode yolo asks for nothing else"
    return Judgement("allow", why, danger=analysis.loses, sandbox="off", effects=effects)


_JUDGES = {"plan": _plan, "ask": _ask, "edits": _ask, "auto": _auto, "yolo": _yolo}


def _missing(gaps: Sequence[Gap], analysis: Analysis) -> Judgement:
    """The question about a line, naming every part that nobody has allowed."""
    denied = next((g for g in gaps if g.decision == "deny"), None)
    if denied is not None:
        return Judgement("deny", denied.why, denied.rule, denied.part.text)
    rules = dict.fromkeys(line for g in gaps for line in g.rule.splitlines())
    whole = all(g.rule for g in gaps)
    parts = dict.fromkeys(_one_line(g.part.text) for g in gaps)
    rule = "\n".join(rules) if whole else ""
    confinement: Confinement = "network" if all(g.why == _ONLINE for g in gaps) else "off"
    return _named(Judgement("ask", gaps[0].why, rule, "\n".join(parts), sandbox=confinement), analysis)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _used(gate: Gate, analysis: Analysis) -> str:
    rules = shell_rules(gate.rules)
    found = (allowing(p, rules) for p in analysis.parts if not p.transparent)
    return "\n".join(dict.fromkeys(str(r) for r in found if r is not None))


def _unread(gate: Gate, analysis: Analysis, cwd: str) -> list[Gap]:
    """Why the line may not run as one that only reads; empty where it may."""
    if analysis.why_not_safe:
        part = next((p for p in analysis.parts if analysis.why_not(p)), None)
        return [Gap(part or Part(analysis.command), analysis.why_not_safe)]
    gaps = [gap for p in analysis.parts for gap in _reading(gate, p, cwd)]
    exposed = [p for p in analysis.parts if _exposed(gate, analysis, p, cwd)]
    return gaps or [
        Gap(p, "it reads files, beside what has to run outside of the sandbox", suggest(p)) for p in exposed
    ]


def _exposed(gate: Gate, analysis: Analysis, part: Part, cwd: str) -> bool:
    """Whether a part would read where keys are not hidden, because another one keeps the line out of the sandbox."""
    leaves = gate.confined and any(p.program in OUTSIDE for p in analysis.parts)
    return leaves and part.program not in OUTSIDE and not part.transparent and not only_filters(part, cwd)


def _reading(gate: Gate, part: Part, cwd: str) -> list[Gap]:
    """What a part that only reads would read without permission."""
    if part.program in ("git", "gh") and (
        hazard := next((h for f in _folders(part, cwd) if (h := config_hazard(f))), "")
    ):
        return [Gap(part, f"git would run what this repository configures as {hazard}", suggest(part))]
    hazard = next((h for f in _folders(part, cwd) if (h := tool_hazard(part.program, f))), "")
    if hazard:
        return [Gap(part, f"{part.program} would do more than read here: {hazard}", suggest(part))]
    if part.program == "cargo" and not gate.confined and not _known_versions(part):
        return [Gap(part, "cargo may write Cargo.lock; with --locked it does not", suggest(part))]
    gaps: list[Gap] = []
    for path in reads(part, cwd):
        if not path and part.via == "xargs" and gate.confined:
            continue  # the sandbox hides what may not be read
        judgement = gate.judge_path_read(path) if path else Judgement("ask", "it reads in a folder that is not known")
        if judgement.decision != "allow":
            gaps.append(Gap(part, judgement.reason, judgement.rule, judgement.decision))
    return gaps


def _known_versions(part: Part) -> bool:
    return any(w.text in ("--locked", "--frozen", "--no-deps", "--version", "-V", "-v") for w in part.args)


def _folders(part: Part, cwd: str) -> list[str]:
    return [os.path.normpath(os.path.join(cwd, f)) for f in part.folders if f is not None]


def _gaps(gate: Gate, analysis: Analysis, cwd: str) -> list[Gap]:
    """What nobody has allowed in a line that does more than read."""
    rules = shell_rules(gate.rules)
    gaps: list[Gap] = [] if analysis.parts else [Gap(Part(analysis.command), "it has nothing to run")]
    if analysis.danger and not any(of_part(p, analysis.line) for p in analysis.parts):
        gaps.append(Gap(Part(analysis.command), analysis.danger))
    for part in analysis.parts:
        if not part.transparent and (part.words or part.env) and not _only_tests(part):
            gaps += _unallowed(gate, analysis, part, rules, cwd)
        gaps += _redirected(gate, part, cwd)
    return gaps


def _only_tests(part: Part) -> bool:
    """Whether a part is `[ ... ]`, which does nothing; but bash evaluates the subscript of an array that -v names."""
    return part.program == "[" and not any("[" in w.text or w.text == "-v" for w in part.args)


def _unallowed(gate: Gate, analysis: Analysis, part: Part, rules: Sequence[Rule], cwd: str) -> list[Gap]:
    """What one part does that nobody has allowed."""
    rule = allowing(part, rules)
    harmful = of_part(part, analysis.line) or (analysis.danger if len(analysis.parts) == 1 else "")
    if rule is not None and harmful and rule.pattern.endswith("*"):
        return [Gap(part, f"{harmful}; the rule {rule} is too wide to allow that", _word_for_word(part))]
    if rule is None and part.words and not _only_reads(gate, analysis, part, cwd):
        return [Gap(part, _why(part, harmful), _word_for_word(part) if harmful else suggest(part))]
    if not part.words and why_not(part):
        return [Gap(part, why_not(part))]
    return []


def _only_reads(gate: Gate, analysis: Analysis, part: Part, cwd: str) -> bool:
    # In a line with groups, loops or substitutions no part is taken for harmless by itself.
    harmless = not analysis.unclear and not analysis.why_not(part) and not _reading(gate, part, cwd)
    return harmless and not _exposed(gate, analysis, part, cwd)


def _why(part: Part, harmful: str) -> str:
    return harmful or (f"nobody has allowed {part.program or 'a program that is chosen at run time'}")


def _word_for_word(part: Part) -> str:
    exact = suggest(replace(part, words=(replace(part.words[0], text=f"./{part.program}"), *part.words[1:])))
    return exact.replace(f"bash(./{part.program}", f"bash({part.program}") if exact else ""


def _redirected(gate: Gate, part: Part, cwd: str) -> list[Gap]:
    gaps: list[Gap] = []
    for path in writes(replace(part, words=()), cwd):
        judgement = gate.judge_path_write(path) if path else Judgement("ask", "it writes to a file made at run time")
        if judgement.decision != "allow":
            gaps.append(Gap(part, f"it writes to a file: {judgement.reason}", judgement.rule, judgement.decision))
    return gaps


_ONLINE = "it needs the network"


def _leaving(gate: Gate, analysis: Analysis, cwd: str, outside: bool) -> list[Gap]:
    """Why a line cannot do its work inside the sandbox."""
    inside, freed = shell_rules(gate.rules), shell_rules(gate.rules, "outside")
    gaps: list[Gap] = []
    for part in analysis.parts:
        if allowing(part, freed):
            continue
        if outside and not part.transparent:
            gaps.append(Gap(part, "it is to run outside of the sandbox", suggest(part).replace("bash(", "outside(", 1)))
        elif _leaves_for_network(gate, part) and not allowing(part, inside):
            gaps.append(Gap(part, _ONLINE, suggest(part)))
        for path in writes(part, cwd):
            judgement = gate.judge_path_write(path) if path else None
            if judgement is not None and judgement.decision != "allow":
                gaps.append(Gap(part, judgement.reason, judgement.rule, judgement.decision))
        for path in reads(part, cwd):
            judgement = gate.judge_path_read(path) if path else None
            if judgement is not None and judgement.decision != "allow":
                gaps.append(Gap(part, judgement.reason, judgement.rule, judgement.decision))
    return gaps


def _leaves_for_network(gate: Gate, part: Part) -> bool:
    """Whether a part needs more of the network than the hosts that confined commands reach. What it names is all that
    is looked at: should it want to go elsewhere, the sandbox refuses that."""
    return contacts(part) and not ((hosts := hosts_of(part)) and gate.reaches(hosts))


def _dangers(gate: Gate, analysis: Analysis, cwd: str) -> list[Gap]:
    """What is dangerous in a line and neither allowed word for word nor brought back by a snapshot."""
    rules = shell_rules(gate.rules)
    gaps: list[Gap] = []
    for part in analysis.parts:
        harmful = of_part(part, analysis.line)
        rule = allowing(part, rules)
        if harmful and not (rule and not rule.pattern.endswith("*")) and not _recoverable(gate, part, cwd):
            gaps.append(Gap(part, harmful, _word_for_word(part)))
    if not gaps and analysis.danger and not any(of_part(p, analysis.line) for p in analysis.parts):
        gaps.append(Gap(Part(analysis.command), analysis.danger))
    return gaps


def _recoverable(gate: Gate, part: Part, cwd: str) -> bool:
    """Whether a recursive deletion stays strictly inside the workspace or the temporary folders."""
    targets = recursive_delete(part)
    if not targets or not all(t.known and not t.glob for t in targets):
        return False
    if None in part.folders:
        return False
    paths = [places.real(os.path.join(f, t.text)) for f in _folders(part, cwd) for t in targets]
    bases = [*gate.folders, *gate.temporary]
    inside = all(any(p != b and places.within(p, b) for b in bases) for p in paths)
    return inside and not any(places.within(gate.root, p) or "/.git" in p + "/" for p in paths)


class _RulesAlone:
    """A gate that knows nothing but rules: nothing is harmless by itself."""

    mode: Mode = "ask"
    confined: bool = False
    root: str = "/"
    folders: tuple[str, ...] = ("/",)
    temporary: tuple[str, ...] = ()

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def judge_path_read(self, path: str) -> Judgement:
        return Judgement("allow", "")

    def judge_path_write(self, path: str) -> Judgement:
        return Judgement("ask", "a redirection needs a permission of its own", f"edit({path})")

    def reaches(self, hosts: Iterable[str]) -> bool:
        return False


def decide(command: str, *, allow: Sequence[str] = (), deny: Sequence[str] = (), ask: Sequence[str] = ()) -> Judgement:
    """What rules alone say about a command, where no command is harmless by itself.

    Each rule is the pattern of a bash rule; without a final `*` it stands for the command with any arguments. Raises
    RuleError.
    """
    listed: tuple[tuple[Decision, Sequence[str]], ...] = (("allow", allow), ("deny", deny), ("ask", ask))
    # A rule without words says nothing; it does not stand for every command.
    return judge_by(command, [parse_rule(f"bash({_open(t)})", d) for d, texts in listed for t in texts if t.strip()])


def judge_by(command: str, rules: Sequence[Rule]) -> Judgement:
    """What these rules alone say about a command."""
    gate = _RulesAlone(rules)
    analysis = analyse(command)
    held = _held(analysis, rules)
    if held is not None:
        return held
    if analysis.error:
        return _named(Judgement("ask", analysis.error, "", command), analysis)
    gaps = _gaps(gate, replace(analysis, unclear="rules alone decide"), "/")
    return _missing(gaps, analysis) if gaps else Judgement("allow", "the rules allow every part", _used(gate, analysis))


def _open(pattern: str) -> str:
    return pattern if pattern.endswith("*") else f"{pattern} *"
