"""Shows the MCP servers of this session, how they stand, and their tools.

They start with the first message. What is changed in their files counts from the next session on; `refold mcp add` and
`refold mcp rm` change yours.
"""

from __future__ import annotations

from agent.commands.base import Face

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    servers = face.session.servers
    if not servers.all:
        face.say("There are no MCP servers. `refold mcp add NAME -- COMMAND` adds one, from the next session on.")
        return
    states = {"waiting": "starts with your first message"}
    rows = [
        (s.config.name, states.get(s.state, s.state), str(len(s.tools) or ""), s.config.source) for s in servers.all
    ]
    face.table(rows, ("server", "state", "tools", "from"))
    for server in servers.all:
        if server.problem:
            face.say(f"{server.config.name}: {server.problem}", "warn")
    tools = [(t.name, "reads only" if t.reads else "") for s in servers.all for t in s.tools]
    if tools:
        face.table(tools, ("tool", "its server says"))
