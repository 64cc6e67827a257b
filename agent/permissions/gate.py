"""The gate: what may happen to each call, by mode, rules and what the call would do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from agent.mcp.tool import McpTool
from agent.permissions import commands, places, servers
from agent.permissions.hosts import host_of
from agent.permissions.reach import FILTERING, Reach, fetch_rules, host_rule
from agent.permissions.rules import (
    Rule,
    mcp_name,
    name_matches,
    parse_rule,
    path_matches,
    strongest,
)
from agent.permissions.store import RuleBook
from agent.permissions.verdicts import MODES, Judgement, Mode, Scope
from tools.base import TASK, Tool, ToolContext

_QUIET = frozenset({"todo", "recall", "ask_user", "jobs"})
"""Tools of our own that touch nothing but what the session itself has started or said."""


class Confines(Protocol):
    """What the gate needs to know about the sandbox: its kind, "none" where there is none."""

    @property
    def kind(self) -> str: ...


class _NoSandbox:
    kind = "none"


class Permissions:
    """Judges every call of one session.

    `root` is the workspace, `folders` more of it elsewhere, `temporary` the folders for temporary files (unset: the
    system's), `readable` folders elsewhere that may be read, `home` the folder that keeps the rules. `extra` are rules
    of the session (from flags, or of a trusted project). Raises RuleError where the kept rules cannot be read,
    ValueError for an unknown mode.
    """

    def __init__(
        self,
        mode: str,
        *,
        root: Path,
        home: Path,
        sandbox: Confines | None = None,
        extra: Sequence[Rule] = (),
        folders: Sequence[Path] = (),
        temporary: Sequence[Path] | None = None,
        readable: Sequence[Path] = (),
    ) -> None:
        self.mode: Mode = _mode(mode)
        self.root = places.real(root)
        self.home = places.real(home)
        self.folders: tuple[str, ...] = (self.root, *map(places.real, folders))
        self.temporary = places.temporary_folders() if temporary is None else tuple(map(places.real, temporary))
        self.readable = tuple(map(places.real, readable))
        self.rules: RuleBook = RuleBook(home, root, extra)
        self._sandbox = sandbox or _NoSandbox()

    @property
    def confined(self) -> bool:
        """Whether commands can be run in a sandbox here."""
        return self._sandbox.kind != "none"

    @property
    def filters_hosts(self) -> bool:
        """Whether commands in the sandbox reach the hosts that rules for fetch allow, and no others."""
        return self._sandbox.kind in FILTERING

    @property
    def _lets_out(self) -> bool:
        return self.mode == "auto" and self.filters_hosts

    def reaches(self, hosts: Iterable[str]) -> bool:
        """Whether a command in the sandbox reaches all these hosts (each name:port)."""
        reach = Reach(self.rules)
        return self.filters_hosts and all(reach.refusal(host) is None for host in hosts)

    def set_mode(self, mode: str) -> None:
        """Changes the mode for the calls that follow. Raises ValueError."""
        self.mode = _mode(mode)

    def remember(self, rule: str, scope: Scope) -> None:
        """Keeps the rules of a judgement (one a line) as allowed. Raises RuleError, OSError."""
        for line in rule.splitlines():
            if line.strip() and scope != "once":
                self.rules.add(parse_rule(line, "allow", scope))

    def judge(self, tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> Judgement:
        """What may happen to a call. Never raises on what a model can send."""
        if tool.name in _QUIET:
            return Judgement("allow", "it touches nothing outside the session")
        if tool.name == TASK:
            return self._judge_task()
        if tool.name == "bash":
            return commands.judge(self, str(args.get("command", "")), ctx.cwd, outside=args.get("outside") is True)
        if isinstance(tool, McpTool):
            return servers.judge(tool, self.rules, self.mode, self.confined)
        if tool.name.startswith("mcp__") or "/" in tool.name:
            return self._judge_named("mcp", mcp_name(tool.name) if tool.name.startswith("mcp__") else tool.name, tool)
        if tool.name in ("fetch", "web_fetch"):
            return self._judge_fetch(str(args.get("url", "")))
        if tool.effect == "write":
            return self._judge_write(tool, args, ctx)
        if tool.effect == "read":
            return self._judge_read(args, ctx)
        return self._judge_named(tool.name, tool.name, tool)

    def always_asks(self, tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> bool:
        """Whether a call is asked about in every mode: what could not be taken back, and what an `ask` rule names."""
        mode, self.mode = self.mode, "yolo"
        try:
            return self.judge(tool, args, ctx).decision != "allow"
        finally:
            self.mode = mode

    def explain(self, command: str, cwd: Path | None = None) -> Judgement:
        """What would happen to a shell command, and why; runs nothing."""
        return commands.judge(self, command, cwd or Path(self.root))

    def path_rule(self, tool: str, path: str) -> Rule | None:
        """The rule that decides over reading or editing a file, if there is one."""
        spellings = {path, places.real(path)}
        fitting: list[Rule] = []
        for rule in self.rules:
            if rule.tool in (tool, "*"):
                strict = rule.decision != "allow"
                hits = [path_matches(rule.pattern, p, self.root, anywhere=strict) for p in spellings]
                # A symlink must not lead an allow out of the folder it speaks of, nor around a deny.
                if all(hits) if rule.decision == "allow" else any(hits):
                    fitting.append(rule)
        return strongest(fitting)

    def reveals(self, path: str) -> bool:
        """Whether a rule of the person's opens a secret file to confined processes."""
        rule = self.path_rule("read", path)
        return rule is not None and rule.decision == "allow" and rule.pattern != "*"

    def denies(self, path: str) -> bool:
        """Whether a rule of the person's forbids to read a file."""
        rule = self.path_rule("read", path)
        return rule is not None and rule.decision == "deny"

    @property
    def denies_by_pattern(self) -> bool:
        """Whether a rule forbids to read files by a pattern, so that each file has to be looked at."""
        return any(r.tool == "read" and r.decision == "deny" and set("*?") & set(r.pattern) for r in self.rules)

    def denied_places(self) -> list[str]:
        """The files and folders that rules forbid to read by naming them (patterns are looked up file by file)."""
        patterns = [r.pattern.removesuffix("/**") for r in self.rules if r.tool == "read" and r.decision == "deny"]
        named = [os.path.expanduser(p) for p in patterns if not set("*?") & set(p)]
        return [os.path.normpath(os.path.join(self.root, p)) for p in named]

    def judge_path_read(self, path: str) -> Judgement:
        """What may happen to reading one file or folder (an absolute path)."""
        rule = self.path_rule("read", path)
        if rule is not None:
            return Judgement(rule.decision, f"your rule {rule} says so", str(rule), path)
        resolved = places.real(path)
        if places.is_secret(path) or places.is_secret(resolved):
            if self.mode == "yolo":
                return Judgement("allow", "the mode yolo reads everything")
            return Judgement(
                "ask", f"{_short(path, self.root)} may hold secrets", f"read({_short(path, self.root)})", path
            )
        free = self.mode in ("auto", "yolo") or any(
            places.within(resolved, f) for f in (*self.folders, *self.temporary, *self.readable)
        )
        if free or places.commonly_readable(resolved):
            return Judgement("allow", "reading there needs no permission")
        folder = resolved if os.path.isdir(resolved) else str(Path(resolved).parent)
        return Judgement("ask", f"{path} lies outside the workspace", f"read({folder}/**)", path)

    def judge_path_write(self, path: str) -> Judgement:
        """What may happen to writing one file (an absolute path)."""
        rule = self.path_rule("edit", path)
        if rule is not None and rule.decision == "deny":
            return Judgement("deny", f"your rule {rule} forbids it", str(rule), path)
        if self.mode == "plan":
            return Judgement("deny", "the mode plan only reads", "", path, mode="edits")
        if rule is not None:
            return Judgement(rule.decision, f"your rule {rule} says so", str(rule), path)
        if self.mode == "yolo":
            return Judgement("allow", "the mode yolo asks for nothing")
        return self._judge_plain_write(path)

    def _judge_plain_write(self, path: str) -> Judgement:
        resolved, shown = places.real(path), _short(path, self.root)
        if places.steers(resolved, self.root, self.home) or places.steers(path, self.root, self.home):
            return Judgement("ask", f"{shown} decides what runs or what is allowed", f"edit({shown})", path)
        if places.is_secret(resolved):
            return Judgement("ask", f"{shown} may hold secrets", f"edit({shown})", path)
        if not any(places.within(resolved, folder) for folder in self.folders):
            if self.mode != "ask" and any(places.within(resolved, f) for f in self.temporary):
                return Judgement("allow", "it is a temporary file")
            return Judgement("ask", f"{path} lies outside the workspace", f"edit({resolved})", path)
        if self.mode in ("edits", "auto"):
            return Judgement("allow", f"the mode {self.mode} edits in the workspace unasked")
        return Judgement("ask", f"the mode {self.mode} asks before each edit", f"edit({shown})", path)

    def _judge_write(self, tool: Tool, args: Mapping[str, Any], ctx: ToolContext) -> Judgement:
        try:
            paths = [str(p) for p in tool.writes(ctx, args)] if tool.writes else []
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            paths = []
        if not paths:
            paths = [str(ctx.resolve(str(args.get("path") or args.get("file_path") or ".")))]
        return worst([self.judge_path_write(p) for p in paths])

    def _judge_read(self, args: Mapping[str, Any], ctx: ToolContext) -> Judgement:
        named = [str(args[k]) for k in ("path", "file_path", "dir", "folder") if isinstance(args.get(k), str)]
        return worst([self.judge_path_read(str(ctx.resolve(p))) for p in named or ["."]])

    def _judge_fetch(self, url: str) -> Judgement:
        host = host_of(url)
        name = host.rpartition(":")[0]
        rules = fetch_rules(self.rules)
        rule = host_rule(rules, host)
        if not host and rules and (rule is None or rule.decision == "allow"):
            return Judgement("ask", "the host of this address cannot be told for certain", "", url, effects=False)
        if rule is not None:
            return Judgement(rule.decision, f"your rule {rule} says so", str(rule), name, effects=False)
        if self.mode == "yolo":
            return Judgement("allow", "the mode yolo asks for nothing", effects=False)
        wanted = f"fetch({name})" if name else ""
        also = "; with a rule for it commands in the sandbox reach it, too" if self._lets_out and name else ""
        return Judgement("ask", f"nobody has allowed {name or 'this host'}{also}", wanted, name, effects=False)

    def _judge_task(self) -> Judgement:
        rule = strongest(r for r in self.rules if r.tool == TASK)
        if rule is not None and rule.decision != "allow":
            return Judgement(rule.decision, f"your rule {rule} says so", str(rule), effects=False)
        return Judgement("allow", "each call of a sub-agent is judged by itself", effects=False)

    def _judge_named(self, kind: str, name: str, tool: Tool) -> Judgement:
        rule = strongest(
            r for r in self.rules if r.tool in (kind, "*") and (kind != "mcp" or name_matches(r.pattern, name))
        )
        if rule is not None and rule.decision == "deny":
            return Judgement("deny", f"your rule {rule} forbids it", str(rule), name)
        if self.mode == "plan" and tool.effect != "read":
            return Judgement("deny", "the mode plan only reads", "", name, mode="ask")
        if rule is not None:
            return Judgement(rule.decision, f"your rule {rule} says so", str(rule), name)
        if self.mode == "yolo":
            return Judgement("allow", "the mode yolo asks for nothing")
        return Judgement("ask", f"nobody has allowed {name}", f"mcp({name})" if kind == "mcp" else name, name)


def explain_lines(gate: Permissions, judgement: Judgement) -> list[str]:
    """A judgement in words, one fact a line: what happens, why, what is missing, which rules would allow it."""
    happens = {"allow": "It runs unasked", "ask": "You are asked", "deny": "It is denied"}[judgement.decision]
    lines = [f"{happens} (mode {gate.mode}): {judgement.why(chat=False)}."]
    if judgement.decision != "allow" and judgement.missing:
        lines += [f"  not allowed: {part}" for part in judgement.missing.splitlines()]
    if judgement.danger:
        lines.append(f"  danger: {judgement.danger}")
    if judgement.rule:
        label = {"allow": "rule", "ask": "would allow it", "deny": "rule"}[judgement.decision]
        lines += [f"  {label}: {rule}" for rule in judgement.rule.splitlines()]
    if judgement.sandbox:
        lines.append(f"  runs: {_WHERE[judgement.sandbox].format(reached=_reached(gate))}")
    return lines


def _reached(gate: Permissions) -> str:
    hosts = Reach(gate.rules).allowed() if gate.filters_hosts else []
    if "*" in hosts:
        return "hosts over HTTP and HTTPS, as your rules for fetch say"
    return f"only these hosts: {', '.join(hosts)}" if hosts else "no network"


_WHERE = {
    "read-only": "in the sandbox, where it can change nothing",
    "workspace": "in the sandbox, where it can change the workspace and reaches {reached}",
    "network": "in the sandbox, with the network",
    "off": "outside of the sandbox",
}


def worst(judgements: Sequence[Judgement]) -> Judgement:
    """One judgement for several things a call would do: the strictest, naming everything that is missing."""
    for decision in ("deny", "ask"):
        found = [j for j in judgements if j.decision == decision]
        if found:
            rules = dict.fromkeys(line for j in found for line in j.rule.splitlines())
            missing = dict.fromkeys(j.missing for j in found if j.missing)
            rule = "\n".join(rules) if all(j.rule for j in found) or decision == "deny" else ""
            mode = found[0].mode if all(j.mode for j in found) else ""
            return replace(found[0], rule=rule, missing="\n".join(missing), mode=mode)
    return judgements[0]


def _mode(mode: str) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    raise ValueError(f"there is no mode {mode!r}; the modes are {', '.join(MODES)}")


def _short(path: str, root: str) -> str:
    return path[len(root) + 1 :] if path != root and places.within(path, root) else path
