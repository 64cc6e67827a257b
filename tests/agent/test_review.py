"""Hunk review: what is taken is written, what is left out is told to the model, and nothing is half done."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.scripted import Scripted
from agent.permissions import Approval, Verdict
from agent.review import Choice, concluded, edited, hunks_of, reviewable
from agent.session import Session
from agent.settings import Settings
from runtime.events import ToolFinished
from tools.base import ToolContext
from transcripts.records import ToolResult

OLD = "".join(f"line {n}\n" for n in range(30))
NEW = OLD.replace("line 3\n", "LINE 3\n").replace("line 20\n", "line 20\nmore\n")


def context(folder: Path) -> ToolContext:
    return ToolContext(root=folder, cwd=folder)


def run(tmp_path: Path, calls: Sequence[dict], decide: object) -> list[ToolResult]:
    """The results of one turn whose changes are answered by `decide(approval)`."""

    async def approve(approval: Approval) -> Verdict:
        return decide(approval)

    async def turn(session: Session) -> list[ToolResult]:
        return [e.result async for e in session.send("go") if isinstance(e, ToolFinished)]

    settings = Settings.load({"permission_mode": "ask"}, {"REFOLD_HOME": str(tmp_path / "home")}, tmp_path)
    model = Scripted([{"calls": list(calls)}, {"text": "done"}])
    with Session.start(settings, cwd=tmp_path / "ws", model=model, approve=approve) as session:
        return asyncio.run(turn(session))


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text(OLD)
    (tmp_path / "ws" / "a.txt").chmod(0o640)
    return tmp_path / "ws"


READ = {"name": "read", "arguments": {"path": "a.txt"}}
WRITE = {"name": "write", "arguments": {"path": "a.txt", "content": NEW}}


def test_one_hunk_is_taken_and_the_other_told_to_the_model(tmp_path: Path, ws: Path) -> None:
    def decide(approval: Approval) -> Verdict:
        first, second = hunks_of(approval.contents, approval.ctx)
        choices = [Choice(first, None), Choice(second, second.new)]
        return Verdict(True, review=concluded(approval.contents, choices, "keep it small", approval.ctx))

    _, result = run(tmp_path, [READ, WRITE], decide)
    assert (ws / "a.txt").read_text() == OLD.replace("line 20\n", "line 20\nmore\n")
    assert (ws / "a.txt").stat().st_mode & 0o777 == 0o640
    assert result.text == (
        "The person reviewed this change: 1 of 2 hunks were applied.\n"
        "They did NOT apply these hunks; the file is unchanged there:\n"
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,7 +1,7 @@\n"
        " line 0\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n line 6\n"
        "They said: keep it small"
    )
    assert (result.status, "+more" in result.meta["diff"], "LINE" in result.meta["diff"]) == ("ok", True, False)


def test_an_edited_hunk_is_written_as_the_person_wrote_it(tmp_path: Path, ws: Path) -> None:
    def decide(approval: Approval) -> Verdict:
        first, second = hunks_of(approval.contents, approval.ctx)
        choices = [edited(first, "Line Three\nand a half\n"), Choice(second, second.new)]
        return Verdict(True, review=concluded(approval.contents, choices, "", approval.ctx))

    _, result = run(tmp_path, [READ, WRITE], decide)
    assert (ws / "a.txt").read_text() == NEW.replace("LINE 3\n", "Line Three\nand a half\n")
    assert "They wrote these parts themselves" in result.text


def test_the_next_call_runs_as_it_is(tmp_path: Path, ws: Path) -> None:
    other = {"name": "write", "arguments": {"path": "b.txt", "content": "b\n"}}

    def decide(approval: Approval) -> Verdict:
        hunks = hunks_of(approval.contents, approval.ctx)
        if len(hunks) == 1:
            return Verdict(True)
        choices = [Choice(h, None) for h in hunks]
        return Verdict(True, review=concluded(approval.contents, choices, "", approval.ctx))

    run(tmp_path, [READ, WRITE, other], decide)
    assert ((ws / "a.txt").read_text(), (ws / "b.txt").read_text()) == (OLD, "b\n")


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path, ws: Path) -> None:
    def decide(approval: Approval) -> Verdict:
        hunks = hunks_of(approval.contents, approval.ctx)
        choices = [Choice(hunks[0], None), Choice(hunks[1], hunks[1].new)]
        review = concluded(approval.contents, choices, "", approval.ctx)
        (ws / "a.txt").write_text("somebody else\n")
        return Verdict(True, review=review)

    _, result = run(tmp_path, [READ, WRITE], decide)
    assert ((ws / "a.txt").read_text(), result.status) == ("somebody else\n", "error")


def test_what_is_no_text_cannot_be_reviewed() -> None:
    path = Path("/x")
    assert reviewable({path: (b"a", b"b")})
    assert reviewable({path: (None, b"b")})
    assert not reviewable({path: (b"a\0", b"b")})
    assert not reviewable({path: (b"a", None)})
    assert not reviewable({})


LINES = st.lists(st.sampled_from([b"a", b"b", b"c\r", b"", b"\xff"]), max_size=30)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_all_hunks_give_the_new_file_and_none_the_old_one(
    old: list[bytes], new: list[bytes], ends_old: bool, ends_new: bool
) -> None:
    before = b"\n".join(old) + (b"\n" if ends_old else b"")
    after = b"\n".join(new) + (b"\n" if ends_new else b"")
    path, ctx = Path("/ws/f"), context(Path("/ws"))
    contents = {path: (before, after)}
    hunks = hunks_of(contents, ctx)
    taken = concluded(contents, [Choice(h, h.new) for h in hunks], "", ctx)
    left = concluded(contents, [Choice(h, None) for h in hunks], "", ctx)
    assert (taken.contents[path][1], left.contents[path][1]) == (after, before)
