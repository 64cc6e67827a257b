"""The parts that need no terminal: what is shown of hostile text, of Markdown that still comes, of a diff, of files."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.clean import one_line, pasted, plain
from agent.terminal import diff
from agent.terminal.blocks import note, tool
from agent.terminal.files import list_files, matches
from agent.terminal.graphemes import left_of, right_of
from agent.terminal.keyboard import KITTY, XTERM, protocol
from agent.terminal.markdown import Page
from agent.terminal.output import reflows
from agent.terminal.paper import Paper
from agent.terminal.stream import PIECE, Block, MarkdownStream, tail_of
from agent.terminal.theme import Theme, choose_theme, color_level, read_colors, toolkit_style
from transcripts.records import ToolCall, ToolResult


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b]52;c;eA==\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x1bP+q544e\x1b\\b", "ab"),
        ("a\x9b2Jb\x9d0;x\x07c", "abc"),
        ("hides\x1b]0;the rest of it", "hides0;the rest of it"),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("bell\x07 back\x08space nul\x00", "bell backspace nul"),
        ("user\u202etxt.exe", "usertxt.exe"),
    ],
)
def test_only_letters_reach_the_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_nothing_that_could_be_an_order_is_left(text: str) -> None:
    for cleaned in (plain(text), pasted(text), one_line(text)):
        assert all(c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) <= 0x9F) for c in cleaned)


def blocks_of(text: str, step: int) -> list[Block]:
    stream = MarkdownStream()
    out: list[Block] = []
    for n in range(0, len(text), step):
        out += stream.feed(text[n : n + step])
    return out + stream.close()


ANSWER = """# Title
A paragraph with **bold**
in two lines.

- one
- two

  still two
- three

```python
def f():
    return "`"

```
~~~
other fence
~~~
| a | b |
|---|---|
| 1 | 2 |

end"""


def test_an_answer_is_cut_into_finished_blocks() -> None:
    assert blocks_of(ANSWER, 7) == [
        Block("# Title"),
        Block("A paragraph with **bold**\nin two lines."),
        Block("- one\n- two\n\n  still two\n- three"),
        Block('def f():\n    return "`"\n', code=True, language="python"),
        Block("other fence", code=True),
        Block("| a | b |\n|---|---|\n| 1 | 2 |"),
        Block("end"),
    ]


PIECES = st.sampled_from(
    ["a", "# h", "\n", "\n\n", "```", "```py\n", "~~~", "- i\n", "1. x\n", "  ", "| a |", "**b", "`", "> q\n"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), st.integers(1, 9))
def test_the_pieces_it_comes_in_do_not_matter(text: str, step: int) -> None:
    assert blocks_of(text, step) == blocks_of(text, 10_000)


@given(st.lists(PIECES.filter(lambda p: p[0] not in "`~"), max_size=40).map("".join))
def test_no_letter_is_lost(text: str) -> None:
    shown = "".join(block.text for block in blocks_of(text, 3))
    assert [c for c in shown if not c.isspace()] == [c for c in text if not c.isspace()]


def test_long_fences_and_lists_are_finished_in_pieces() -> None:
    code = "".join(f"line {n}\n" for n in range(3 * PIECE))
    pieces = blocks_of(f"```\n{code}```\n", 11)
    assert [(p.glued, p.code, p.text.count("\n") + 1) for p in pieces] == [
        (False, True, PIECE),
        (True, True, PIECE),
        (True, True, PIECE),
    ]
    assert "\n".join(p.text for p in pieces) == code.rstrip("\n")
    items = blocks_of("".join(f"- item {n}\n" for n in range(2 * PIECE)), 5)
    assert [(i.glued, i.text.count("item")) for i in items] == [(False, PIECE), (True, PIECE)]


def test_what_is_pending_is_bounded_and_keeps_the_head_of_a_table() -> None:
    table = Block("| a |\n|---|\n" + "".join(f"| {n} |\n" for n in range(100)))
    assert tail_of(table, 5, 1000).text.split("\n")[:3] == ["| a |", "|---|", "| 96 |"]
    assert len(tail_of(Block("word " * 5000), 10, 800).text) <= 800


def printed(text: str, width: int = 40) -> str:
    paper = Paper(width, Theme(color=False), "standard")
    return "\n".join("".join(s.text for s in line) for line in paper.lines(Page(text, paper.theme)))


def test_markdown_as_a_terminal_reads_best() -> None:
    text = "Use `List<int>`, see [docs](http://x.y).\n\n1. one\n2. two\n   - deep\n\n> said"
    assert printed(text) == ("Use List<int>, see docs (http://x.y).\n\n1. one\n2. two\n   • deep\n\n▌ said")


def test_a_note_that_does_not_fit_stands_below_its_words() -> None:
    paper = Paper(20, Theme(color=False), "standard")
    lines = paper.lines(note("a note of more words than fit in one line", "warn", paper.theme))
    assert ["".join(s.text for s in line) for line in lines] == [
        "! a note of more",
        "  words than fit in",
        "  one line",
    ]


def test_what_a_servers_tool_said_is_shown_in_part() -> None:
    paper = Paper(40, Theme(color=False), "standard")
    drawn = []
    for name, text in (("mcp__toy__add", "5"), ("mcp__toy__list", "\n".join("abcdefgh")), ("read", "1\tx = 1")):
        call, result = ToolCall("c", name, "{}"), ToolResult("c", name, text)
        drawn.append(
            ["".join(s.text for s in line).rstrip() for line in paper.lines(tool(name, call, result, paper.theme))]
        )
    assert drawn == [
        ["● mcp__toy__add  1 line", "  5"],
        ["● mcp__toy__list  8 lines", "  a", "  b", "  … 2 more lines (Ctrl-O)", "  e", "  f", "  g", "  h"],
        ["● read  1 line"],
    ]


def test_code_is_flush_left_without_padding() -> None:
    assert printed("```sh\npip install x\n```") == "pip install x"


DIFF = """--- a/x.py
+++ b/x.py
@@ -1,3 +1,3 @@
 first
-return x
+return x + 1
 last
@@ -9,2 +9,1 @@
 nine
--- ten
"""


def test_a_diff_has_numbers_words_and_jumps() -> None:
    rows = [(r.sign, r.number, r.text, r.spans) for r in diff.parse(DIFF)]
    assert rows == [
        ("#", 0, "x.py", ()),
        (" ", 1, "first", ()),
        ("-", 2, "return x", ()),
        ("+", 2, "return x + 1", ((8, 12),)),
        (" ", 3, "last", ()),
        ("@", 0, "", ()),
        (" ", 9, "nine", ()),
        ("-", 10, "-- ten", ()),
    ]
    assert diff.counts(DIFF) == (1, 2)


def test_a_long_diff_says_how_much_is_left() -> None:
    long = "@@ -0,0 +1,50 @@\n" + "".join(f"+line {n}\n" for n in range(50))
    lines = [text.plain for text in diff.render(long, 10)]
    assert len(lines) == 11
    assert "40 more lines" in lines[-1]


@pytest.mark.parametrize(("text", "left"), [("ab", 1), ("a🇩🇪", 2), ("🏳️‍🌈", 4), ("e\u0301", 2), ("a\n", 1), ("", 0)])
def test_letters_are_what_people_count(text: str, left: int) -> None:
    assert left_of(text, len(text)) == left
    assert right_of(text, 0) == (left if left != 1 else min(1, len(text))) or text.startswith("a")


def test_files_are_found_by_letters_in_order() -> None:
    paths = ["docs/", "src/", "src/app/", "src/app/main.py", "src/app/menu.py", "tests/test_main.py", "README.md"]
    text = "\n".join(paths)
    assert matches(text, text.lower(), "main") == ["src/app/main.py", "tests/test_main.py"]
    assert matches(text, text.lower(), "appman")[:1] == ["src/app/main.py"]
    assert matches(text, text.lower(), "nothing") == []
    assert matches(text, text.lower(), "") == ["docs/", "src/", "README.md"]


def test_fifty_thousand_files_do_not_stutter() -> None:
    dice = random.Random(7)
    words = ["core", "model", "view", "test", "util", "parser", "client", "server", "index", "main"]
    paths = [f"{dice.choice(words)}/{dice.choice(words)}/{dice.choice(words)}_{n}.py" for n in range(50_000)]
    text = "\n".join(paths)
    lower = text.lower()
    for word in ("parser_4", "clisrv", "zzz", "m"):
        began = time.process_time()
        matches(text, lower, word)
        assert time.process_time() - began < 0.25, word


def test_ignored_files_are_not_listed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("keep.py", "sub/deep.py", "drop.log", "node_modules/x.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("*.log\nnode_modules/\n")
    assert list_files(tmp_path) == ["sub/", ".gitignore", "keep.py", "sub/deep.py"]


def test_listing_files_runs_nothing_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, programs = tmp_path / "work", tmp_path / "programs"
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "a").touch()
    subprocess.run(["git", "-C", work, "config", "core.fsmonitor", f"touch {tmp_path}/ran #"], check=True)
    (work / "rg").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (work / "rg").chmod(0o755)
    programs.mkdir()
    for name in ("git", "sh", "touch"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", f".:{programs}")
    monkeypatch.chdir(work)
    assert (list_files(work), (tmp_path / "ran").exists()) == (["a", "rg"], False)


def test_the_theme_by_name_and_by_the_terminal() -> None:
    assert choose_theme("light", {}, {}, "utf-8").name == "light"
    assert choose_theme("", {}, {"COLORFGBG": "15;0", "COLORTERM": "truecolor"}, "utf-8").name == "dark"
    assert choose_theme("", {}, {"COLORFGBG": "0;15", "COLORTERM": "truecolor"}, "utf-8").name == "light"
    assert choose_theme("", {}, {}, "utf-8").name == "ansi"
    assert not choose_theme("", {}, {"NO_COLOR": "1"}, "utf-8").color
    assert choose_theme("", {}, {}, "ANSI_X3.4-1968").sign("›", ">") == ">"
    with pytest.raises(ValueError, match="theme must be one of"):
        choose_theme("pink", {}, {}, "utf-8")


def test_colours_of_ones_own() -> None:
    assert read_colors("accent=#ff8800, add = bold green") == {"accent": "#ff8800", "add": "bold green"}
    assert toolkit_style("bold bright_black on #112233") == "bold fg:ansibrightblack bg:#112233"
    for wrong in ("nosuch=red", "accent", "accent=blurple"):
        with pytest.raises(ValueError, match=r"takes ROLE=STYLE|is no style"):
            read_colors(wrong)


def test_terminals_are_known_by_what_they_say() -> None:
    assert protocol({"KITTY_WINDOW_ID": "1"}) == KITTY
    assert protocol({"TMUX": "/tmp/x"}) == XTERM
    assert protocol({"TERM": "xterm-256color"}) == ("", "")
    assert reflows({"TMUX": "x"})
    assert not reflows({"TERM": "xterm"})
    assert color_level({"TERM": "xterm-256color"}) == "256"
    assert color_level({"COLORTERM": "truecolor"}) == "truecolor"
