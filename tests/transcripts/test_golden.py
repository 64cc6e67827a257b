"""Sessions of every format version there ever was, kept for ever: each is read as it was written.

A file here is never changed. A new version of the format adds its own beside them.
"""

from __future__ import annotations

import json
import re
import shutil
import zlib
from pathlib import Path

import pytest

from agent.replay import Verified, rebuild, verify
from agent.version import WORDING
from tests.support.command import refold
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


# -- what was sent --------------------------------------------------------------------------------------------------

WORDINGS = sorted(GOLDEN.glob("requests-*.jsonl"))
SHOWN = (
    "[Earlier parts of this conversation are folded away.", '<state written-by="refold">',
    '<notes written-by="the model, earlier"', "[What stood here is not shown.]",
    "[The result of this call is not in the log.", "picture(s) folded away]", "[Images from the calls above]",
    "that is no longer there]", "(empty message)", "(no output)", "(no answer)", "[stopped here by the person]",
    "[the connection broke here]", "data:image/png;base64,", "recall(id=",
)  # fmt: skip
"""What the requests of a golden log show between them: all that the program puts in by itself."""


def verified(path: Path) -> Verified:
    log = TranscriptLog.open(path, readonly=True)
    try:
        assert log.problems == [] or any(e.altered for e in log.entries)
        return verify(log)
    finally:
        log.close()


def test_every_wording_has_its_requests() -> None:
    assert [p.stem for p in WORDINGS] == [f"requests-{n}" for n in range(1, WORDING + 1)]


@pytest.mark.parametrize("path", WORDINGS, ids=lambda p: p.stem)
def test_what_was_sent_once_comes_out_byte_for_byte(path: Path) -> None:
    """Where this fails, what a model is shown has changed: raise WORDING in agent/version.py, and add the requests of
    the new wording (python -m tests.support.golden_requests tests/transcripts/golden/requests-N.jsonl)."""
    found = verified(path)
    if path == WORDINGS[-1]:
        assert (found.requests, found.same, found.differences, found.reworded) == (29, 29, (), 0)
        log = TranscriptLog.open(path, readonly=True)
        shown = json.dumps([one.body["messages"] for one in rebuild(log)], ensure_ascii=False).replace('\\"', '"')
        log.close()
        assert [words for words in SHOWN if words not in shown] == []
    else:
        assert (found.differences, found.same + found.reworded) == ((), found.requests)


def recounted(raw: bytes) -> bytes:
    """Lines whose checksums are made to fit again."""
    bodies = [line[: line.rindex(b',"crc"')] for line in raw.splitlines()]
    return b"".join(b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body)) for body in bodies)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A log that a refold of another wording wrote: two of its requests showed other bytes."""
    path = tmp_path / "20260101-000000-a1b2c3d4.jsonl"
    raw = WORDINGS[-1].read_bytes().replace(b'"wording":%d' % WORDING, b'"wording":77')
    for view in re.findall(rb'"view":"(\w{64})"', raw)[9:11]:
        raw = raw.replace(view, b"0" * 64)
    path.write_bytes(recounted(raw))
    shutil.copytree(WORDINGS[-1].with_suffix(".blobs"), path.with_suffix(".blobs"))
    return path


def test_another_wording_is_named_and_is_no_damage(other: Path, tmp_path: Path) -> None:
    found = verified(other)
    assert (found.requests, found.same, found.differences, found.reworded) == (29, 27, (), 2)
    words = (
        "2 were sent by a refold of another wording and cannot come out byte for byte; nothing that was said is lost\n"
    )
    done = refold("replay", str(other), "--verify", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"27 of 29 requests come out as they were sent\n{words}")
    done = refold("sessions", "verify", str(other), cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [f"  {words.strip()}"])
    told = f"sent by a refold that words what it shows otherwise (wording 77; this one: {WORDING})"
    rows = refold("replay", str(other), cwd=tmp_path).stdout.splitlines()
    assert [row.rpartition("tokens  ")[2] for row in rows[8:12]] == ["as sent", told, told, "as sent"]
    step = refold("replay", str(other), "--step", "10", cwd=tmp_path)
    assert (step.returncode, step.stderr) == (0, f"refold: not byte for byte what was sent: {told}\n")
    assert json.loads(step.stdout)["messages"][0]["role"] == "system"


def test_damage_in_a_log_of_another_wording_is_called_damage(other: Path) -> None:
    other.write_bytes(other.read_bytes().replace(b"Mend the cart.", b"Mend the cars."))
    found = verified(other)
    assert (found.reworded, len(found.differences)) == (0, 29)
    assert "was changed by hand" in found.differences[0]
