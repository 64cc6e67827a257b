"""The log: one record a line, durable where it matters, whole again after any damage, never two writers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from transcripts.entries import Held
from transcripts.lines import LineError, decode, encode, head, strip, whole_in
from transcripts.log import LogHeld, LogWriteError, TranscriptLog, VersionError, newest_note
from transcripts.records import Assistant, Gap, Note, SessionStart, ToolCall, ToolResult, ToolStarted, Usage, User

AT = "2026-01-02T03:04:05.678Z"
SAID = [
    SessionStart("abcd1234", "/work"),
    User("read a.py"),
    Assistant("I read.", (ToolCall("c1", "read", '{"path": "a.py"}'),), finish="tool_calls"),
    Usage(10, 2),
    ToolResult("c1", "read", "x = 1\n"),
    Note("name", "first"),
]


def made(path: Path, records=SAID) -> Path:
    """A log of these records."""
    log = TranscriptLog.create(path)
    for record in records:
        log.append(record)
    log.close()
    return path


def opened(path: Path) -> tuple[list, list[str]]:
    """(records, problems) of a file, read only."""
    log = TranscriptLog.open(path, readonly=True)
    try:
        return [e.record for e in log.entries], log.problems
    finally:
        log.close()


def test_what_is_appended_is_there_again(tmp_path: Path) -> None:
    path = made(tmp_path / "s.jsonl")
    log = TranscriptLog.open(path)
    log.append(User("more"))
    log.close()
    assert opened(path) == ([*SAID, User("more")], [])


def test_a_line_is_json_with_number_time_and_checksum(tmp_path: Path) -> None:
    line = encode(User("hä\u2028"), 7, AT)
    body = line[: line.rindex(b',"crc"')]
    crc = f"{zlib.crc32(body):08x}"
    assert json.loads(line) == {"v": 1, "seq": 7, "at": AT, "kind": "user", "text": "hä\u2028", "crc": crc}
    assert (line.count(b"\n"), line[-1:], "ä".encode() in line) == (1, b"\n", True)


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "project" / "s.jsonl"
    log = TranscriptLog.create(path)
    log.blobs.put(b"body")
    log.close()
    assert log.blobs.folder is not None
    modes = [
        stat.S_IMODE(os.stat(p).st_mode) for p in (path.parent, path, log.blobs.folder, *log.blobs.folder.iterdir())
    ]
    assert modes == [0o700, 0o600, 0o700, 0o600]


def test_a_second_writer_is_told_who_holds_the_log_and_may_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    log = TranscriptLog.create(path)
    log.append(SessionStart("abcd1234", "/work"))
    log.append(Note("opened", {"pid": 4711}))
    with pytest.raises(LogHeld, match=r"the session s is held by process 4711 since 20\d\d-") as held:
        TranscriptLog.open(path)
    assert (held.value.pid, len(opened(path)[0])) == (4711, 2)
    log.close()
    TranscriptLog.open(path).close()


def test_a_log_open_for_reading_takes_nothing(tmp_path: Path) -> None:
    log = TranscriptLog.open(made(tmp_path / "s.jsonl"), readonly=True)
    with pytest.raises(LogWriteError, match="not open for writing"):
        log.append(User("x"))
    log.close()


def test_a_deleted_log_takes_nothing(tmp_path: Path) -> None:
    log = TranscriptLog.create(tmp_path / "s.jsonl")
    log.append(User("x"))
    (tmp_path / "s.jsonl").unlink()
    with pytest.raises(LogWriteError, match="was deleted"):
        log.append(User("y"))
    log.close()


# -- damage ----------------------------------------------------------------------------------------------------------


def broken(path: Path, change) -> Path:
    """The file with its lines changed: `change` takes a list of lines and gives bytes or lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    out = change(lines)
    path.write_bytes(out if isinstance(out, bytes) else b"".join(out))
    return path


def test_a_torn_tail_is_set_aside_and_noted(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls)[:-20])
    size = path.stat().st_size
    torn = path.read_bytes().splitlines()[-1]
    log = TranscriptLog.open(path)
    assert [e.record for e in log.entries] == [*SAID[:-1], Gap(len(torn), why="torn; moved to s.torn")]
    assert log.problems == [f"a torn last record ({len(torn)} bytes) was moved to s.torn"]
    assert (path.with_suffix(".torn").read_bytes(), path.read_bytes()[: size - len(torn)][-1:]) == (torn, b"\n")
    log.append(User("next"))
    log.close()
    assert opened(path) == ([*SAID[:-1], Gap(len(torn), why="torn; moved to s.torn"), User("next")], [])


def test_reading_only_mends_nothing(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls)[:-20])
    before = path.read_bytes()
    records, problems = opened(path)
    assert (records, path.read_bytes(), path.with_suffix(".torn").exists()) == (SAID[:-1], before, False)
    assert len(problems) == 1 and "cannot be read" in problems[0]


def test_a_last_line_without_its_end_is_whole_and_the_next_begins_anew(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls)[:-1])
    log = TranscriptLog.open(path)
    log.append(User("next"))
    log.close()
    assert opened(path) == ([*SAID, User("next")], [])


def test_a_bad_line_in_the_middle_is_a_gap_and_reading_goes_on(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: [*ls[:2], ls[2][:30] + b"\n", *ls[3:]])
    records, problems = opened(path)
    assert records == [*SAID[:2], Gap(31, 3, 3, "damaged"), *SAID[3:]]
    assert problems == ["record 3 is lost (31 damaged bytes); the rest is whole"]


def test_lines_that_are_gone_are_a_gap(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: [ls[0], *ls[3:]])
    records, problems = opened(path)
    assert records == [SAID[0], Gap(0, 2, 3, "missing"), *SAID[3:]]
    assert problems == ["records 2 to 3 are lost; the rest is whole"]


def test_a_whole_record_in_a_glued_line_is_kept(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: [*ls[:2], ls[2][:40] + ls[3], *ls[4:]])
    assert opened(path)[0] == [*SAID[:2], Gap(40, 3, 3, "damaged"), *SAID[3:]]
    line = b'junk{"v":1,"seq":3' + encode(User("a"), 5, AT)[:-1] + b"\0\0" + encode(User("b"), 6, AT)[:-1] + b"junk"
    assert [decode(line[a:b]) for a, b in whole_in(line)] == [User("a"), User("b")]


@pytest.mark.parametrize(
    "change",
    [
        lambda ls: b"\xef\xbb\xbf" + b"".join(ls),
        lambda ls: b"".join(ls).replace(b"\n", b"\r\n"),
        lambda ls: b"\n\n".join(ls) + b"\n \n",
        lambda ls: [*ls[:2], b"\0" * 900 + ls[2], *ls[3:]],
        lambda ls: [*ls[:2], ls[2][:-1] + b"\0" * 900 + b"\n", *ls[3:]],
        lambda ls: b"".join(ls)[:-1] + b"\0" * 100_000,
    ],
    ids=["BOM", "CRLF", "blank lines", "NULs before", "NULs behind", "a tail of NULs"],
)
def test_what_crashes_and_editors_leave_around_records_costs_none(tmp_path: Path, change) -> None:
    path = broken(made(tmp_path / "s.jsonl"), change)
    nuls = path.read_bytes().count(b"\0")
    told = [f"{nuls:,} NUL bytes stood around records; no record is missing there"] if nuls else []
    assert opened(path) == (SAID, told)


def test_foreign_lines_are_told_and_cost_nothing(tmp_path: Path) -> None:
    foreign = b'null\n42\n"str"\n{"role":"user","content":"x"}\n{"type":"future","v":99}\n' + b"\0" * 64 + b"\n"
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: [*ls[:3], foreign, *ls[3:]])
    records, problems = opened(path)
    assert records == SAID
    assert problems == [
        f"{len(foreign)} bytes are no record (it does not begin like a record); no record is missing there"
    ]


def test_repeated_and_swapped_lines_are_put_right(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: [ls[0], ls[2], ls[1], ls[1], *ls[3:], *ls])
    records, problems = opened(path)
    assert records == SAID
    assert problems == [
        "7 repeated records were counted once",
        "records stood in the wrong order and were put right by their numbers",
    ]


def test_words_changed_by_hand_are_kept_and_told(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls).replace(b"read a.py", b"read b.py"))
    records, problems = opened(path)
    assert records == [SAID[0], User("read b.py"), *SAID[2:]]
    assert problems == ["record 2 was changed by hand (its checksum does not match); it is kept"]


def test_a_number_made_up_by_damage_is_not_believed(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls).replace(b'"seq":2,', b'"seq":22,'))
    assert opened(path)[0] == [SAID[0], Gap(len(encode(SAID[1], 2, AT)), 2, 2, "damaged"), *SAID[2:]]


def test_steering_records_changed_by_hand_are_not_believed(tmp_path: Path) -> None:
    path = broken(made(tmp_path / "s.jsonl"), lambda ls: b"".join(ls).replace(b'"name","value"', b'"mode","value"'))
    records, _ = opened(path)
    assert records == SAID[:-1]


@pytest.mark.parametrize(
    "raw", [b"", b"\n \n\n", b"\0" * 4096, b"not a log\n" * 50], ids=["0 bytes", "blanks", "NUL", "?"]
)
def test_a_file_without_a_record_opens_empty_and_goes_on(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(raw)
    log = TranscriptLog.open(path)
    kept = [e.record for e in log.entries if e.kind != "gap"]
    log.append(User("x"))
    log.close()
    assert (kept, opened(path)[0][-1]) == ([], User("x"))
    if raw.strip():
        assert path.with_suffix(".torn").read_bytes() == raw


def test_a_newer_format_is_refused_with_a_word(tmp_path: Path) -> None:
    path = made(tmp_path / "s.jsonl")
    raw = b'{"v":2,"seq":7,"at":"x","kind":"user","text":"y"'
    path.write_bytes(path.read_bytes() + b'%s,"crc":"%08x"}\n' % (raw, zlib.crc32(raw)))
    with pytest.raises(VersionError, match="format version 2; this program reads up to 1: update refold"):
        TranscriptLog.open(path)


def test_an_older_format_is_brought_up_to_date_as_it_is_read() -> None:
    old = b'{"v":0,"seq":7,"at":"x","kind":"user","words":"y"}'
    assert decode(old, {0: lambda data: {**data, "text": data["words"]}}) == User("y")
    with pytest.raises(LineError):
        decode(old)


@pytest.mark.parametrize("text", ["\u2028 \u0085 \x0b\x0c", "\ud83e half", "\0 nul", "😀" * 1000, "tab\tnew\nline"])
def test_every_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    path = made(tmp_path / "s.jsonl", [User(text), ToolResult("c", "bash", text)])
    assert opened(path) == ([User(text), ToolResult("c", "bash", text)], [])


def test_a_line_of_many_megabytes(tmp_path: Path) -> None:
    text = "x" * 30_000_000
    path = made(tmp_path / "s.jsonl", [User("a"), ToolResult("c", "bash", text), User("b")])
    log = TranscriptLog.open(path, readonly=True)
    assert [e.kind for e in log.entries] == ["user", "tool_result", "user"]
    assert len(log.entries[1].record.text) == len(text)
    log.close()


def test_a_whole_line_of_the_wrong_shape_does_no_harm(tmp_path: Path) -> None:
    path = made(tmp_path / "s.jsonl")
    raw = b'{"v":1,"seq":7,"at":"x","kind":"user"'
    path.write_bytes(path.read_bytes() + b'%s,"crc":"%08x"}\n' % (raw, zlib.crc32(raw)))
    assert opened(path)[0][-1] == User("[What stood here cannot be read.]", "harness")


# -- writing ---------------------------------------------------------------------------------------------------------


def test_what_a_failed_write_left_is_taken_back(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk; the file is as it was, and goes on when there is room."""
    program = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from transcripts.log import LogWriteError, TranscriptLog
from transcripts.records import User
log = TranscriptLog.open(Path({str(tmp_path / "s.jsonl")!r}))
size = log.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    log.append(User("x" * 5000))
except LogWriteError as error:
    print(error, log.path.stat().st_size == size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(User("there is room again"))
log.close()
"""
    made(tmp_path / "s.jsonl")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("the log could not be written: File too large True\n", "")
    assert opened(tmp_path / "s.jsonl") == ([*SAID, User("there is room again")], [])


def test_what_matters_is_on_disk_and_what_stands_between_goes_with_it(tmp_path: Path) -> None:
    records = [
        (User("x"), "on disk"),
        (Assistant("a"), "waits"),
        (Usage(1, 1), "waits"),
        (ToolStarted("c", "read", "read"), "waits"),
        (ToolStarted("c", "bash", "execute"), "on disk"),
        (Note("x"), "waits"),
        (ToolResult("c", "bash", "y"), "on disk"),
    ]
    log = TranscriptLog.create(tmp_path / "s.jsonl")
    states = []
    for record, _ in records:
        log.append(record)
        states.append("waits" if log._dirty else "on disk")
    log.close()
    assert states == [state for _, state in records]


def test_what_is_appended_together_is_synced_once_at_the_end(tmp_path: Path) -> None:
    log = TranscriptLog.create(tmp_path / "s.jsonl")
    with log.together():
        log.append(ToolResult("c", "read", "x"))
        log.append(ToolResult("d", "read", "y"))
        assert log._dirty
    assert not log._dirty
    log.append(User("z"))
    assert not log._dirty
    log.close()


def test_own_keys_never_reach_the_disk_or_the_record(tmp_path: Path) -> None:
    log = TranscriptLog.create(tmp_path / "s.jsonl")
    log.secrets = ("key-of-our-own", "short")
    call = ToolCall("c1", "bash", json.dumps({"command": "echo key-of-our-own short"}))
    entry = log.append(Assistant("It is key-of-our-own.", (call,)))
    log.close()
    command = '{"command": "echo [key removed] short"}'
    assert entry.record == Assistant("It is [key removed].", (ToolCall("c1", "bash", command),))
    assert opened(tmp_path / "s.jsonl") == ([entry.record], [])
    assert b"key-of-our-own" not in (tmp_path / "s.jsonl").read_bytes()


# -- what is held ----------------------------------------------------------------------------------------------------


def test_decoded_records_are_let_go_and_read_again(tmp_path: Path) -> None:
    log = TranscriptLog.open(made(tmp_path / "s.jsonl", [User(f"{n} " + "x" * 1000) for n in range(20)]))
    log._held = Held(most=5_000)
    assert [e.record.text[:2].strip() for e in log.entries] == [str(n) for n in range(20)]
    assert sum(e._record is not None for e in log.entries) == 4
    assert [e.record.text[:2].strip() for e in log.entries] == [str(n) for n in range(20)]
    log.close()
    assert log.entries[0].record == User("0 " + "x" * 1000)


def test_notes_are_told_apart_without_being_read(tmp_path: Path) -> None:
    path = made(tmp_path / "s.jsonl", [Note("name", "a"), Note("mode", "plan"), Note("name", "b"), User("x")])
    log = TranscriptLog.open(path, readonly=True)
    assert [e.key for e in log.entries] == ["name", "mode", "name", ""]
    assert newest_note(reversed(log.entries), "name") == "b"
    assert [e._record is None for e in log.entries] == [True, True, False, True]
    log.close()


def test_a_memory_log_keeps_everything() -> None:
    log = TranscriptLog.memory()
    entries = [log.append(record) for record in SAID]
    assert [e.record for e in entries] == SAID and log.blobs.get(log.blobs.put(b"x")) == b"x"


def test_heads_are_read_without_decoding() -> None:
    line = strip(encode(Note("name", "x"), 12, AT))
    known = head(line)
    assert (known.version, known.seq, known.at, known.kind, known.key) == (1, 12, AT, "note", "name")
    with pytest.raises(LineError, match="its checksum does not match"):
        head(line.replace(b'"x"', b'"y"'))
    with pytest.raises(LineError, match="its end is missing"):
        head(line[:-3])
