"""What lies in a folder and cannot be looked at: links that lead in a circle, places that are shut."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import CHECKOUT
from tests.tools.conftest import Workspace
from tools._search import Answer, unread

AS_NOBODY = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from tools import _searcher
if os.geteuid() == 0:
    os.seteuid(65534)
sys.exit(_searcher.main(json.loads(sys.argv[2])))
"""
SHUT = "rg: {}: Permission denied (os error 13)\n"


def test_a_link_that_leads_in_a_circle_hides_no_folder(ws: Workspace) -> None:
    (ws.root / "loop").symlink_to("loop")
    (ws.root / "deep").mkdir()
    (ws.root / "deep" / "f.txt").write_text("word\n")
    assert [
        ws.call("read", path=".").text,
        ws.call("glob", pattern="*.txt").text,
        ws.call("grep", pattern="word").text,
        ws.call("write", path="loop", content="x").text,
    ] == ["deep/\nloop", "deep/f.txt", "deep/f.txt\n1:word", "write: Too many levels of symbolic links: loop"]


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        ("", ""),
        ("rg: regex parse error: x\n", ""),
        (SHUT.format("./a b"), "(could not be read: a b)\n"),
        (SHUT.format("./a") + "rg: regex parse error: x\n", ""),
        ("".join(SHUT.format(f"./{n}") for n in range(5)), "(could not be read: 0, 1, 2 and 2 more)\n"),
    ],
)
def test_what_could_not_be_read_is_named(complaint: str, said: str) -> None:
    assert unread(Answer(b"", complaint, failed=True)) == said


def test_the_stand_in_names_what_is_shut_as_ripgrep_does(tmp_path: Path) -> None:
    """As somebody who may not look: root may look everywhere, so it becomes nobody where the tests run as root."""
    tmp_path.chmod(0o755)
    (tmp_path / "shut").mkdir(0o000)
    (tmp_path / "open").write_text("word\n")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "closed").write_text("word\n")
    (tmp_path / "closed").chmod(0o000)
    request = {
        "mode": "count", "paths": ["."], "pattern": "word", "fixed": False, "perl": False, "ignore_case": False,
        "multiline": False, "name": "", "everything": True, "context": 0, "most": 0, "in_git": False,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(CHECKOUT), json.dumps(request)], cwd=tmp_path, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"./open\x001\n"), done.stderr
    assert unread(Answer(done.stdout, done.stderr.decode())) == "(could not be read: closed, shut)\n"
