"""The vocabulary: every kind goes to JSON and back, and what comes back has the shape it must have."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transcripts.lines import decode, encode
from transcripts.records import (
    KINDS,
    Assistant,
    Checkpoint,
    Image,
    Note,
    Request,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    User,
    from_json,
    to_json,
)

TEXT = st.text(st.characters(), max_size=40)
CALLS = st.builds(ToolCall, TEXT, TEXT, st.dictionaries(st.text(max_size=5), st.integers()).map(json.dumps), TEXT, TEXT)
IMAGES = st.builds(Image, TEXT, TEXT, TEXT)
RECORDS = st.one_of(
    st.builds(User, TEXT, TEXT, st.lists(IMAGES, max_size=2).map(tuple)),
    st.builds(Assistant, TEXT, st.lists(CALLS, max_size=3).map(tuple), TEXT, TEXT, TEXT),
    st.builds(ToolResult, TEXT, TEXT, TEXT, TEXT, TEXT, st.integers(0, 9)),
    st.builds(Usage, st.none() | st.integers(1, 9), st.none() | st.integers(1, 9)),
    st.builds(Note, TEXT, st.none() | TEXT | st.integers() | st.dictionaries(TEXT, TEXT)),
    st.builds(Checkpoint, TEXT, st.integers(0, 9), st.dictionaries(TEXT, TEXT), st.dictionaries(TEXT, TEXT)),
    st.builds(Request, TEXT, TEXT, TEXT, units=st.floats(0, 9)),
)


@settings(max_examples=150, deadline=None)
@given(RECORDS)
def test_every_record_comes_back_as_it_was(record) -> None:
    line = encode(record, 1, "2026-01-01T00:00:00.000Z")
    assert (decode(line), line.count(b"\n")) == (record, 1)


def test_defaults_are_left_out() -> None:
    assert to_json(User("x")) == {"kind": "user", "text": "x"}
    assert to_json(Assistant("", (ToolCall("c", "read"),))) == {
        "kind": "assistant", "text": "", "calls": [{"id": "c", "name": "read"}],
    }  # fmt: skip


def test_a_later_versions_kinds_and_fields_do_no_harm() -> None:
    assert from_json({"v": 1, "seq": 3, "kind": "dream", "depth": 2}) == Unknown("dream", {"depth": 2})
    assert to_json(Unknown("dream", {"depth": 2})) == {"kind": "dream", "depth": 2}
    assert from_json({"kind": "user", "text": "x", "mood": "good"}) == User("x")


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "user"},
        {"kind": "user", "text": 3},
        {"kind": "user", "text": "x", "images": "no"},
        {"kind": "assistant", "text": "x", "calls": [1]},
        {"kind": "tool_result", "call_id": "c", "name": "n", "text": "t", "meta": []},
        {"kind": "rewind", "to": "3"},
    ],
)
def test_a_known_kind_of_the_wrong_shape_is_refused(data) -> None:
    with pytest.raises(ValueError, match="has the wrong shape"):
        from_json(data)


@pytest.mark.parametrize(
    ("arguments", "shown", "problem"),
    [
        ('{"a": 1}', '{"a": 1}', ""),
        ('{"a": ', "{}", "The arguments are not the text of a JSON object."),
        ("[1]", "{}", "The arguments are not the text of a JSON object."),
        ("", "{}", ""),
        ('{"a": "\\ud83e"}', '{"a": "\ufffd"}', ""),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}', ""),
    ],
)
def test_arguments_that_were_damaged_can_still_be_shown(arguments: str, shown: str, problem: str) -> None:
    data = {"kind": "assistant", "text": "", "calls": [{"id": "c", "name": "read", "arguments": arguments}]}
    record = from_json(data)
    assert isinstance(record, Assistant)
    assert (record.calls[0].arguments, record.calls[0].problem) == (shown, problem)
    assert record.calls[0].raw == ("" if shown == arguments else arguments)


def test_every_kind_has_a_name_of_its_own_and_plain_fields() -> None:
    assert all(KINDS[kind].kind == kind for kind in KINDS)
    odd = [(k, f.name, f.type) for k, c in KINDS.items() for f in fields(c) if "date" in str(f.type).lower()]
    assert odd == []
