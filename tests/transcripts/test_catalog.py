"""Finding sessions: by folder, name, id or path, from the two ends of their files."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path

import pytest

from transcripts.catalog import NotFound, describe, find_session, list_sessions, new_path, project_folder
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Note, SessionStart, ToolResult, User


def made(home: Path, cwd: Path, *records, age: int = 0) -> Path:
    """A session of that folder, last used `age` seconds ago."""
    ident, path = new_path(home, cwd)
    log = TranscriptLog.create(path)
    log.append(SessionStart(ident, str(cwd), model="m1", branch="main"))
    for record in records:
        log.append(record)
    log.close()
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_row_says_what_a_person_looks_for(tmp_path: Path) -> None:
    cwd = tmp_path / "shop"
    path = made(
        tmp_path, cwd, User("[go on]", "harness"), User("fix  the\ntest"), Assistant("ok"), Note("model", "m2"),
        Note("state", {"name": "cart", "model": "m2", "messages": 3}), User("more"), Note("name", "basket"),
    )  # fmt: skip
    info = describe(path)
    assert info is not None
    shown = (info.cwd, info.name, info.first, info.model, info.branch, info.messages, info.problem)
    assert shown == (str(cwd), "basket", "fix the test", "m2", "main", 4, "")
    assert (info.id, info.size) == (path.stem.rpartition("-")[2], path.stat().st_size)


def test_a_long_session_is_described_from_its_ends(tmp_path: Path) -> None:
    """The name was given in the middle, megabytes from both ends: the note that sums the turn up repeats it."""
    big = ToolResult("c", "bash", "x" * 300_000)
    path = made(
        tmp_path, tmp_path, User("first words"), *[big] * 4, Note("name", "old"), *[big] * 4,
        Note("state", {"name": "middle", "model": "m9", "messages": 10}), *[big] * 4,
    )  # fmt: skip
    info = describe(path)
    assert info is not None
    assert (info.first, info.name, info.model, info.messages) == ("first words", "middle", "m9", 14)


def test_the_first_words_of_a_message_that_is_a_hundred_megabytes_long(tmp_path: Path) -> None:
    path = made(tmp_path, tmp_path, User('"Quoted"\nand ' + "long " * 20_000_000))
    started = time.process_time()
    info = describe(path)
    assert info is not None and time.process_time() - started < 2.0
    assert (info.first[:20], info.size > 99_000_000) == ('"Quoted" and long lo', True)


def test_sessions_of_a_folder_and_of_all(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    old, new, other = (made(tmp_path, cwd, User("x"), age=age) for cwd, age in ((here, 50), (here, 5), (there, 9)))
    made(tmp_path, here, Note("opened", {}))
    assert [s.path for s in list_sessions(tmp_path, here)] == [new, old]
    assert [s.path for s in list_sessions(tmp_path)] == [new, other, old]
    assert find_session(tmp_path, here, "latest") == new


def test_ways_to_name_a_session(tmp_path: Path) -> None:
    path = made(tmp_path, tmp_path / "a", User("x"), Note("name", "cart"))
    elsewhere, ident = tmp_path / "b", path.stem.rpartition("-")[2]
    found = {find_session(tmp_path, elsewhere, ref) for ref in ("cart", ident, ident[:3], str(path))}
    assert found == {path}
    with pytest.raises(NotFound, match="No session has the id or name 'dog'"):
        find_session(tmp_path, elsewhere, "dog")
    with pytest.raises(NotFound, match="There is no session of .*/b yet"):
        find_session(tmp_path, elsewhere, "latest")


def test_the_beginning_of_several_ids_is_none(tmp_path: Path) -> None:
    for _ in range(40):
        made(tmp_path, tmp_path, User("x"))
    first = max("0123456789abcdef", key=lambda c: sum(s.id[0] == c for s in list_sessions(tmp_path)))
    with pytest.raises(NotFound, match=f"'{first}' is the beginning of "):
        find_session(tmp_path, tmp_path, first)


def test_a_damaged_session_is_listed_with_its_problem(tmp_path: Path) -> None:
    good = made(tmp_path, tmp_path, User("good"), age=99)
    dead, newer, empty = (good.with_name(f"20260101-000000-{n}.jsonl") for n in ("dead", "new", "none"))
    dead.write_bytes(b"\0" * 5000)
    empty.write_bytes(b"")
    raw = b'{"v":2,"seq":1,"at":"x","kind":"session","id":"new"'
    newer.write_bytes(b'%s,"crc":"%08x"}\n' % (raw, zlib.crc32(raw)))
    (project_folder(tmp_path, tmp_path) / "20260101-000000-dir.jsonl").mkdir()
    rows = {s.id: s.problem for s in list_sessions(tmp_path)}
    too_new = "format version 2; this program reads up to 1: update refold"
    assert rows == {good.stem.rpartition("-")[2]: "", "dead": "nothing in it can be read", "new": too_new}
    assert find_session(tmp_path, tmp_path, "latest") == good


def test_a_cut_first_line_does_not_hide_a_session(tmp_path: Path) -> None:
    path = made(tmp_path, tmp_path, User("words"), Note("name", "cart"))
    path.write_bytes(path.read_bytes()[30:])
    assert find_session(tmp_path, tmp_path / "elsewhere", "cart") == path


def test_a_hundred_sessions_are_listed_quickly(tmp_path: Path) -> None:
    for n in range(100):
        made(tmp_path, tmp_path / f"p{n % 7}", User(f"words {n}"), ToolResult("c", "x", "y" * 3_000))
    started = time.process_time()
    assert len(list_sessions(tmp_path)) == 100
    assert time.process_time() - started < 2.0
