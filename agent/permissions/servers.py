"""What may happen to a call of a tool that an MCP server brings.

A program runs in the sandbox and can do no more than a command there: in auto its tools run unasked. What reaches the
network, a service elsewhere or a program that may use it, is asked about. In plan only tools that say they only read
may run, in a process that the sandbox keeps from changing anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.mcp.tool import McpTool
from agent.permissions.rules import Rule, mcp_name, name_matches, strongest
from agent.permissions.verdicts import Confinement, Judgement


def confinement(mode: str, confined: bool) -> Confinement:
    """How a program that outlives a call is confined in a mode, where there is a sandbox or not (`confined`)."""
    if mode == "plan":
        return "read-only" if confined else "off"
    return "workspace" if mode == "auto" and confined else "off"


def server_confinement(mode: str, confined: bool, network: bool) -> Confinement:
    """How an MCP server is confined. In ask and edits too: it starts before anybody was asked, and what it runs may lie
    where a confined command can change it."""
    if mode == "yolo" or not confined:
        return "off"
    return "read-only" if mode == "plan" else "network" if network else "workspace"


def judge(tool: McpTool, rules: Iterable[Rule], mode: str, confined: bool) -> Judgement:
    """What may happen to a call, by the rules, the mode and where the server runs."""
    name = mcp_name(tool.name)
    named = f"{tool.server}/{tool.remote}"
    fits = [r for r in rules if r.tool in ("mcp", "*") and any(name_matches(r.pattern, s) for s in (name, named))]
    # A server may be called docs/x: what is allowed of the server docs is not meant for it.
    rule = strongest(
        r for r in fits if r.decision != "allow" or "/" not in tool.server or name_matches(r.pattern, name)
    )
    if rule is not None and rule.decision == "deny":
        return Judgement("deny", f"your rule {rule} forbids it", str(rule), name)
    held: Confinement = server_confinement(mode, confined, tool.online) if tool.program else ""
    if mode == "plan" and (why := _not_in_plan(tool, confined)):
        return Judgement("deny", why, "", name, mode="ask")
    made = Judgement("ask", _why(tool, mode, held), f"mcp({name})", name, sandbox=held, effects=mode != "plan")
    if rule is not None:
        return replace(made, decision=rule.decision, reason=f"your rule {rule} says so", rule=str(rule))
    if mode == "yolo":
        return replace(made, decision="allow", reason="the mode yolo asks for nothing", rule="")
    if held in ("read-only", "workspace") and mode in ("plan", "auto"):
        return replace(made, decision="allow", reason="its server runs in the sandbox", rule="")
    return made


def _why(tool: McpTool, mode: str, held: Confinement) -> str:
    if not tool.program:
        return f"the MCP server {tool.server} is a service elsewhere"
    if tool.online:
        return f"the MCP server {tool.server} may use the network"
    if held == "off":
        return f"the MCP server {tool.server} runs outside of the sandbox"
    return f"the mode {mode} asks before each call"


def _not_in_plan(tool: McpTool, confined: bool) -> str:
    """Why a tool may not run in plan; "" where it may."""
    if not tool.reads:
        return "the mode plan only reads, and this tool does not say that it does"
    if tool.program and tool.online:
        return f"the mode plan lets no program use the network, and the MCP server {tool.server} needs it"
    if tool.program and not confined:
        return "the mode plan needs a sandbox to hold the MCP server, and there is none here"
    return ""
