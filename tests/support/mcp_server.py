"""A real MCP server, made with the SDK: what a well-meant one does, and some that things go wrong with.

python mcp_server.py [--log FILE] [--slow SECONDS] [--odd] [--http PORT]
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.types import ToolAnnotations

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def words(option: str) -> str:
    """The word behind an option; "" where it is not there."""
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else ""


server = MCPServer("helper")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def save(path: str, text: str) -> str:
    """Writes a file."""
    Path(path).write_text(text)
    return f"wrote {path}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def picture() -> Image:
    """A picture of one pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("it is broken on purpose")


@server.tool()
def figures() -> dict[str, Any]:
    """Structured."""
    return {"answer": 42}


@server.tool()
def long_text(count: int) -> str:
    """Many lines."""
    return "\n".join(f"line {n}" for n in range(count))


@server.tool()
def environment() -> str:
    """The environment of the server."""
    return json.dumps(dict(os.environ))


@server.tool()
def die() -> str:
    """Ends the server in the middle of a call."""
    os._exit(3)


@server.tool()
async def wait(seconds: float, mark: str, ctx: Context) -> str:
    """Waits, and leaves a file where it was let to the end."""
    await ctx.report_progress(1, 2, "half")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path(f"{mark}.cancelled").touch()
        raise
    Path(mark).touch()
    return "waited"


def main() -> None:
    if log := words("--log"):
        with contextlib.suppress(OSError), open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
    if slow := words("--slow"):
        time.sleep(float(slow))
    print("a line that is no message")
    if port := words("--http"):
        server.run("streamable-http", host="127.0.0.1", port=int(port))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
