"""read: what the model gets to see of a file."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

from tools.base import Picture

ROOT = Path(__file__).resolve().parents[2]


def test_lines_are_numbered(ws):
    path = ws.put("f.txt", "one\n\nthree\n")
    out = ws.call("read", path="f.txt")
    assert out.text == "     1\tone\n     2\t\n     3\tthree"
    sha = hashlib.sha256(b"one\n\nthree\n").hexdigest()
    assert out.meta == {"path": str(path), "sha": sha, "total_lines": 3, "lines": "1-3"}
    assert ws.ctx.seen == {str(path): sha}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"offset": 2, "limit": 2}, "     2\tb\n     3\tc\n(lines 2-3 of 5; continue with offset=4)"),
        ({"offset": 4}, "     4\td\n     5\te"),
        ({"offset": -2}, "     4\td\n     5\te"),
        ({"offset": -4, "limit": 1}, "     2\tb\n(lines 2-2 of 5; continue with offset=3)"),
        ({"offset": -99}, "     1\ta\n     2\tb\n     3\tc\n     4\td\n     5\te"),
        ({"offset": 0, "limit": 1}, "     1\ta\n(lines 1-1 of 5; continue with offset=2)"),
    ],
)
def test_ranges(ws, args, text):
    ws.put("f", "a\nb\nc\nd\ne")
    assert ws.call("read", path="f", **args).text == text


def test_beyond_the_end(ws):
    ws.put("f", "a\nb\n")
    out = ws.call("read", path="f", offset=3)
    assert (out.ok, out.text) == (False, "f has only 2 lines; offset 3 is beyond its end.")


def test_at_most_2000_lines_and_the_share(ws):
    ws.put("f", "".join(f"{n}\n" for n in range(5000)))
    assert ws.call("read", path="f").text.endswith("(lines 1-2000 of 5000; continue with offset=2001)")
    ws.ctx.share = 1000
    text = ws.call("read", path="f").text
    assert len(text) <= 1000 and "continue with offset=" in text
    tail = ws.call("read", path="f", offset=-2000).text
    assert len(tail) <= 1000 and tail.endswith("\t4999")


def test_a_very_long_line_is_told_not_shown(ws):
    ws.put("f", "x" * 100_000 + "\nshort\n")
    text = ws.call("read", path="f").text
    assert text == f"     1\t{'x' * 2000} … (line of 100,000 characters)\n     2\tshort"


def test_lines_end_only_where_an_editor_ends_them(ws):
    ws.put("f", "a\x0cb\u2028c\x85d\ne\r\nf\n")
    assert ws.call("read", path="f").text == "     1\ta\x0cb\u2028c\x85d\n     2\te\n     3\tf"


def test_nothing_to_see(ws):
    ws.put("empty", "")
    assert ws.call("read", path="empty").text == "(empty is empty)"
    (ws.root / "folder").mkdir()
    assert ws.call("read", path="folder").text == "(an empty directory)"


def test_a_directory_is_listed(ws):
    ws.put("b.txt", "")
    ws.put("A/x", "")
    assert ws.call("read", path=".").text == "A/\nb.txt"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("src/utlis.py", "Did you mean: src/utils.py?"),
        ("src/utils.ts", "Did you mean: src/utils.py?"),
        ("utils.py", "Did you mean: src/utils.py?"),
        ("/src/utils.py", "Did you mean: src/utils.py?"),
        ("SRC/UTILS.PY", "Did you mean: src/utils.py?"),
        ("nothing.like", "nothing.like does not exist"),
    ],
)
def test_did_you_mean(ws, asked, words):
    ws.put("src/utils.py", "")
    out = ws.call("read", path=asked)
    assert not out.ok and words in out.text


def test_a_path_relative_to_the_workspace_works_from_below(ws):
    ws.put("src/a.py", "x\n")
    ws.put("src/deep/b.py", "y\n")
    ws.ctx.cwd = ws.root / "src" / "deep"
    assert ws.call("read", path="src/a.py").text.endswith("\tx")
    assert ws.call("read", path="b.py").text == "     1\ty"


@pytest.mark.parametrize(
    ("on_disk", "asked"),
    [
        ("Foto 13\u00a005.txt", "Foto 13 05.txt"),
        (unicodedata.normalize("NFD", "café.txt"), "café.txt"),
        ("it’s.txt", "it's.txt"),
    ],
)
def test_names_that_look_the_same(ws, on_disk, asked):
    ws.put(on_disk, "hello\n")
    out = ws.call("read", path=asked)
    assert out.ok and out.text == f"({on_disk})\n     1\thello"


def test_the_file_that_is_opened_is_the_one_that_was_judged(ws):
    secret = ws.put("my secret.txt", "x\n")
    assert ws.ctx.resolve("my\u00a0secret.txt") == secret
    ws.put(".env", "KEY=1\n")
    assert not ws.call("read", path="\uff0eenv").ok


def test_what_cannot_be_read_says_why(ws):
    os.symlink("b", ws.root / "a")
    os.symlink("a", ws.root / "b")
    os.symlink("nowhere", ws.root / "dangling")
    os.mkfifo(ws.root / "pipe")
    ws.put("blob", bytes(range(256)) * 10)
    ws.put("x.pdf", b"%PDF-1.7 ...")
    started = time.monotonic()
    said = {name: ws.call("read", path=name) for name in ("a", "dangling", "pipe", "blob", "x.pdf", "/dev/zero")}
    assert time.monotonic() - started < 20
    assert not any(out.ok for out in said.values())
    assert said["a"].text == "a: Too many levels of symbolic links."
    assert said["dangling"].text == "dangling is a symlink to nowhere, which does not exist."
    assert said["pipe"].text == "pipe is not a regular file (a pipe, socket or device)."
    assert said["blob"].text == "blob is a binary file of 2,560 bytes; nothing to show (bash: file, xxd, strings)."
    assert said["x.pdf"].text == "x.pdf is a PDF of 12 bytes; bash may have pdftotext for it."
    assert "not a regular file" in said["/dev/zero"].text
    assert ws.call("read", path="a\0b").text == "A path cannot contain a NUL character."


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", "Ärger\r\nzwei"),
        ("utf-16", "line café\nzwei"),
        ("utf-16-le", "hello there\nzwei"),
        ("latin-1", "naïve café\nzwei"),
        ("gbk", "const x = 1\n中文注释\n第二行"),
        ("shift_jis", "こんにちは\nカタカナ"),
        ("cp1252", "“quoted” text\n"),
    ],
)
def test_encodings_are_read_as_what_they_are(ws, encoding, text):
    ws.put("f", text.encode(encoding))
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    assert ws.call("read", path="f").text == "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(lines, 1))


def test_stray_bytes_in_utf8(ws):
    ws.put("g", ("ä" * 10).encode() + b"\xff\n")
    assert ws.call("read", path="g").text == f"     1\t{'ä' * 10}\ufffd"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0" + b"\0" * 20


def test_an_image(ws):
    data = png(640, 480)
    ws.put("shot.dat", data)
    said = f"shot.dat: image/png, 640 x 480 pixels, {len(data)} bytes"
    out = ws.call("read", path="shot.dat")
    assert (out.text, out.pictures) == (f"{said}. This model takes no images.", ())
    ws.ctx.takes_images = True
    out = ws.call("read", path="shot.dat")
    assert (out.text, out.pictures) == (said, (Picture(data, "image/png"),))


def test_an_image_that_is_too_large(ws):
    ws.ctx.takes_images = True
    ws.put("x.png", png(9, 9) + b"\0" * 6_000_000)
    out = ws.call("read", path="x.png")
    assert not out.ok and "too large to show (5,242,880 bytes at most)" in out.text


def test_a_notebook(ws):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"image/png": "iVBOR"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
            ],
        },
    ]
    ws.put("n.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    text = ws.call("read", path="n.ipynb").text
    assert text.startswith(
        "[cell 1: markdown]\n# Title\nwords\n\n[cell 2: code]\n1 + 1\n[output]\n2\n[output]\n(image/png)\n"
        "[output]\nValueError: no\n\n"
    )
    ws.put("broken.ipynb", "{")
    assert ws.call("read", path="broken.ipynb").text == "     1\t{"


PROBE = """
import asyncio, resource, sys
from pathlib import Path
from tools.base import Toolbox, ToolContext, load_tools
root = Path(sys.argv[1])
box = Toolbox(load_tools(), ToolContext(root, root))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = asyncio.run(box.run("read", {"path": "big.txt"}))
tail = asyncio.run(box.run("read", {"path": "big.txt", "offset": -2}))
late = asyncio.run(box.run("read", {"path": "big.txt", "offset": 2999999, "limit": 1}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(first.text[-60:].split("\\n")[-1], len(first.text))
print(tail.text)
print(late.text)
"""


def test_a_huge_file_is_paged_in_little_memory(ws):
    with open(ws.root / "big.txt", "w") as f:
        f.writelines(f"{n}\n" for n in range(1, 3_000_001))
    done = subprocess.run([sys.executable, "-c", PROBE, str(ws.root)], cwd=ROOT, capture_output=True, text=True)
    kilobytes, *lines = done.stdout.splitlines()
    assert int(kilobytes) < 40_000, done.stderr
    assert lines[0].startswith("(lines 1-2000 of 3000000; continue with offset=2001) ")
    assert lines[1:3] == ["2999999\t2999999", "3000000\t3000000"]
    assert lines[3:] == ["2999999\t2999999", "(lines 2999999-2999999 of 3000000; continue with offset=3000000)"]


def test_a_huge_single_line(ws):
    with open(ws.root / "big.txt", "wb") as f:
        f.write(b"x" * 30_000_000 + b"\nend")
    text = ws.call("read", path="big.txt").text
    assert text == f"     1\t{'x' * 2000} … (line of 30,000,000 characters)\n     2\tend"
