"""An MCP server with the standard library alone, whose tools have odd names, schemas and results.

python odd_server.py [--many N] [--log FILE]
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {
        "self": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "ctx": {"$ref": "#/$defs/deep"},
        "a-b c": {"type": ["integer", "null"]},
    },
    "required": ["self"],
    "$defs": {"deep": {"type": "object", "additionalProperties": True}},
}
NAMES = ["plain", "über.größe", "a b", "a_b", "a/b", "x" * 90, "x" * 89 + "y", "with__two", ""]


def tools() -> list[dict[str, Any]]:
    """Those with odd names, then as many as asked for."""
    more = int(sys.argv[sys.argv.index("--many") + 1]) if "--many" in sys.argv else 0
    named = [{"name": n, "description": f"Says {n[:9]}.", "inputSchema": SCHEMA} for n in NAMES]
    return named + [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(more)]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request."""
    if method == "initialize":
        info = {"name": "odd", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        page = int(params.get("cursor") or 0)
        listed = tools()
        more = {"nextCursor": str(page + 5)} if page + 5 < len(listed) else {}
        return {"tools": listed[page : page + 5], **more}
    if params["name"] == "a_b" and params["arguments"].get("self") == "garbled":
        return {"content": [{"type": "text", "text": "\ud83d lone, NUL \0, \x1b[31mred"}]}
    if params["name"] == "plain":
        content = [
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "file:///y", "text": "the text of y"}},
            {"type": "resource", "resource": {"uri": "file:///z", "blob": "AAAA", "mimeType": "application/zip"}},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "image", "data": "no picture", "mimeType": "image/png"},
        ]
        return {"content": content, "isError": True}
    return {"content": [{"type": "text", "text": json.dumps([params["name"], params["arguments"]])}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "--log" in sys.argv:
            with open(sys.argv[sys.argv.index("--log") + 1], "a") as file:
                file.write(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}))
            line = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            sys.stdout.buffer.write(line.replace("NUL", "\0NUL").encode().replace(b"\0", b"\xff") + b"\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
