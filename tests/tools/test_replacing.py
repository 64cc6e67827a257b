"""How a file is replaced: in one step, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools._files import replace
from tools.base import Toolbox, ToolContext, ToolFailure, load_tools

TOOLS = load_tools()
ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from pathlib import Path
from tools._files import replace
path, size = Path(sys.argv[1]), 3_000_000
now = path.read_bytes()
while True:
    then = (b"a" if now[:1] == b"b" else b"b") * size
    replace(path, then, now)
    now = then
"""


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a" * 3_000_000)
    seen = set()
    for n in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT)
        time.sleep(0.3 + n * 0.037)
        writer.kill()
        writer.wait()
        data = path.read_bytes()
        assert len(data) == 3_000_000 and data in (b"a" * 3_000_000, b"b" * 3_000_000)
        seen.add(data[:1])
    assert len(list(tmp_path.iterdir())) <= 7


def test_what_changed_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"theirs")
    with pytest.raises(ToolFailure, match="was changed by something else just now"):
        replace(path, b"mine", b"before")
    with pytest.raises(ToolFailure, match="was changed by something else just now"):
        replace(path, b"mine", None)
    assert path.read_bytes() == b"theirs"


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that takes no new files, with a file in it that may be written; seen by one who is not root."""
    folder = Path(tempfile.mkdtemp()).resolve()
    file = folder / "f"
    file.write_bytes(b"one\ntwo\n")
    file.chmod(0o666)
    folder.chmod(0o555)
    was = os.geteuid()
    try:
        if was == 0:
            os.seteuid(65534)
        yield folder
    finally:
        if was == 0:
            os.seteuid(0)
        folder.chmod(0o755)
        file.unlink()
        folder.rmdir()


def test_in_a_folder_that_takes_no_new_files_it_is_written_in_place(closed_folder):
    inode = (closed_folder / "f").stat().st_ino
    box = Toolbox(TOOLS, ToolContext(closed_folder, closed_folder))
    out = asyncio.run(box.run("edit", {"path": "f", "old": "two", "new": "2"}))
    assert out.ok and (closed_folder / "f").read_bytes() == b"one\n2\n"
    assert (closed_folder / "f").stat().st_ino == inode
    out = asyncio.run(box.run("write", {"path": "new", "content": "x"}))
    assert (out.ok, out.text) == (False, f"write: Permission denied: {closed_folder / 'new'}")
