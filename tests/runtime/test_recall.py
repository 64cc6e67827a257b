"""What the model gets when it asks back."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.histories import engine_for, put
from transcripts.records import Assistant, ToolCall, ToolResult, User


def did(engine, name: str, text: str, **meta) -> int:
    """One call and its result; gives the number of the result."""
    arguments = f'{{"about": "{meta.get("path") or meta.get("command")}"}}'
    call = ToolCall(f"c{len(engine.history)}", name, arguments)
    put(engine, [Assistant("Next.", (call,)), ToolResult(call.id, name, text, meta=meta)])
    return engine.history.last_seq


@pytest.fixture
def engine():
    """A session in which two reads, an edit and a red run lie behind a fold."""
    engine = engine_for(4_000)
    put(engine, [User("Mend the mailer.")])
    did(engine, "read", "def send(): ...\n" + "# padding\n" * 200, path="/w/mailer.py", sha="1")
    did(engine, "edit", "Edited /w/mailer.py.", path="/w/mailer.py", sha="2")
    did(engine, "bash", "boom: mailer failed\n" + "trace\n" * 300, command="make mail", exit_code=2)
    did(engine, "recall", "boom: mailer failed\n" + "trace\n" * 300)
    for n in range(12):
        did(engine, "bash", f"noise {n}\n" * 80, command=f"make noise{n}", exit_code=0)
    assert asyncio.run(engine.compact(None)).checkpoint is not None
    return engine


def test_by_words_newest_first_with_what_superseded_it(engine):
    assert engine.recall(query="mailer").splitlines() == [
        'Newest first; recall(id="#N") shows one whole:',
        "#7 bash make mail (exit 2): boom: mailer failed",
        "#5 edit /w/mailer.py: Edited /w/mailer.py.",
        '#4 you: edit({"about": "/w/mailer.py"})',
        "#3 read /w/mailer.py (superseded by #5): def send(): ...",
        '#2 you: read({"about": "/w/mailer.py"})',
    ]


def test_by_path_and_by_command(engine):
    assert engine.recall(path="make mail").splitlines()[1:] == [
        "#7 bash make mail (exit 2): boom: mailer failed" + " trace" * 3 + " trace" * 20 + " tr",
        '#6 you: Next. bash({"about": "make mail"})',
    ]


def test_one_whole_says_what_superseded_it(engine):
    whole = engine.recall(id="#3", count=1)
    assert whole.splitlines() == [
        "[superseded by #5]", "def send(): ...", "[lines 1 to 1 of 202; go on with start=2]",
    ]  # fmt: skip
    assert engine.recall(id="#7", start=1, count=1).splitlines()[0] == "boom: mailer failed"


def test_what_is_in_view_is_not_searched_but_named(engine):
    named = "Nothing that is out of view matches. In view, and so not searched: #1 (user)."
    assert engine.recall(query="Mend the") == named
    put(engine, [Assistant("", (ToolCall("r", "recall", '{"query": "Mend the"}'),)), ToolResult("r", "recall", named)])
    assert engine.recall(query="Mend the") == named
    assert engine.recall(query="zeppelin") == "Nothing that is out of view matches."


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"id": "#999"}, "There is no message #999."),
        ({"id": "zzz"}, "There is nothing with the id 'zzz'. Ids look like #12."),
        ({"id": "9" * 50}, f"There is nothing with the id '{'9' * 50}'. Ids look like #12."),
        ({}, "Say what to look for: id, query or path."),
    ],
)
def test_what_cannot_be_found_is_told_in_words(engine, asked, words):
    with pytest.raises(ValueError, match="^") as caught:
        engine.recall(**asked)
    assert str(caught.value) == words


def test_the_middle_of_one_line_without_end_can_be_had():
    engine = engine_for(8_000)
    text = "".join(f"<{n:06}>" for n in range(30_000))
    put(engine, [User(text)])
    assert asyncio.run(engine.compact(None)).checkpoint is not None
    hit = engine.recall(query="<017777>")
    assert "character 142,217 of this line" in hit and "<017777>" in hit
    page = engine.recall(id="#1", start=143, count=1)
    assert page.startswith(text[142_000:143_000] + "\n[lines 143 to 143 of 240; go on with start=144; ")
    pages, start = "", 1
    while start:
        body, _, more = engine.recall(id="#1", start=start).rpartition("\n[lines ")
        pages += (body or more).replace("\n", "")
        start = int(more.partition("start=")[2].partition(";")[0]) if body else 0
    assert pages == text


def test_a_page_behind_the_end_says_where_it_ends(engine):
    assert engine.recall(id="#1", start=99) == "[it ends with line 1]"
    assert engine.recall(id="#1", start=-5) == "Mend the mailer."
