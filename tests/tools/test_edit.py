"""edit: exactly what was quoted changes, and nothing else."""

from __future__ import annotations

import os
import stat

import pytest


def test_unique_text_is_replaced_and_the_answer_says_where(ws):
    ws.put("f.py", "a = 1\nb = 2\nc = 3\n")
    out = ws.call("edit", path="f.py", old="b = 2", new="b = 20")
    assert out.ok
    assert out.text == "Edited f.py.\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 20\n c = 3"
    assert ws.bytes("f.py") == b"a = 1\nb = 20\nc = 3\n"
    assert (out.meta["added"], out.meta["removed"]) == (1, 1)
    assert out.meta["path"] == str(ws.root / "f.py")
    assert out.meta["diff"] == "--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 20\n c = 3\n"
    assert ws.ctx.seen[str(ws.root / "f.py")] == out.meta["sha"] != out.meta["before_sha"]


def test_ambiguous_text_is_refused_with_its_lines(ws):
    ws.put("f", "x\ny\nx\n")
    out = ws.call("edit", path="f", old="x", new="z")
    assert not out.ok
    assert out.text == (
        "old is in f 2 times, on lines 1, 3. Add lines around it until it is the only one, or set replace_all."
    )
    assert ws.bytes("f") == b"x\ny\nx\n"


def test_overlapping_places_are_two_places(ws):
    ws.put("f", "aaa")
    assert not ws.call("edit", path="f", old="aa", new="b").ok


def test_replace_all(ws):
    ws.put("f", "x\ny\nx\n")
    out = ws.call("edit", path="f", old="x", new="$1\\0", replace_all=True)
    assert out.text.startswith("Edited f. (2 places)")
    assert ws.bytes("f") == b"$1\\0\ny\n$1\\0\n"


def test_missing_text_shows_the_closest_lines(ws):
    ws.put("f.py", "import os\n\ndef area(width, height):\n    return width * height\n")
    out = ws.call("edit", path="f.py", old="def area(width, heigth):\n    return width * height", new="x")
    assert out.text == (
        "old is not in f.py. The closest lines are:\n"
        "     1\timport os\n     2\t\n     3\tdef area(width, height):\n     4\t    return width * height\n"
        "Copy them exactly, blanks included."
    )


def test_line_numbers_in_old_are_named_as_the_mistake(ws):
    ws.put("f", "one\ntwo\n")
    out = ws.call("edit", path="f", old="     1\tone\n     2\ttwo", new="x")
    assert "leave out the line numbers" in out.text


def test_several_edits_are_all_or_none(ws):
    ws.put("f", "Hello world! Goodbye world!\n")
    bad = ws.call("edit", path="f", edits=[{"old": "Hello", "new": "Hi"}, {"old": "nowhere", "new": "x"}])
    assert not bad.ok and bad.text.startswith("Edit 2 of 2: old is not in f.")
    assert bad.text.endswith("None of the edits was made.")
    assert ws.bytes("f") == b"Hello world! Goodbye world!\n"
    good = ws.call("edit", path="f", edits=[{"old": "Hello", "new": "Hi"}, {"old": "Hi world", "new": "Hi all"}])
    assert good.ok and ws.bytes("f") == b"Hi all! Goodbye world!\n"


def test_a_stale_file_is_refused_with_what_changed(ws):
    path = ws.put("f", "one\ntwo\n")
    ws.call("read", path="f")
    path.write_text("one\n2\n")
    out = ws.call("edit", path="f", old="one", new="1")
    assert not out.ok
    assert out.text == (
        "f has changed on disk since you last saw it, so nothing was written. Read it again first. What changed:\n"
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    )
    assert ws.bytes("f") == b"one\n2\n"
    ws.call("read", path="f")
    assert ws.call("edit", path="f", old="one", new="1").ok


def test_an_own_edit_is_no_foreign_change(ws):
    ws.put("f", "A\nB\nC\n")
    ws.call("read", path="f")
    assert [ws.call("edit", path="f", old=c, new=c + "1").ok for c in "ABC"] == [True, True, True]
    assert ws.bytes("f") == b"A1\nB1\nC1\n"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_mode_stays(ws, mode):
    path = ws.put("x.sh", "echo old\n")
    path.chmod(mode)
    assert ws.call("edit", path="x.sh", old="old", new="new").ok
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_symlink_stays_and_its_target_changes(ws):
    ws.put("real.txt", "old\n")
    (ws.root / "link.txt").symlink_to("real.txt")
    assert ws.call("edit", path="link.txt", old="old", new="new").ok
    assert (ws.root / "link.txt").is_symlink() and ws.bytes("real.txt") == b"new\n"


def test_other_names_of_a_hard_linked_file_keep_the_old_text_and_it_is_said(ws):
    a = ws.put("a", "needle\n")
    os.link(a, ws.root / "b")
    out = ws.call("edit", path="a", old="needle", new="thread")
    assert (ws.bytes("a"), ws.bytes("b")) == (b"thread\n", b"needle\n")
    assert "had 2 names (hard links); the other one keeps the old text" in out.text


def test_a_write_protected_file_is_refused(ws):
    ws.put("f", "old\n").chmod(0o444)
    out = ws.call("edit", path="f", old="old", new="new")
    assert not out.ok and "write-protected" in out.text and ws.bytes("f") == b"old\n"


def test_nothing_is_left_beside_the_file(ws):
    ws.put("f", "old\n")
    ws.call("edit", path="f", old="old", new="new")
    assert os.listdir(ws.root) == ["f"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"old": "x", "new": "x"}, "Nothing to change: old and new are the same."),
        ({"old": "", "new": "x"}, "old is empty, which only a new or empty file allows; f has text in it."),
        ({"old": "a", "new": "b", "edits": [{"old": "a", "new": "b"}]}, "Give either old and new, or edits, not both."),
        (
            {"old": "body", "new": "// ... rest of the methods ..."},
            "The new text leaves code out ('// ... rest of the methods ...'). Write it in full; nothing was changed.",
        ),
    ],
)
def test_bad_input_says_what_to_do(ws, args, words):
    ws.put("f", "a body x\n")
    out = ws.call("edit", path="f", **args)
    assert (out.ok, out.text, ws.bytes("f")) == (False, words, b"a body x\n")


def test_preview_and_writes_tell_before_anything_happens(ws):
    ws.put("f", "old\n")
    tool, args = ws.box.tools["edit"], {"path": "f", "old": "old", "new": "new"}
    assert tool.writes(ws.ctx, args) == [ws.root / "f"]
    assert tool.preview(ws.ctx, args) == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"
    assert ws.bytes("f") == b"old\n"
