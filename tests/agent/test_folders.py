"""Files that anybody may have put there are read: what is none is never waited for and leaves nothing open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.folders import text_of
from transcripts.files import opened


def test_what_is_no_regular_file_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("words")
    (tmp_path / "link").symlink_to("file")
    before = os.listdir("/proc/self/fd")
    for name in ("pipe", "folder", "missing"):
        assert text_of(tmp_path / name, 9) == ""
        with pytest.raises(OSError):
            opened(tmp_path / name)
    with pytest.raises(OSError):
        opened(tmp_path / "link", os.O_NOFOLLOW)
    assert (text_of(tmp_path / "file", 3), text_of(tmp_path / "link", 9)) == ("wor", "words")
    assert os.listdir("/proc/self/fd") == before
