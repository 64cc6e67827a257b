"""Logs that are whole by their checksums and yet not what this program would have written, and things in the place of
files: written by a later version, by hand, by another program, or put there by a sync tool or a file system. Each is
listed, checked, exported, copied and resumed; nothing raises but what is meant to; nothing that was whole is lost."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent import check_session, sessions
from agent.export import forms as export
from agent.models.scripted import Scripted
from agent.session import Session
from runtime.events import TurnEnded
from tests.support.command import refold, script
from tests.support.lived import call, live, next_request, settings
from tests.support.strict import refusals
from transcripts.catalog import list_sessions
from transcripts.log import _STAND_INS, TranscriptLog
from transcripts.records import KINDS, Request, User

REPLAYED = False  # sessions are damaged and made by hand here


@pytest.fixture(scope="module")
def model_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a session that wrote, ran, spilled and folded."""
    folder = tmp_path_factory.mktemp("odd")
    steps: list[Any] = [{"calls": [call("write", path="a.py", content="x = 1\n"), call("bash", command="seq 9000")]}]
    steps += [{"calls": [call("bash", command=f"seq {n} {n + 900}")]} for n in range(8)]
    path, _ = live(folder, [*steps, "Done.", "And more."], ["Do it. Never touch pay.py.", "On"], window=9_000)
    assert b'"kind":"checkpoint"' in path.read_bytes()
    return path


@pytest.fixture
def log(model_session: Path, tmp_path: Path) -> Path:
    """A copy of it, in a home of its own."""
    shutil.copytree(model_session.parents[2], tmp_path / "home")
    return next((tmp_path / "home" / "sessions").glob("*/*.jsonl"))


def line(seq: int, **record: Any) -> bytes:
    """A record as any program could write it."""
    head = {"v": 1, "seq": seq, "at": "2026-01-02T03:04:05.678Z", **record}
    raw = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (raw, zlib.crc32(raw))


def add(path: Path, *records: dict[str, Any]) -> None:
    """Puts records behind the last one."""
    last = json.loads(path.read_bytes().splitlines()[-1])["seq"]
    with path.open("ab") as file:
        file.writelines(line(record.pop("seq", last + n), **record) for n, record in enumerate(records, 1))


def answer(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "assistant", "text": "", "calls": list(calls), **more}


def called(ident: str, name: str = "bash", arguments: str = "{}") -> dict[str, Any]:
    return {"id": ident, "name": name, "arguments": arguments}


def result(ident: str, **more: Any) -> dict[str, Any]:
    return {"kind": "tool_result", "call_id": ident, "name": "bash", "text": "hi", **more}


NOTES: dict[str, list[Any]] = {
    "mode": ["yolo", 5, None, "nonsense"],
    "model": [["x"], None],
    "name": [{"a": 1}, None],
    "pins": ["abc", 7, None, [1, "x"]],
    "window_cap": ["x", -5, None, 10**30],
    "images_dropped": [3, [1], None],
    "opened": [[], {"pid": "x"}, {"pid": 2**70}, {"wording": "x"}],
    "task": [7, {"id": 5}, {"id": "../../x"}],
    "task_end": [[], {"usage": 5}, {"usage": {"input": "x"}}],
    "snapshot": [5, {"id": 7}, {"id": "../../x", "title": 5}],
    "system": [7, {}, {"small": False, "blob": 7}],
    "state": [
        [],
        {"messages": "x"},
        {"messages": 10**30},
        {"usage": {"cost": []}, "cwd": 9, "mode": []},
        {"cwd": "\0"},
    ],
}
CHECKPOINTS: dict[str, list[Any]] = {
    "hidden": [
        {"9-3": "x"},
        {"a-b": "x"},
        {"1-2-3": "x"},
        {"1-999999999999": "x"},
        [],
        {"1-2": 7},
        {"2-30": "covered"},
    ],
    "texts": [{"7": None}, {"abc": "x"}],
    "args": [{"x": 5}],
    "without_pictures": [["x"], [2]],
    "strategies": [[5]],
    "tokens_before": [-1, 10**40, "x"],
    "upto": [-1, 10**15, "x"],
}
ODD: dict[str, list[dict[str, Any]]] = {
    "a number beyond all bounds": [{"kind": "user", "text": "x", "seq": 2**63}],
    "the last number that can be written": [{"kind": "user", "text": "x", "seq": 10**15 - 1}],
    "the number 0": [{"kind": "user", "text": "x", "seq": 0}],
    "a jump of a billion": [{"kind": "user", "text": "x", "seq": 10**9}],
    "no kind": [{"kind": "", "depth": 2}],
    "a kind of a later version": [{"kind": "dream", "depth": 2}],
    "an unfold of nothing": [{"kind": "unfold", "checkpoint": "nope"}],
    "a rewind past the end": [{"kind": "rewind", "to": 99_999}],
    "a gap without end": [{"kind": "gap", "bytes": 1, "first": 5, "last": 9 * 10**14}],
    "a gap that runs backwards": [{"kind": "gap", "bytes": -1, "first": 10**14, "last": 5}],
    "a result of no call": [result("zz")],
    "a call without a result": [answer(called("zz")), {"kind": "tool_started", "call_id": "zz", "name": "x"}],
    "one id for two calls": [answer(called("q"), called("q", "read")), result("q"), result("q")],
    "results around a message": [
        answer(called("p"), called("q")), result("q"), {"kind": "user", "text": "mid"}, result("p"),
    ],
    "ids that no provider takes": [answer(called(""), called("x" * 5000), called("ü 🏷\n"))],
    "a tool that is gone": [answer(called("m", "mcp__gone__tool")), result("m")],
    "calls that are none": [answer(), {"kind": "assistant", "text": "x", "calls": [1, None, "a"]}],
    "a bomb of brackets": [answer(called("b", arguments="[" * 100_000))],
    "pictures from elsewhere": [{"kind": "user", "text": "x", "images": [{"blob": "../../x", "media": "image/png"}]}],
    "pictures that are none": [{"kind": "user", "text": "x", "images": [1]}],
    "an output from elsewhere": [result("zz", blob="../../../../etc/passwd", chars=10**40)],
    "files and facts of the wrong shape": [result("zz", files={"a": 5}, meta={"todo": [5], "cwd": 7})],
    "a start that names what is no file": [
        answer(called("w", "write")),
        {"kind": "tool_started", "call_id": "w", "name": "write", "effect": "write", "before": {"/tmp": "a", "\0": 5}},
    ],
    "what a provider wants back, of the wrong shape": [{"kind": "assistant", "text": "x", "extra": {"wire": [1]}}],
    "usage that is no number": [{"kind": "usage", "input": float("nan")}, {"kind": "usage", "input": -500}],
    "usage beyond all bounds": [{"kind": "usage", "input": 10**400}],
    "a request of odd facts": [{"kind": "request", "view": "x", "system": "../../x", "tools": "y", "model": "m"}],
    "a request for notes of all and more": [
        {"kind": "request", "view": "x", "system": "", "tools": "", "model": "m", "purpose": "summary", "head": 10**9},
    ],
    "two beginnings": [{"kind": "session", "id": "ffffffff", "cwd": "/nowhere"}],
    "a time long ago": [{"kind": "user", "text": "old", "at": "1999-01-01T00:00:00.000Z"}],
    **{f"{kind} with nothing in it": [{"kind": kind}] for kind in KINDS},
    **{
        f"note {k}: {json.dumps(v)[:30]}": [{"kind": "note", "key": k, "value": v}]
        for k, vs in NOTES.items() for v in vs
    },
    **{
        f"checkpoint {k}: {json.dumps(v)[:30]}": [
            {"kind": "checkpoint", "id": "fz", "upto": 40, "hidden": {"6-20": "x"}, "state": "s", k: v}
        ]
        for k, vs in CHECKPOINTS.items() for v in vs
    },
}  # fmt: skip


def texts(path: Path) -> list[str]:
    """The words that are whole in a log."""
    found = TranscriptLog.open(path, readonly=True)
    try:
        return [e.record.text for e in found.entries if e.kind in ("user", "assistant", "tool_result")]
    finally:
        found.close()


def used(home: Path, work: Path, path: Path, before: list[str]) -> None:
    """Does to a session all that can be done; what it had is there all the time, and it goes on."""
    assert path in [s.path for s in list_sessions(home)]
    check_session.check(path)
    for form in export.FORMATS:
        out = export.export(path, form)
        assert form != "md" or "Never touch pay.py." in out
    copy, _ = sessions.fork(home, work, path)
    copy.close()
    for one in (copy.path, path):
        assert one is not None
        messages, _, _ = next_request(one)
        assert refusals(messages) == []
        with Session.start(settings(home), cwd=work, model=Scripted(["Going on."] * 3), resume=str(one)) as session:
            assert asyncio.run(ended(session)).reason == "done"
        assert (set(before) - set(texts(one)), texts(one)[-2:]) == (set(), ["Go on", "Going on."])
    check_session.check(path)


async def ended(session: Session) -> TurnEnded:
    last = [event async for event in session.send("Go on")][-1]
    assert isinstance(last, TurnEnded)
    return last


@pytest.mark.parametrize("name", ODD)
def test_records_nobody_would_have_written(log: Path, tmp_path: Path, name: str) -> None:
    before = texts(log)
    add(log, *(dict(record) for record in ODD[name]))
    used(tmp_path / "home", tmp_path, log, before)


def pretty(raw: bytes) -> bytes:
    """As an editor or a script may leave it: other white space, so that no checksum fits."""
    return b"".join(json.dumps(json.loads(row), ensure_ascii=False).encode() + b"\n" for row in raw.splitlines())


REWRITTEN: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    # name: (what became of the file, whether any record can be read)
    "gzip": (gzip.compress, False),
    "UTF-16": (lambda raw: raw.decode().encode("utf-16"), False),
    "JSON with spaces": (pretty, False),
    "CR for line ends": (lambda raw: raw.replace(b"\n", b"\r"), True),
    "one line": (lambda raw: raw.replace(b"\n", b""), True),
    "garbage around": (lambda raw: bytes(range(256)) * 9 + b"\n" + raw + bytes(range(255, -1, -1)) * 9, True),
    "conflict markers": (lambda raw: raw.replace(b"\n", b"\n<<<<<<< HEAD\n", 9) + b">>>>>>> other\n", True),
    "backwards": (lambda raw: b"".join(raw.splitlines(keepends=True)[::-1]), True),
    "every line twice": (lambda raw: b"".join(row + row for row in raw.splitlines(keepends=True)), True),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_files_that_other_programs_have_written_again(log: Path, tmp_path: Path, name: str) -> None:
    change, readable = REWRITTEN[name]
    before, raw = texts(log), change(log.read_bytes())
    log.write_bytes(raw)
    if readable:
        used(tmp_path / "home", tmp_path, log, before)
        return
    (info,) = list_sessions(tmp_path / "home")
    assert info.problem == "nothing in it can be read"
    log.chmod(0o400)
    assert log.read_bytes() == raw


IN_PLACE: dict[str, Callable[[Path], object]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("/nowhere/x"),
}


@pytest.mark.parametrize("what", IN_PLACE)
def test_what_is_no_file_holds_nobody_up(log: Path, tmp_path: Path, what: str) -> None:
    """In the place of a log, of a body, of a sub-agent's log, of the file for torn ends, and beside all of them."""
    beside = log.with_name("20990101-000000-aaaaaaaa.jsonl")
    IN_PLACE[what](beside)
    env = {"REFOLD_HOME": str(tmp_path / "home")}
    for words in (["sessions", "--all"], ["sessions", "show", sessions.id_of(log)], ["sessions", "verify", "--all"]):
        done = refold(*words, cwd=tmp_path, env=env, timeout=60)
        assert (done.returncode in (0, 5), "Traceback" in done.stderr) == (True, False), done.stderr
    done = refold("sessions", "show", str(beside), cwd=tmp_path, env=env, timeout=60)
    assert (done.returncode in (1, 2), done.stderr.count("\n"), done.stderr[:8]) == (True, 1, "refold: ")
    for body in log.with_suffix(".blobs").iterdir():
        body.unlink()
        IN_PLACE[what](body)
    log.with_suffix(".tasks").mkdir()
    IN_PLACE[what](log.with_suffix(".tasks") / "20260101-000000-abcdabcd.jsonl")
    for form in export.FORMATS:
        assert export.export(log, form)
    assert check_session.check(log).lost
    log.write_bytes(log.read_bytes()[:-20])
    IN_PLACE[what](log.with_suffix(".torn"))
    found = TranscriptLog.open(log)
    found.append(User("on"))
    found.close()
    assert (texts(log)[0], texts(log)[-1]) == ("Do it. Never touch pay.py.", "on")
    assert log.with_suffix(".torn-2").stat().st_size > 100


@pytest.mark.parametrize("when", [-(10**9), 0, 16_725_225_600, 10**11])
def test_clocks_that_are_wrong(log: Path, tmp_path: Path, when: int) -> None:
    with suppress(OSError):  # not every file system takes all of them
        os.utime(log, (when, when))
    (info,) = list_sessions(tmp_path / "home")
    assert (info.path, info.problem, info.updated[-1]) == (log, "", "Z")
    done = refold("sessions", "--all", cwd=tmp_path, env={"REFOLD_HOME": str(tmp_path / "home")})
    assert (done.returncode, done.stderr, info.id in done.stdout) == (0, "", True)


def test_a_file_that_may_not_be_read_does_not_vanish(log: Path, tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from pathlib import Path
from transcripts.catalog import list_sessions
if os.getuid() == 0:
    os.setuid(65534)
print([(s.id, s.problem) for s in list_sessions(Path({str(tmp_path / "home")!r}))])
"""
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for parent in list(tmp_path.parents)[:3]:
        parent.chmod(0o755)
    log.chmod(0)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{[(sessions.id_of(log), 'it cannot be read: Permission denied')]}\n", done.stderr


def test_a_disk_without_locks_is_told_and_held_by_nobody(log: Path) -> None:
    """As some network file systems answer. The lock of the system is what plays it, in a process of its own."""
    program = f"""
import errno, fcntl, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
def none(fd, how):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = none
from transcripts.log import TranscriptLog
from transcripts.records import User
log = TranscriptLog.open(Path({str(log)!r}))
log.append(User("on"))
print(log.problems)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    told = ["this disk has no locks (No locks available): a second process on this session is not seen"]
    assert (done.stdout, done.stderr) == (f"{told}\n", "")
    assert texts(log)[-1] == "on"


def test_every_kind_has_a_stand_in() -> None:
    """For a line that is whole and has the wrong shape: whoever asks for its kind finds its fields."""
    assert {kind: type(record) for kind, record in _STAND_INS.items()} == KINDS


# -- names and folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a/b", "../x", "two\nlines", "ü 🏷", "n" * 300, "\x1b[31mred", "latest", "-x", "s.jsonl"]
)
def test_any_name_finds_its_session_and_no_other(tmp_path: Path, home: Path, name: str) -> None:
    model = script(tmp_path / "s.jsonl", "One.", "Two.", "Three.")
    assert refold("-p", "other", "--model", model, cwd=tmp_path).returncode == 0
    for text in ("first", "second"):
        assert refold("-p", text, f"--name={name}", "--model", model, cwd=tmp_path).returncode == 0
    found = {s.name: s.messages for s in list_sessions(home)}
    assert found == {"": 2, name: 4}
    listed = refold("sessions", cwd=tmp_path).stdout
    assert (len(listed.splitlines()), "\x1b" in listed) == (2, False)
    assert all(p.parent.parent == home / "sessions" for p in home.rglob("*.jsonl"))


def test_a_beginning_of_an_id_is_no_name(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", "One.", "Two.")
    assert refold("-p", "other", "--model", model, cwd=tmp_path).returncode == 0
    (info,) = list_sessions(home)
    assert refold("-p", "mine", "-n", info.id[:3], "--model", model, cwd=tmp_path).returncode == 0
    assert sorted(s.name for s in list_sessions(home)) == ["", info.id[:3]]


def test_two_sessions_do_not_get_one_name(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", "One.", "Two.", "Three.")
    for name in ("cart", "dog"):
        assert refold("-p", "x", "-n", name, "--model", model, cwd=tmp_path).returncode == 0
    owner = next(s for s in list_sessions(home) if s.name == "cart")
    why = f"refold: the session {owner.id} has the name 'cart' already\n"
    for words in (["--resume", "dog"], ["--resume", "cart", "--fork-session"], ["-c"]):
        done = refold("-p", "x", "-q", *words, "-n", "cart", "--model", model, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, why), words
    assert refold("-p", "x", "--resume", "cart", "-n", "cart", "--model", model, cwd=tmp_path).returncode == 0


def test_a_copy_of_a_copy_outlives_both(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"calls": [call("bash", command="seq 20000")]}, "Two.", "Three.")
    assert refold("-p", "x", "-n", "cart", "--yolo", "--model", model, cwd=tmp_path).returncode == 0
    first = refold("sessions", "fork", "cart", cwd=tmp_path).stdout.split()[0]
    second = refold("sessions", "fork", first, cwd=tmp_path).stdout.split()[0]
    for ref in (first, "cart"):
        assert refold("sessions", "rm", ref, "-y", cwd=tmp_path).returncode == 0
    assert refold("sessions", "verify", second, cwd=tmp_path).stdout.endswith("all is well\n")
    assert refold("-p", "on", "--resume", second, "--model", model, cwd=tmp_path).stdout == "Three.\n"


def test_a_folder_that_was_renamed_is_told_how_to_go_on(tmp_path: Path, home: Path) -> None:
    old, new = tmp_path / "shop", tmp_path / "store"
    old.mkdir()
    model = script(tmp_path / "s.jsonl", "One.", "Two.")
    assert refold("-p", "x", "--model", model, cwd=old).returncode == 0
    (info,) = list_sessions(home)
    old.rename(new)
    done = refold("-p", "y", "-c", "-q", "--model", model, cwd=new)
    hint = f"The newest of a folder that is gone, {old}, goes on here with --resume {info.id}."
    assert (done.returncode, done.stderr) == (2, f"refold: There is no session of {new} yet. {hint}\n")
    done = refold("-p", "y", "--resume", info.id, "--model", model, cwd=new)
    assert (done.returncode, done.stdout) == (0, "Two.\n")


def test_tools_that_are_no_list_are_called_lost(log: Path) -> None:
    found = TranscriptLog.open(log)
    body = found.blobs.put(b"no list")
    found.append(Request("0" * 64, body, body, "m"))
    found.close()
    assert check_session.check(log).differences[-1].endswith("list of tools is not among the session's blobs any more")
    assert "tool_definitions" not in json.loads(export.export(log, "atif"))["agent"]
