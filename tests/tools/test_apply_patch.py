"""apply_patch: the format, its places, and that it is all or nothing."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def tree(ws) -> dict[str, bytes]:
    return {str(p.relative_to(ws.root)): p.read_bytes() for p in ws.root.rglob("*") if p.is_file()}


def test_everything_in_one_patch(ws):
    ws.put("old.txt", "gone\n")
    ws.put("a.txt", "one\ntwo\nthree\n")
    ws.put("run.sh", "echo 1\n").chmod(0o755)
    out = ws.call(
        "apply_patch",
        patch=patch(
            "*** Add File: new/b.txt",
            "+hello",
            "+",
            "*** Delete File: old.txt",
            "*** Update File: a.txt",
            "@@",
            " one",
            "-two",
            "+2",
            "*** Update File: run.sh",
            "*** Move to: bin/run.sh",
            "@@",
            "-echo 1",
            "+echo 2",
        ),
    )
    assert out.text == "Done.\nA new/b.txt\nD old.txt\nM a.txt\nD run.sh\nA bin/run.sh (from run.sh)"
    assert tree(ws) == {"new/b.txt": b"hello\n\n", "a.txt": b"one\n2\nthree\n", "bin/run.sh": b"echo 2\n"}
    assert os.access(ws.root / "bin/run.sh", os.X_OK)
    assert [os.path.basename(f["path"]) for f in out.meta["files"]] == ["b.txt", "old.txt", "a.txt", "run.sh", "run.sh"]


def test_one_file_has_the_same_facts_as_an_edit(ws):
    ws.put("f", "a\n")
    meta = ws.call("apply_patch", patch=patch("*** Update File: f", "-a", "+b")).meta
    assert (meta["path"], meta["added"], meta["removed"]) == (str(ws.root / "f"), 1, 1)
    assert meta["diff"] == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("a\nb\na\nb\n", ["@@", "-a", "+1", "@@", "-a", "+2"], "1\nb\n2\nb\n"),
        ("def f():\n  x\ndef g():\n  x\n", ["@@ def g():", "-  x", "+  y"], "def f():\n  x\ndef g():\n  y\n"),
        ("class A:\n def f\n  x\nclass B:\n def f\n  x\n", ["@@ class B:", "@@  def f", "-  x", "+  y"], None),
        ("a\nb\n", ["@@ -1,2 +1,2 @@", " a", "-b", "+c"], "a\nc\n"),
        ("a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"),
        ("a\nb\n", ["@@", "+x", "+y"], "a\nb\nx\ny\n"),
        ("a\nb", ["@@", "-b", "+c"], "a\nc\n"),
        ("a\nb", ["@@", " b", "+c"], "a\nb\nc\n"),
        ("a\nb", ["@@", "+c"], "a\nb\nc\n"),
        ("a\nb", ["@@", "-b"], "a\n"),
        ("a\nb", ["@@", "-a"], "b"),
        ("a\nb", ["@@", "-a", "+c"], "c\nb"),
        ("a", ["@@", "-a"], ""),
        ("a\n", ["@@", "-a"], ""),
        ("a\nb\n", ["@@", "+x", "*** End of File"], "a\nb\nx\n"),
        ("x\na\nx\n", ["@@", "-x", "+y", "*** End of File"], "x\na\ny\n"),
        ("a\r\nb\r\n", ["@@", " a", "-b", "+c", "+d"], "a\r\nc\r\nd\r\n"),
        ("a   \nb\n", ["@@", " a", "-b", "+c"], "a   \nc\n"),
        ("    a\n    b\n", ["@@", " a", "-b", "+c", "+  d"], "    a\n    c\n      d\n"),
        ("say “hi”\nx\n", ["@@", ' say "hi"', "-x", "+y"], "say “hi”\ny\n"),
        ("", ["@@", "+a"], "a\n"),
    ],
)
def test_places(ws, before, lines, after):
    ws.put("f", before)
    out = ws.call("apply_patch", patch=patch("*** Update File: f", *lines))
    expected = after if after is not None else before.removesuffix("  x\n") + "  y\n"
    assert (out.text, ws.bytes("f").decode()) == ("Done.\nM f", expected)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["*** Update File: f", "@@", "-nowhere", "+x"], "f: Failed to find expected lines:\nnowhere"),
        (["*** Update File: f", "@@ def nothing", "-a", "+x"], "f: Failed to find the line 'def nothing'"),
        (["*** Update File: f", "@@"], "f: Update hunk does not contain any lines."),
        (["*** Update File: f"], "f: the update is empty."),
        (["*** Update File: f", "@@", "what"], "Line 4 of the patch: Unexpected line found in update hunk: 'what'."),
        (["*** Update File: g", "@@", "-a", "+b"], "g does not exist"),
        (["*** Delete File: g"], "g does not exist"),
        (["*** Delete File: folder"], "folder is a directory."),
        (["*** Delete File: f", "what"], "Line 3 of the patch: nothing may follow a deleted file's header"),
        (["*** Add File: x", "hello"], "Line 3 of the patch: every line of a new file must begin with +, not 'hello'."),
        (["*** Frobnicate File: f"], "Line 2 of the patch: '*** Frobnicate File: f' is no file header."),
        ([], "The patch changes nothing."),
        (["*** Update File: f", "@@", "-b", "+# ... rest of the code ..."], "f: the patch leaves code out"),
        (["*** Update File: f", "@@", "-a", "+b", "*** Delete File: g"], "g does not exist"),
        (["*** Add File: new", "+x", "*** Update File: f", "@@", "-zzz"], "f: Failed to find expected lines"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(ws, lines, words):
    ws.put("f", "a\nb\n")
    ws.put("folder/x", "")
    before = tree(ws)
    out = ws.call("apply_patch", patch=patch(*lines))
    assert not out.ok and out.text.startswith(words), out.text
    assert tree(ws) == before


@pytest.mark.parametrize(
    "text",
    [
        "<<'EOF'\n{}\nEOF",
        "apply_patch <<EOF\n{}\nEOF\n",
        "\n\n{}\n\n",
        " {} ",
    ],
)
def test_what_models_put_around_a_patch(ws, text):
    ws.put("f", "a\n")
    assert ws.call("apply_patch", patch=text.format(patch("*** Update File: f", "-a", "+b"))).ok
    assert ws.bytes("f") == b"b\n"


def test_a_loose_place_must_be_the_only_one(ws):
    ws.put("f", "  a\nx\n    a\n")
    out = ws.call("apply_patch", patch=patch("*** Update File: f", "@@", "-a", "+b"))
    assert not out.ok and ws.bytes("f") == b"  a\nx\n    a\n"


def test_a_stale_file_is_refused(ws):
    path = ws.put("f", "a\nb\n")
    ws.call("read", path="f")
    path.write_text("a\nc\n")
    out = ws.call("apply_patch", patch=patch("*** Update File: f", "@@", "-a", "+x"))
    assert not out.ok and out.text.startswith("f has changed on disk since you last saw it")


def test_when_a_file_cannot_be_written_those_before_it_are_put_back(ws):
    ws.put("a", "a\n").chmod(0o640)
    ws.put("b", "b\n").chmod(0o444)
    steps = ["*** Update File: a", "-a", "+1", "*** Add File: c", "+c", "*** Update File: b", "-b", "+2"]
    out = ws.call("apply_patch", patch=patch(*steps))
    assert not out.ok and "write-protected" in out.text
    assert tree(ws) == {"a": b"a\n", "b": b"b\n"}
    assert (ws.root / "a").stat().st_mode & 0o777 == 0o640


def test_two_steps_for_one_file(ws):
    ws.put("f", "a\nb\n")
    steps = ["*** Update File: f", "-a", "+1", "*** Update File: f", "-b", "+2"]
    assert ws.call("apply_patch", patch=patch(*steps)).ok and ws.bytes("f") == b"1\n2\n"


def test_a_file_that_is_added_over_another_says_so(ws):
    ws.put("f", "old\n")
    out = ws.call("apply_patch", patch=patch("*** Add File: f", "+new"))
    assert (out.text, ws.bytes("f")) == ("Done.\nM f (it existed; replaced)", b"new\n")


def test_latin1_stays(ws):
    ws.put("f", "caf\xe9 one\ntwo\n".encode("latin-1"))
    assert ws.call("apply_patch", patch=patch("*** Update File: f", " café one", "-two", "+zwei")).ok
    assert ws.bytes("f") == "caf\xe9 one\nzwei\n".encode("latin-1")


def test_writes_and_preview(ws):
    ws.put("f", "a\n")
    tool = ws.box.tools["apply_patch"]
    args = {"patch": patch("*** Update File: f", "*** Move to: g", "-a", "+b")}
    assert tool.writes(ws.ctx, args) == [ws.root / "f", ws.root / "g"]
    assert tool.preview(ws.ctx, args) == ("--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n--- a/g\n+++ b/g\n@@ -0,0 +1 @@\n+b\n")
    assert tree(ws) == {"f": b"a\n"}


def test_a_notebook_stays_one(ws):
    book = '{"cells": [], "nbformat": 4}\n'
    ws.put("n.ipynb", book)
    out = ws.call("apply_patch", patch=patch("*** Update File: n.ipynb", f"-{book.strip()}", "+{"))
    assert not out.ok and "no longer be a notebook" in out.text and ws.bytes("n.ipynb").decode() == book


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    old=st.lists(st.sampled_from(["a", "b", "  c", "d ", "é"]), max_size=12),
    cut=st.lists(st.booleans(), min_size=13, max_size=13),
    add=st.lists(st.lists(st.sampled_from(["x", "  y", "z"]), max_size=2), min_size=13, max_size=13),
    end=st.sampled_from(["\n", "\r\n"]),
    closed=st.booleans(),
)
def test_a_patch_made_of_two_texts_turns_one_into_the_other(ws, old, cut, add, end, closed):
    lines = [f"{line}{n}" for n, line in enumerate(old)]
    steps, after, left_last = ["@@"], [], not closed and bool(lines)
    for n, line in enumerate(lines):
        steps += [f"+{new}" for new in add[n]] + [f"{'-' if cut[n] else ' '}{line}"]
        after += add[n] + ([] if cut[n] else [line])
    steps += [f"+{new}" for new in add[len(lines)]]
    after += add[len(lines)]
    left_last = left_last and not cut[len(lines) - 1] and not add[len(lines)]
    before = end.join(lines) + (end if closed and lines else "")
    ws.put("f", before)
    ws.ctx.seen.clear()
    out = ws.call("apply_patch", patch=patch("*** Update File: f", *steps))
    used = end if end in before else "\n"
    expected = used.join(after) + (used if after and not left_last else "")
    assert out.ok == (len(steps) > 1) and ws.bytes("f").decode() == (expected if out.ok else before)
