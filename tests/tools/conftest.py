"""A workspace with all tools, and a way to call one as the loop does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.base import Toolbox, ToolContext, ToolOutput, load_tools
from tools.bash import close_jobs


class Workspace:
    """A folder, its context and its tools."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.live: list[str] = []
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self.ctx = ToolContext(root, root, env=env, progress=self.live.append)
        self.box = Toolbox(load_tools(), self.ctx)

    def call(self, name: str, **args: Any) -> ToolOutput:
        """One call, to its end."""
        return asyncio.run(self.box.run(name, args))

    def put(self, name: str, data: bytes | str) -> Path:
        """A file made by somebody else."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def bytes(self, name: str) -> bytes:
        """What is on disk."""
        return (self.root / name).read_bytes()


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    """A fresh workspace whose jobs end with the test."""
    workspace = Workspace(tmp_path.resolve())
    yield workspace
    close_jobs(workspace.ctx)
