"""What a command printed outlives the file it was printed into: recall shows it after a resume, rm takes it away."""

from __future__ import annotations

import re
from pathlib import Path

from agent.models.scripted import Scripted
from agent.session import Session
from agent.sessions import remove
from tests.support.lived import call, live, settings

LINES = 1_200_000
"""Of nine bytes each: more than the four megabytes that were once all that was kept."""


def resumed(folder: Path, path: Path) -> Session:
    """The session, opened by another process, as it were."""
    return Session.start(settings(folder / "home"), cwd=folder / "work", model=Scripted([]), resume=str(path))


def test_the_middle_of_ten_megabytes_is_there_after_a_resume_and_gone_with_the_session(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "A1b2" * 12
    command = f"seq -f %08.0f {LINES // 2}; echo the key {key}; seq -f %08.0f {LINES // 2}; echo END"
    path, _ = live(tmp_path, [{"calls": [call("bash", command=command)]}, {"text": "Done."}], ["go"])
    with resumed(tmp_path, path) as session:
        entry = next(e for e in session.log.entries if e.kind == "tool_result")
        assert (entry.record.chars > 10_000_000, key in entry.record.text) == (True, False)
        recall = session.toolbox.ctx.recall
        assert recall is not None
        middle = recall(id=f"#{entry.seq}", start=LINES // 2, count=3).splitlines()[:3]
        assert middle == [f"{LINES // 2:08}", "the key [redacted: Anthropic key]", "00000001"]
        blobs = path.with_suffix(".blobs")
        assert re.search(rf'recall\(id="{entry.record.blob}"', entry.record.text)
        assert (blobs / entry.record.blob).stat().st_size > 10_000_000
    remove(tmp_path / "home", path)
    assert not blobs.exists() and not path.exists()


def test_beyond_what_is_kept_both_ends_are_and_the_gap_is_said(tmp_path: Path) -> None:
    path, _ = live(
        tmp_path, [{"calls": [call("bash", command="seq -f %09.0f 2000000; echo END")]}, {"text": "Done."}], ["go"]
    )
    with resumed(tmp_path, path) as session:
        entry = next(e for e in session.log.entries if e.kind == "tool_result")
        whole = session.log.blobs.get(entry.record.blob).decode()
    assert whole.startswith("000000001\n000000002\n")
    assert "… [4,000,004 bytes left out here] …" in whole
    *_, last, file = whole.rsplit("\n", 2)
    assert last == "END"
    assert file.startswith("[truncated: head and tail kept; till the session ends, the whole output is in ")
