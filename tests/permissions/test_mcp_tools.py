"""What may happen to a tool of an MCP server: by mode, by where the server runs, by rules."""

from __future__ import annotations

from itertools import product

import pytest

from agent.mcp.tool import TAKES_ALL, McpTool
from agent.permissions import MODES, parse_rule
from agent.permissions.servers import judge
from tools.base import ToolOutput


async def nothing(*words: object, **more: object) -> ToolOutput:
    return ToolOutput("")


def tool(reads: bool = False, online: bool = False, program: bool = True) -> McpTool:
    return McpTool(
        "mcp__the_server__a_tool", "", "execute", TAKES_ALL, nothing, str,
        server="the server", remote="a.tool", reads=reads, online=online, program=program,
    )  # fmt: skip


KINDS = {
    "program": tool(),
    "reading program": tool(reads=True),
    "reading program with the network": tool(reads=True, online=True),
    "program with the network": tool(online=True),
    "service": tool(online=True, program=False),
    "reading service": tool(reads=True, online=True, program=False),
}
IN_A_SANDBOX = {
    # kind: plan, ask, edits, auto, yolo
    "program": "deny, ask workspace, ask workspace, allow workspace, allow off",
    "reading program": "allow read-only, ask workspace, ask workspace, allow workspace, allow off",
    "reading program with the network": "deny, ask network, ask network, ask network, allow off",
    "program with the network": "deny, ask network, ask network, ask network, allow off",
    "service": "deny, ask, ask, ask, allow",
    "reading service": "ask, ask, ask, ask, allow",
}
WITHOUT_ONE = {
    "program": "deny, ask off, ask off, ask off, allow off",
    "reading program": "deny, ask off, ask off, ask off, allow off",
    "reading program with the network": "deny, ask off, ask off, ask off, allow off",
    "program with the network": "deny, ask off, ask off, ask off, allow off",
    "service": "deny, ask, ask, ask, allow",
    "reading service": "ask, ask, ask, ask, allow",
}


@pytest.mark.parametrize(("kind", "confined"), list(product(KINDS, (True, False))))
def test_by_mode_and_place(kind: str, confined: bool) -> None:
    judged = [judge(KINDS[kind], (), mode, confined) for mode in MODES]
    shown = ", ".join(f"{j.decision} {j.sandbox}".strip() for j in judged)
    assert shown == (IN_A_SANDBOX if confined else WITHOUT_ONE)[kind]
    assert [j.effects for j in judged if j.decision != "deny"] == [m != "plan" for m in MODES][
        -sum(j.decision != "deny" for j in judged) :
    ]
    assert {j.rule for j in judged if j.decision == "ask"} <= {"mcp(the_server/a_tool)"}


@pytest.mark.parametrize(
    "pattern", ["mcp", "*", "mcp(*)", "mcp(the_server)", "mcp(the_server/a_tool)", "mcp(the server/a.tool)",
                "mcp(*/a_*)", "mcp__the_server__a_tool", "mcp__the_server"],
)  # fmt: skip
def test_rules_that_fit(pattern: str) -> None:
    for decision in ("allow", "ask", "deny"):
        rule = parse_rule(pattern, decision, "session")  # type: ignore[arg-type]
        for mode in MODES[1:]:
            assert judge(tool(), [rule], mode, True).decision == decision
    assert judge(tool(), [parse_rule(pattern, "allow", "session")], "plan", True).decision == "deny"


@pytest.mark.parametrize("pattern", ["bash", "mcp(other)", "mcp(the_server/other)", "mcp(a_tool)", "read(*)"])
def test_rules_that_do_not(pattern: str) -> None:
    assert judge(tool(), [parse_rule(pattern, "deny", "session")], "auto", True).decision == "allow"
    assert judge(tool(), [parse_rule(pattern, "allow", "session")], "ask", True).decision == "ask"


def test_an_allowed_tool_stays_in_the_sandbox_in_auto() -> None:
    rule = parse_rule("mcp", "allow", "session")
    assert judge(tool(), [rule], "auto", True).sandbox == "workspace"
    assert judge(tool(online=True), [rule], "auto", True).sandbox == "network"


def test_a_server_with_a_slash_in_its_name_takes_nothing_that_is_allowed_of_another() -> None:
    sly = McpTool(
        "mcp__docs_evil__x", "", "execute", TAKES_ALL, nothing, str, server="docs/evil", remote="x", program=True
    )
    given = {"allow": ("docs", "docs/*", "docs/evil/x"), "deny": ("docs", "docs_evil"), "ask": ("docs/*",)}
    found = {
        f"{decision} {pattern}": judge(sly, [parse_rule(f"mcp({pattern})", decision)], "edits", True).decision
        for decision, patterns in given.items()
        for pattern in patterns
    }  # fmt: skip
    assert found == {
        "allow docs": "ask", "allow docs/*": "ask", "allow docs/evil/x": "ask",
        "deny docs": "deny", "deny docs_evil": "deny", "ask docs/*": "ask",
    }  # fmt: skip
    assert judge(sly, [parse_rule("mcp(docs_evil/x)", "allow")], "edits", True).decision == "allow"
