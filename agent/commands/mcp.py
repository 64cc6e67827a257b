"""Shows the MCP servers of this session, how they stand, and their tools.

They start with the first message. What is changed in their files counts from the next session on; `refold mcp add` and
`refold mcp rm` change yours.
"""

from __future__ import annotations

from agent.clean import one_line
from agent.commands.base import Face
from agent.extend.skills import shown_path
from agent.mcp.tool import McpTool

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    servers = face.session.servers
    if not servers.all:
        face.say("There are no MCP servers. `refold mcp add NAME -- COMMAND` adds one, from the next session on.")
        return
    states = {"waiting": "starts with your first message"}
    rows = [
        (s.config.name, states.get(s.state, s.state), str(len(s.tools) or ""), shown_path(s.config.source))
        for s in servers.all
    ]
    face.table(rows, ("server", "state", "tools", "from"))
    for server in servers.all:
        if server.problem:
            face.say(f"{server.config.name}: {server.problem}", "warn")
    tools = [(t.name, _about(t)) for s in servers.all for t in s.tools]
    if tools:
        face.table(tools, ("tool", "its server says"))


def _about(tool: McpTool) -> str:
    """What a server says of its tool, in one line, and that it only reads where it says so."""
    return f"{'reads only: ' if tool.reads else ''}{one_line(tool.description, 80)}"
