"""After an edit: problems that are new, and only those."""

from __future__ import annotations

import os
import shutil

import pytest

NEW = "\nNew problems since this change:\n"


@pytest.mark.parametrize(
    ("name", "good", "bad", "words"),
    [
        ("a.py", "x = 1\n", "x = (1\n", "  line 1: SyntaxError: '(' was never closed"),
        ("a.json", '{"a": 1}\n', '{"a": 1,}\n', "  line 1: invalid JSON: "),
        ("a.toml", "a = 1\n", "a = \n", "  line 1: invalid TOML: "),
        ("a.sh", "if true; then echo; fi\n", "if true; then echo\n", "line 2: syntax error: unexpected end of file"),
        ("a.xml", "<a><b/></a>\n", "<a><b></a>\n", "  line 1: invalid XML: mismatched tag"),
        ("a.c", "int f(void) { return 1; }\n", "int f(void) { return 1 }\n", "expected ';' before '}' token"),
        ("a.cpp", "int f() { return 1; }\n", "int f() { return x; }\n", "'x' was not declared in this scope"),
        ("a.rs", "fn f() -> i32 { 1 }\n", "fn f( -> i32 { 1 }\n", "  line 1: "),
        ("a.js", "let a = 1;\n", "let a = ;\n", "  line 1: SyntaxError: Unexpected token ';'"),
        ("a.mjs", "import a from 'a';\n", "import from ;\n", "SyntaxError: "),
    ],
)
def test_a_syntax_error_is_told(ws, name, good, bad, words):
    needs = {"js": "node", "mjs": "node", "c": "gcc", "cpp": "g++", "rs": "rustfmt"}.get(name.partition(".")[2])
    if needs and not shutil.which(needs):
        return
    assert "New problems" not in ws.call("write", path=name, content=good).text
    out = ws.call("edit", path=name, old=good, new=bad)
    assert out.ok and NEW in out.text and words in out.text


def test_what_was_wrong_before_is_not_told(ws):
    ws.put("a.py", "x = (1\ny = 2\n")
    assert "New problems" not in ws.call("edit", path="a.py", old="y = 2", new="y = 3").text


def test_the_linter_of_the_project_tells_what_is_new(ws):
    if not shutil.which("ruff"):
        ruff = os.path.join(os.path.dirname(os.sys.executable), "ruff")
        if not os.path.exists(ruff):
            return
        ws.ctx.env = {**ws.ctx.env, "PATH": f"{os.path.dirname(ruff)}:{ws.ctx.env['PATH']}"}
    ws.put("pyproject.toml", "[tool.ruff.lint]\nselect = ['F']\n")
    ws.put("src/a.py", "import os\nx = 1\n")
    out = ws.call("edit", path="src/a.py", old="x = 1", new="x = y")
    assert out.text.endswith(f"{NEW}  line 2: F821 Undefined name `y`")
    assert "New problems" not in ws.call("edit", path="src/a.py", old="x = y", new="\nx = y").text


def test_json_with_comments_is_left_alone(ws):
    ws.put("tsconfig.json", "{}\n")
    out = ws.call("edit", path="tsconfig.json", old="{}", new="{\n  // why\n}")
    assert out.ok and "New problems" not in out.text


def test_without_a_linter_in_the_project_none_is_run(ws):
    ws.put("a.py", "x = 1\n")
    assert "New problems" not in ws.call("edit", path="a.py", old="x = 1", new="x = y").text
