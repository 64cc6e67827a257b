"""A call that writes several files: all that code says of files says it of each of them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from agent.evidence import Evidence
from agent.models.scripted import Scripted
from agent.session import Session
from runtime.context.facts import empty_facts, gather, state_block, state_sections, validity
from runtime.context.hashes import UNREADABLE, bytes_hash, file_hash
from runtime.context.ledger import label
from tests.support.histories import engine_for, put
from tests.support.lived import call, settings
from transcripts.records import Assistant, ToolCall, ToolResult, User

PATCH = """*** Begin Patch
*** Add File: a.py
+a = 1
*** Add File: sub/b.py
+b = 1
*** Delete File: old.py
*** End Patch"""


class Patcher(Scripted):
    """A model that edits by patches."""

    edit_format = "apply_patch"


class Patched:
    """A session in which one patch wrote a.py and sub/b.py and removed old.py; `lines` is what the evidence says."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home = folder / "work", folder / "home"
        self.work.mkdir()
        (self.work / "old.py").write_text("old = 1\n")
        self.model = Patcher(
            [{"calls": [call("read", path="old.py")]}, {"calls": [call("apply_patch", patch=PATCH)]}, {"text": "Done."}]
        )
        self.evidence = Evidence()
        with Session.start(settings(self.home), cwd=self.work, model=self.model) as session:
            asyncio.run(self._play(session))
            self.entries = list(session.log.entries)
        self.result = next(e for e in self.entries if e.kind == "tool_result" and e.record.name == "apply_patch")
        self.shas = {str(self.work / n): file_hash(self.work / n) for n in ("a.py", "sub/b.py", "old.py")}

    async def _play(self, session: Session) -> None:
        async for event in session.send("go"):
            self.evidence.see(event)

    def state(self) -> list[str]:
        """The state block over it, as lines."""
        return state_block(state_sections(gather(empty_facts(), self.entries)), "", 4_000).splitlines()


@pytest.fixture
def patched(tmp_path: Path) -> Patched:
    return Patched(tmp_path.resolve())


def test_every_file_is_known(patched: Patched) -> None:
    assert patched.result.record.files == patched.shas
    assert patched.result.record.about == ", ".join(patched.shas)
    assert label(patched.result) == f"apply_patch result {', '.join(patched.shas)}"[:70]
    assert patched.evidence.line() == "3 files edited, nothing was run"
    assert patched.state()[-7:] == [
        "paths below are in:", str(patched.work),
        "files written, unchanged since:", "a.py", "sub/b.py",
        "files written, since deleted:", "old.py",
    ]  # fmt: skip


def test_a_resume_knows_every_file_as_seen(patched: Patched) -> None:
    with Session.start(settings(patched.home), cwd=patched.work, model=patched.model, resume="latest") as session:
        assert session.toolbox.ctx.seen == patched.shas


def test_a_read_is_superseded_by_a_patch_of_the_file_and_the_stub_says_how_all_stand(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("new")
    (tmp_path / "b.py").write_text("changed since")
    files = [{"path": str(tmp_path / n), "sha": bytes_hash(b"new")} for n in ("a.py", "b.py", "gone.py")]
    engine = engine_for(20_000)
    put(engine, [User("Go.")])
    for number, (name, meta) in enumerate([("read", files[1]), ("apply_patch", {"files": files})]):
        record = ToolResult(f"c{number}", name, "line of text\n" * 300, meta=meta)
        put(engine, [Assistant("", (ToolCall(f"c{number}", name, "{}"),)), record])
    patch = engine.history.last_seq
    for number in range(9):
        result = ToolResult(f"d{number}", "bash", f"{number} more\n" * 200)
        put(engine, [Assistant("", (ToolCall(f"d{number}", "bash", "{}"),)), result])
    outcome = asyncio.run(engine.compact(None, cause="asked"))
    assert outcome.checkpoint is not None
    told = {text.split()[1]: text for text in outcome.checkpoint.texts.values()}
    assert f"superseded by #{patch}; " in told["read"]
    assert "a.py unchanged since; b.py changed since; gone.py since deleted; " in told["apply_patch"]


def test_a_file_that_cannot_be_read_is_not_called_deleted(tmp_path: Path) -> None:
    """Root may read everything, so the files here are such that nobody can."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "large").write_bytes(b"x" * 100)
    known = hashlib.sha256(b"x").hexdigest()
    for name in ("pipe", "loop", "."):
        assert file_hash(tmp_path / name) == UNREADABLE
        assert validity({"path": str(tmp_path / name), "sha": known}) == "not to be compared now"
    assert file_hash(tmp_path / "large", most=99) == UNREADABLE
    assert [file_hash(tmp_path / n) for n in ("none", "large/none")] == ["", ""]
    assert validity({"path": str(tmp_path / "none"), "sha": known}) == "since deleted"
