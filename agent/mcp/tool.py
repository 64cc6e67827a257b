"""A tool that an MCP server brings, as one of the session's tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.base import Tool, ToolContext

MOST_DESCRIPTION = 4_000
"""Characters of a description that are shown: it stands in every request."""

TAKES_ALL: Mapping[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": True}
"""The schema by which refold itself checks the arguments of such a tool: its server does that, with its own."""


@dataclass(frozen=True)
class McpTool(Tool):
    """`server` and `remote` are the names in the configuration and on the server, `parameters` the server's schema as
    it came. `reads`: the server says that the tool changes nothing. `online`: its effects can leave the machine, for
    the server is a service elsewhere or a program with the network; `program`: it is a program of this machine."""

    server: str = ""
    remote: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = False
    online: bool = False
    program: bool = True

    def spec(self) -> dict[str, Any]:
        """The tool as a chat-completions `tools` entry, with the server's own schema."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def parameters_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A server's schema with what every provider asks for: an object, and a table of properties."""
    made = {**schema, "type": "object"}
    if not isinstance(made.get("properties"), dict):
        made["properties"] = {}
    return made


def preview_of(ctx: ToolContext, args: Mapping[str, Any]) -> str:
    """All that a call would give to its server, for the person who is asked about it."""
    return json.dumps(dict(args), ensure_ascii=False, indent=1)


def title_of(server: str, remote: str, args: Mapping[str, Any]) -> str:
    """One line that says what a call does."""
    said = ", ".join(f"{k}: {' '.join(str(v).split())[:60]}" for k, v in args.items())
    return f"{server}/{remote} {said}"[:160].rstrip()
