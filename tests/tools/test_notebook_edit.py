"""edit in a notebook: cells are quoted as they read, the JSON around them stays."""

from __future__ import annotations

import json

import pytest

BOOK = """{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "metadata": {"tags": ["a", {"source": "not this"}]},
   "outputs": [{"text": ["x = 1\\n"], "output_type": "stream"}],
   "source": [
    "x = 1\\n",
    "print(\\"é\\", x)"
   ]
  },
  {"cell_type": "markdown", "metadata": {}, "source": "# Title\\nx = 2"},
  {"cell_type": "code", "metadata": {}, "source": []}
 ],
 "nbformat": 4
}
"""


def test_lines_of_a_cell(ws):
    ws.put("n.ipynb", BOOK)
    out = ws.call("edit", path="n.ipynb", old='x = 1\nprint("é", x)', new='x = 1\ny = "two"\nprint("é", x, y)')
    assert out.ok and out.text.startswith("Edited n.ipynb. (cell 1)")
    assert ws.bytes("n.ipynb").decode() == BOOK.replace(
        '    "print(\\"é\\", x)"\n', '    "y = \\"two\\"\\n",\n    "print(\\"é\\", x, y)"\n'
    )


def test_a_cell_that_is_one_string(ws):
    ws.put("n.ipynb", BOOK)
    assert ws.call("edit", path="n.ipynb", old="# Title", new='# A "title"\nmore').ok
    assert ws.bytes("n.ipynb").decode() == BOOK.replace('"# Title\\nx', '"# A \\"title\\"\\nmore\\nx')


def test_several_cells_need_replace_all(ws):
    ws.put("n.ipynb", BOOK)
    out = ws.call("edit", path="n.ipynb", old="x = ", new="z = ")
    assert not out.ok and out.text.startswith("old is in several cells of n.ipynb: 1, 2.")
    assert ws.call("edit", path="n.ipynb", old="x = ", new="z = ", replace_all=True).ok
    sources = ["".join(c["source"]) for c in json.loads(ws.bytes("n.ipynb"))["cells"]]
    assert sources == ['z = 1\nprint("é", x)', "# Title\nz = 2", ""]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"nbformat": 4', '"nbformat": '), ('"cell_type": "markdown", ', '"a": "b"c", ')],
)
def test_json_that_would_break_is_refused(ws, old, new):
    ws.put("n.ipynb", BOOK)
    out = ws.call("edit", path="n.ipynb", old=old, new=new)
    assert not out.ok and "would no longer be a notebook" in out.text and ws.bytes("n.ipynb").decode() == BOOK


def test_the_json_itself_can_be_edited(ws):
    ws.put("n.ipynb", BOOK)
    assert ws.call("edit", path="n.ipynb", old='"nbformat": 4', new='"nbformat": 5').ok
    assert json.loads(ws.bytes("n.ipynb"))["nbformat"] == 5


def test_what_is_no_notebook_is_text(ws):
    ws.put("n.ipynb", "{ broken\n")
    assert ws.call("edit", path="n.ipynb", old="broken", new="mended").ok
    assert ws.bytes("n.ipynb") == b"{ mended\n"
