"""grep and glob, with ripgrep and with what stands in for it: the same answers."""

from __future__ import annotations

import os
import subprocess

import pytest

from tools._globs import glob_regex

SKIPPED = "(hidden and ignored files were left out; all=true takes them in)"


@pytest.fixture(params=["ripgrep", "stand-in"])
def repo(ws, request):
    """A git repository with ignored and hidden files; each file newer than the one before."""
    ws.ctx.state["no_ripgrep"] = request.param == "stand-in"
    subprocess.run(["git", "init", "-q", "."], cwd=ws.root, check=True)
    files = {
        ".gitignore": "dist/\n*.log\n!keep.log\nbuilt-*\n",
        "a.py": "import os\nneedle = 1\n",
        "src/b.py": "x\nneedle = 2\ny\nz\nneedle = 3\n",
        "src/c.ts": "// needle\n",
        "src/.gitignore": "secret.py\n",
        "src/secret.py": "needle\n",
        "dist/bundle.js": "needle in the bundle\n",
        "noise.log": "needle\n",
        "keep.log": "needle kept\n",
        ".github/ci.yml": "run: needle-ci\n",
        "bin.dat": "needle\0needle\n",
        "wide.txt": "needle wide\n",
    }
    for n, (name, text) in enumerate(files.items()):
        path = ws.put(name, text.encode("utf-16") if name == "wide.txt" else text)
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))
    return ws


def test_grep_shows_lines_newest_file_first(repo):
    out = repo.call("grep", pattern=r"needle\s")
    assert out.text == (
        "wide.txt\n1:needle wide\nkeep.log\n1:needle kept\nsrc/b.py\n2:needle = 2\n5:needle = 3\na.py\n2:needle = 1"
    )
    assert out.meta == {"total": 5, "files": 4}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"path": "src"}, "src/c.ts\n1:// needle\nsrc/b.py\n2:needle = 2\n5:needle = 3"),
        ({"path": "a.py"}, "a.py\n2:needle = 1"),
        ({"glob": "*.py"}, "src/b.py\n2:needle = 2\n5:needle = 3\na.py\n2:needle = 1"),
        ({"glob": "*.{ts,js}"}, "src/c.ts\n1:// needle"),
        ({"glob": "src/**/*.ts"}, "src/c.ts\n1:// needle"),
        ({"glob": "!*.py", "path": "src"}, "src/c.ts\n1:// needle"),
        ({"pattern": "NEEDLE = 3", "ignore_case": True}, "src/b.py\n5:needle = 3"),
        ({"pattern": "needle = 2", "context": 1}, "src/b.py\n1-x\n2:needle = 2\n3-y"),
        ({"pattern": "needle = [23]", "context": 1}, "src/b.py\n1-x\n2:needle = 2\n3-y\n4-z\n5:needle = 3"),
        ({"pattern": "needle = 3|^x$", "path": "src/b.py", "context": 0}, "src/b.py\n1:x\n5:needle = 3"),
        ({"pattern": "needle =", "output": "files"}, "src/b.py\na.py"),
        ({"pattern": "needle =", "output": "count"}, "src/b.py:2\na.py:1\n(2 of 2 files, 3 matching lines in all)"),
        ({"pattern": r"y\nz", "path": "src"}, "src/b.py\n3:y\n4:z"),
        ({"pattern": "nothing-like-it"}, f"No match in . {SKIPPED}"),
        ({"pattern": "nothing-like-it", "all": True}, "No match in ."),
        ({"pattern": r"(?<=needle )kept"}, "keep.log\n1:needle kept"),
        ({"pattern": "[[:digit:]]$", "path": "a.py"}, "a.py\n2:needle = 1"),
    ],
)
def test_grep(repo, args, text):
    assert repo.call("grep", **{"pattern": "needle", **args}).text == text


def test_what_git_ignores_is_left_out_unless_it_is_named_or_asked_for(repo):
    assert "dist" not in repo.call("grep", pattern="needle").text
    assert repo.call("grep", pattern="needle", path="dist").text == "dist/bundle.js\n1:needle in the bundle"
    assert repo.call("grep", pattern="needle", path="noise.log").text == "noise.log\n1:needle"
    assert "dist/bundle.js\n1:needle in the bundle" in repo.call("grep", pattern="needle", all=True).text
    only = "(only hidden or ignored files match)\n"
    assert repo.call("grep", pattern="the bundle").text == f"No match in . {SKIPPED}"
    assert repo.call("grep", pattern="^needle$", path="src").text == f"{only}src/secret.py\n1:needle"
    assert repo.call("grep", pattern="needle-ci", path=".github").text == ".github/ci.yml\n1:run: needle-ci"
    assert repo.call("glob", pattern="dist/**/*.js").text == f"{only}dist/bundle.js"


def test_the_cap_says_how_many_there_are(repo):
    repo.put("many.txt", "".join(f"hit {n}\n" for n in range(500)))
    out = repo.call("grep", pattern="hit", limit=3)
    assert out.text == "many.txt\n1:hit 0\n2:hit 1\n3:hit 2\n(3 of 500 matching lines in 1 files; narrow the search)"


def test_what_is_no_regular_expression_is_searched_for_as_it_is(repo):
    repo.put("f.js", "foo(bar\n")
    note = "(not a valid regular expression; searched for it as plain text)\n"
    assert repo.call("grep", pattern="foo(").text == f"{note}f.js\n1:foo(bar"


@pytest.mark.parametrize("many", [0, 400])
def test_a_file_that_may_not_be_read_is_passed_over_in_silence(repo, many):
    repo.ctx.veiled = lambda path: path.endswith("b.py")
    for n in range(many):
        repo.put(f"many/{n}.txt", "needle = 0\n")
    out = repo.call("grep", pattern="needle =", output="files", limit=1000)
    assert "b.py" not in out.text and out.text.split("\n")[many] == "a.py"
    assert "b.py" not in repo.call("grep", pattern="needle = [23]").text
    assert repo.call("grep", pattern="needle = 2").text == f"No match in . {SKIPPED}"
    assert repo.call("grep", pattern="needle = 2", path="src/b.py").text == "src/b.py\n2:needle = 2"


def test_a_pattern_that_begins_with_a_dash(repo):
    repo.put("f.sh", "ls -la\n")
    assert repo.call("grep", pattern="-la").text == "f.sh\n1:ls -la"


def test_long_lines_are_cut(repo):
    repo.put("app.min.js", "var a=1;" * 60_000 + "needle\nneedle\n")
    text = repo.call("grep", pattern="needle", path="app.min.js").text
    assert text == f"app.min.js\n1:{'var a=1;' * 50} …\n2:needle"


def test_a_missing_path_has_a_suggestion(repo):
    out = repo.call("grep", pattern="x", path="scr")
    assert not out.ok and "Did you mean: src?" in out.text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"pattern": "*.py"}, "src/b.py\na.py"),
        ({"pattern": "**/*.py"}, "src/b.py\na.py"),
        ({"pattern": "src/*.{py,ts}"}, "src/c.ts\nsrc/b.py"),
        ({"pattern": "*.py", "path": "src"}, "src/b.py"),
        ({"pattern": "[ab].py"}, "src/b.py\na.py"),
        ({"pattern": "[!a].py"}, "src/b.py"),
        ({"pattern": "src/"}, "src/c.ts\nsrc/b.py"),
        ({"pattern": ".github/**"}, ".github/ci.yml"),
        ({"pattern": "*.log"}, "keep.log"),
        ({"pattern": "*.log", "all": True}, "keep.log\nnoise.log"),
        ({"pattern": "nothing*"}, "No file matches nothing* in ."),
        ({"pattern": "*.{py,ts}", "limit": 1}, "src/c.ts\n(the 1 newest of 3 files; narrow the pattern)"),
    ],
)
def test_glob(repo, args, text):
    assert repo.call("glob", **args).text == text


def test_glob_with_an_absolute_pattern(repo):
    assert repo.call("glob", pattern=f"{repo.root}/src/*.py").text == "src/b.py"
    repo.ctx.cwd = repo.root / "src"
    assert repo.call("glob", pattern="../*.py").text == f"{repo.root}/a.py"
    assert repo.call("glob", pattern="*.py").text == "b.py"
    assert repo.call("glob", pattern="../../*.py").text == (
        f"glob: the pattern leads out of the workspace; give {repo.root.parent} as path."
    )
    assert repo.call("glob", pattern="/etc/host*").text == (
        "glob: the pattern leads out of the workspace; give /etc as path."
    )
    assert "/etc/hosts" in repo.call("glob", pattern="/etc/host*", path="/etc").text


def test_outside_of_git_the_ignore_files_below_are_obeyed(ws):
    for stand_in in (False, True):
        ws.ctx.state["no_ripgrep"] = stand_in
        ws.put(".gitignore", "out/\n")
        ws.put("out/a.txt", "needle\n")
        ws.put("in/a.txt", "needle\n")
        assert ws.call("grep", pattern="needle").text == "in/a.txt\n1:needle"
        assert ws.call("glob", pattern="*.txt").text == "in/a.txt"


def test_a_pattern_without_end_is_stopped(ws):
    ws.put("f", "a" * 40 + "b\n")
    ws.ctx.state.update(no_ripgrep=True, search_seconds=1.0)
    out = ws.call("grep", pattern="(a+)+$")
    assert (out.ok, out.text) == (False, "The search took longer than 1 s; narrow the path or the pattern.")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/x"]),
        ("src/**", ["src/a", "src/b/c"], ["src", "lib/src/a"]),
        ("**/test/*.js", ["test/a.js", "x/test/a.js"], ["test/x/a.js"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az"]),
        ("{a,b/*}.c", ["a.c", "b/x.c"], ["c.c"]),
        ("file?.[ch]", ["file1.c", "x/filex.h"], ["file.c", "file/.c"]),
        ("./a.b", ["a.b"], ["aab", "x/a.b"]),
        ("a\\*", ["a*"], ["ab"]),
        ("[id]/page.tsx", ["i/page.tsx"], ["[id]/page.tsx"]),
    ],
)
def test_patterns(pattern, yes, no):
    regex = glob_regex(pattern)
    assert [p for p in yes if not regex.match(p)] == [] and [p for p in no if regex.match(p)] == []
