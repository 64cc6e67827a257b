"""write: whole files, and what it refuses."""

from __future__ import annotations

import os
import stat

import pytest


def test_a_new_file_and_its_folders(ws):
    out = ws.call("write", path="a/b/c.txt", content="one\ntwo\n")
    assert (out.text, ws.bytes("a/b/c.txt")) == ("Created a/b/c.txt (2 lines).", b"one\ntwo\n")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((ws.root / "a/b/c.txt").stat().st_mode) == 0o666 & ~mask
    assert (out.meta["before_sha"], out.meta["added"], out.meta["removed"]) == ("", 2, 0)


def test_what_it_wrote_it_may_write_over(ws):
    ws.call("write", path="f", content="one\n")
    out = ws.call("write", path="f", content="two\n")
    assert (out.text, ws.bytes("f")) == ("Replaced f (1 line).", b"two\n")


def test_unread_content_is_not_lost(ws):
    ws.put("f", "precious\n")
    out = ws.call("write", path="f", content="x")
    assert (out.ok, out.text) == (False, "f exists (9 bytes) and you have not read it. Read it, or use edit.")
    assert ws.bytes("f") == b"precious\n"
    ws.call("read", path="f")
    assert ws.call("write", path="f", content="x").ok


def test_an_empty_file_may_be_written_over(ws):
    ws.put("f", "")
    assert ws.call("write", path="f", content="x\n").ok


def test_a_file_read_in_part_is_not_replaced_until_all_was_seen(ws):
    ws.put("f", "".join(f"{n}\n" for n in range(1, 11)))
    ws.call("read", path="f", limit=3)
    ws.call("read", path="f", offset=8)
    out = ws.call("write", path="f", content="x")
    assert out.text == "You have not seen all of f (not lines 4-7). Read the rest first, or use edit."
    ws.call("read", path="f", offset=4, limit=4)
    assert ws.call("write", path="f", content="x").ok


def test_a_change_by_somebody_else_is_not_lost(ws):
    path = ws.put("f", "a\n")
    ws.call("read", path="f")
    stamp = path.stat()
    path.write_text("b\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    out = ws.call("write", path="f", content="c\n")
    assert not out.ok and out.text.startswith("f has changed on disk since you last saw it") and "+b" in out.text
    assert not ws.call("write", path="f", content="c\n").ok
    assert ws.bytes("f") == b"b\n"
    ws.call("read", path="f")
    assert ws.call("write", path="f", content="c\n").ok


def test_a_file_that_went_away_is_made_again(ws):
    path = ws.put("f", "a\n")
    ws.call("read", path="f")
    path.unlink()
    assert ws.call("write", path="f", content="b\n").text == "Created f (1 line)."


def test_mode_symlink_encoding_mark_and_line_ends_stay(ws):
    path = ws.put("real", "\ufeffÄ\r\nb\r\n".encode())
    path.chmod(0o750)
    (ws.root / "link").symlink_to("real")
    ws.call("read", path="link")
    assert ws.call("write", path="link", content="Ö\nc\n").ok
    assert (ws.root / "link").is_symlink()
    assert ws.bytes("real") == "\ufeffÖ\r\nc\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_latin1_stays_latin1_or_is_refused(ws):
    ws.put("f", "caf\u00e9 ole\n".encode("latin-1"))
    ws.call("read", path="f")
    out = ws.call("write", path="f", content="世界\n")
    assert (out.ok, out.text) == (
        False,
        "f: the file is in latin-1, which cannot write '世界'. Nothing was written.",
    )
    assert ws.call("write", path="f", content="th\u00e9\n").ok and ws.bytes("f") == b"th\xe9\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("def f():\n    # ... existing code ...\n", "The content leaves code out ('# ... existing code ...')"),
        ("a\ud800b", "The content has half of a character pair in it"),
    ],
)
def test_content_that_cannot_be_meant(ws, content, words):
    ws.put("f", "x\n")
    ws.call("read", path="f")
    out = ws.call("write", path="f", content=content)
    assert not out.ok and out.text.startswith(words) and ws.bytes("f") == b"x\n"


def test_paths_that_cannot_be_written(ws):
    ws.put("dir/x", "")
    ws.put("file", "x")
    os.mkfifo(ws.root / "pipe")
    assert ws.call("write", path="dir", content="x").text == "dir is a directory."
    assert not ws.call("write", path="pipe", content="x").ok
    assert not ws.call("write", path="file/below", content="x").ok
    assert not ws.call("write", path="a" * 300, content="x").ok
    assert sorted(os.listdir(ws.root)) == ["dir", "file", "pipe"]


def test_preview_is_a_diff(ws):
    ws.put("f", "a\nb\n")
    preview = ws.box.tools["write"].preview
    assert preview(ws.ctx, {"path": "f", "content": "x"}) == (
        "(it would be refused: f exists (4 bytes) and you have not read it. Read it, or use edit.)"
    )
    ws.call("read", path="f")
    assert preview(ws.ctx, {"path": "f", "content": "a\nc\n"}) == ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    assert preview(ws.ctx, {"path": "new", "content": "a\n"}) == "--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+a\n"
