"""Sessions of every format version there ever was, kept for ever: each is read as it was written.

A file here is never changed. A new version of the format adds its own beside them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent.replay import rebuild
from tests.support.lived import next_request
from tests.support.strict import refusals
from transcripts.log import TranscriptLog
from transcripts.records import (
    FORMAT_VERSION,
    KINDS,
    Assistant,
    Image,
    SessionStart,
    ToolCall,
    ToolStarted,
    Unknown,
    User,
    to_json,
)

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(GOLDEN.glob("v*.jsonl"))


def test_every_version_has_one() -> None:
    assert [p.stem for p in VERSIONS] == [f"v{n}" for n in range(1, FORMAT_VERSION + 1)]


@pytest.mark.parametrize("path", VERSIONS, ids=lambda p: p.stem)
def test_every_record_is_read_as_it_was_written(path: Path) -> None:
    log = TranscriptLog.open(path, readonly=True)
    found = [{"seq": e.seq, "at": e.at, **to_json(e.record)} for e in log.entries]
    log.close()
    assert log.problems == []
    assert json.loads(json.dumps(found)) == json.loads(path.with_suffix(".records.json").read_text())
    assert {row["kind"] for row in found} == set(KINDS) | {"dream"}


@pytest.mark.parametrize("path", VERSIONS, ids=lambda p: p.stem)
def test_it_can_be_resumed_and_all_its_requests_rebuilt(path: Path, tmp_path: Path) -> None:
    log = TranscriptLog.open(path, readonly=True)
    rebuilt = list(rebuild(log))
    log.close()
    bad = [(one.number, found) for one in rebuilt if (found := refusals(one.body["messages"][1:]))]
    assert (bad, all(one.sha for one in rebuilt)) == ([], True)
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    shutil.copytree(path.with_suffix(".blobs"), copy.with_suffix(".blobs"))
    messages, _, problems = next_request(copy)
    assert (refusals(messages), problems) == ([], [])
    assert messages[-1]["content"] == "Go on."


def test_version_1_in_the_types_of_the_program() -> None:
    log = TranscriptLog.open(GOLDEN / "v1.jsonl", readonly=True)
    records = {e.seq: e.record for e in log.entries}
    log.close()
    assert records[1] == SessionStart("a1b2c3d4", "/home/ada/shop", "refold 0.1.0", "openai_chat:gpt-5", "", "main")
    picture = Image("00023965829ad187893d5eb1aedff72a", "image/png", "screenshot.png")
    assert records[4] == User("Fix the café test. Never touch pay.py.", images=(picture,))
    assert records[6] == Assistant(
        "I look.",
        (ToolCall("c1", "read", '{"path": "test_cart.py"}'), ToolCall("c2", "bash", '{"command": "pytest -q"}')),
        "It says café.",
        "tool_calls",
        "openai_chat:gpt-5",
    )
    assert records[14] == ToolStarted(
        "c3", "write", "write", {"/home/ada/shop/cart.py": ""}, {"/home/ada/shop/cart.py": "1" * 64}
    )
    assert records[17] == User("also \ud83e in between", "steered")
    assert Unknown("dream", {"depth": 2}) in records.values()
