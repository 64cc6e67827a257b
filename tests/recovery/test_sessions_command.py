"""`refold sessions`: named, forked at any message, renamed, removed with all that is theirs, out and in again."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pexpect
import pytest

from agent import sessions
from agent.export.forms import export, read
from agent.export.text import fenced
from tests.support.command import argv, refold, script
from tests.support.lived import call, live, next_request
from tests.support.strict import refusals
from transcripts.catalog import list_sessions, tasks_of
from transcripts.log import TranscriptLog
from transcripts.records import Note, SessionStart

SCHEMA = Path(__file__).resolve().parents[3] / "shared/cases/protocol/atif/atif-v1.8.schema.json"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)

REPLAYED = False  # sessions are damaged and made by hand here


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """A session with words, calls, a spilled output, an error and a second turn."""
    steps = [
        {"text": "I <b>look</b> & write.", "reasoning": "It says so.", "calls": [
            call("write", path="a.md", content="```\n# no heading\n```\n"), call("bash", command="seq 20000; exit 3"),
        ]},
        "Done: **bold** [x](javascript:alert(1)) ![y](http://t.example/p.png)\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "Second answer.",
    ]  # fmt: skip
    path, _ = live(tmp_path, steps, ["Do <script>alert(1)</script> it", "And on"])
    return path


def records(path: Path) -> list[Any]:
    log = TranscriptLog.open(path, readonly=True)
    try:
        return [(e.seq, e.at, e.record) for e in log.entries]
    finally:
        log.close()


def as_copied(row: tuple[int, str, Any]) -> tuple[int, str, Any]:
    """A row of `records` as a copy has it: snapshots stay with the original."""
    seq, at, record = row
    return (seq, at, Note("parents_snapshot", record.value)) if getattr(record, "key", "") == "snapshot" else row


def recounted(raw: bytes) -> bytes:
    """Lines whose checksums are made to fit again."""
    bodies = [line[: line.rindex(b',"crc"')] for line in raw.splitlines()]
    return b"".join(b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body)) for body in bodies)


# -- forks ----------------------------------------------------------------------------------------------------------


def test_a_fork_has_everything_and_shares_nothing(worked: Path, tmp_path: Path) -> None:
    log, ident = sessions.fork(tmp_path / "home", tmp_path / "else", worked)
    log.close()
    assert log.path is not None
    ours, theirs = records(log.path), records(worked)
    start = ours[0][2]
    assert isinstance(start, SessionStart)
    assert (start.id, start.parent, start.parent_seq) == (ident, sessions.id_of(worked), theirs[-1][0])
    assert [r for r in ours[1:-1] if not str(getattr(r[2], "key", "")).endswith("snapshot")] == [
        r for r in theirs[1:] if not str(getattr(r[2], "key", "")).endswith("snapshot")
    ]
    assert log.blobs.names() == sorted(p.name for p in worked.with_suffix(".blobs").iterdir())
    sessions.remove(tmp_path / "home", worked)
    assert [log.blobs.get(name) != b"" for name in log.blobs.names()] == [True] * len(log.blobs.names())
    assert list(worked.parent.glob(f"{worked.stem}*")) == []


def test_a_fork_at_any_record_is_whole(worked: Path, tmp_path: Path) -> None:
    """Cut in the middle of calls, the copy still has their results; and any provider takes its next request."""
    for seq, _, record in records(worked):
        log, _ = sessions.fork(tmp_path / "home", tmp_path / "else", worked, seq)
        log.close()
        assert log.path is not None
        copied = records(log.path)
        assert copied[-2][0] >= seq or record.kind == "note", record
        messages, _, problems = next_request(log.path)
        assert (refusals(messages), problems) == ([], []), (seq, record)
        assert not any("Interrupted" in str(m["content"]) for m in messages), seq
    with pytest.raises(ValueError, match=r"There is no record #999; they go up to #\d+"):
        sessions.fork(tmp_path / "home", tmp_path / "else", worked, 999)


def test_a_fork_of_a_damaged_session_has_what_is_whole(worked: Path, tmp_path: Path) -> None:
    raw = worked.read_bytes()
    worked.write_bytes(raw.replace(b'"text":"And on"', b'"text":"And \0n"')[:-30])
    log, _ = sessions.fork(tmp_path / "home", tmp_path / "else", worked)
    gaps = [e.record for e in log.entries if e.kind == "gap"]
    log.close()
    assert (len(gaps), log.problems) == (1, [])
    assert worked.read_bytes()[-30:] != raw[-30:]


# -- exports --------------------------------------------------------------------------------------------------------


def test_json_makes_the_same_session_again(worked: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text(export(worked, "json"))
    new = read(tmp_path / "home2", tmp_path, file)
    ours, theirs = records(new), [as_copied(r) for r in records(worked)]
    assert (ours[1:], ours[0][2].parent, ours[0][2].id != theirs[0][2].id) == (theirs[1:], theirs[0][2].id, True)
    again = read(tmp_path / "home3", tmp_path, worked)
    assert [r for r in records(again)[1:-1] if r[2].kind != "note"] == [r for r in theirs[1:] if r[2].kind != "note"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[1]", "is no export of refold's own"),
        ('{"format": "refold-session", "version": 99}', "was written by a newer refold"),
        ('{"format": "refold-session", "version": 1}', "has no records"),
        ('{"format": "refold-session", "version": 1, "records": [{"kind": "user", "seq": 1}]}', "has the wrong shape"),
    ],
)
def test_what_is_no_export_is_refused_and_leaves_nothing(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "home", tmp_path, tmp_path / "x.json")
    assert list((tmp_path / "home").rglob("*.*")) == []


def test_markdown(worked: Path) -> None:
    text = export(worked, "md")
    lines = text.splitlines()
    assert lines[0] == "# Do <script>alert(1)</script> it"
    assert [line for line in lines if line.startswith("## ")] == [
        "## You",
        "## refold",
        "## refold",
        "## You",
        "## refold",
    ]
    assert "**write** (ok)" in lines and "**bash** (error)" in lines
    assert fenced("a ``` b\n") == "````\na ``` b\n\n````"


def test_html_is_one_safe_page(worked: Path) -> None:
    text = export(worked, "html")
    assert "<title>Do &lt;script&gt;alert(1)&lt;/script&gt; it</title>" in text
    assert "<strong>bold</strong>" in text and "<table>" in text
    assert "I &lt;b&gt;look&lt;/b&gt; &amp; write." in text
    assert not re.search(r"<script|<img|href=\"javascript|src=\"http|<b>look", text)
    assert "default-src 'none'" in text


def test_atif(worked: Path) -> None:
    document = json.loads(export(worked, "atif"))
    sources = [(s["step_id"], s["source"]) for s in document["steps"]]
    assert sources == [(1, "system"), (2, "user"), (3, "agent"), (4, "agent"), (5, "user"), (6, "agent")]
    third = document["steps"][2]
    assert (document["schema_version"], document["agent"]["name"]) == ("ATIF-v1.8", "refold")
    assert third["reasoning_content"] == "It says so."
    assert [c["function_name"] for c in third["tool_calls"]] == ["write", "bash"]
    ids = [c["tool_call_id"] for c in third["tool_calls"]]
    assert [r["source_call_id"] for r in third["observation"]["results"]] == ids
    assert third["observation"]["results"][1]["extra"]["status"] == "error"
    totals = document["final_metrics"]
    assert totals["total_steps"] == 6
    assert totals["total_prompt_tokens"] == sum(
        s["metrics"]["prompt_tokens"] for s in document["steps"] if "metrics" in s
    )
    if SCHEMA.exists():
        import jsonschema

        jsonschema.validate(document, json.loads(SCHEMA.read_text()))


def test_an_empty_session_is_no_trajectory(tmp_path: Path) -> None:
    log = TranscriptLog.create(tmp_path / "s.jsonl")
    log.append(SessionStart("abcd1234", "/work"))
    log.close()
    with pytest.raises(ValueError, match="Nothing was said in this session"):
        export(tmp_path / "s.jsonl", "atif")
    assert export(tmp_path / "s.jsonl", "md").startswith("# abcd1234\n")


# -- the command ----------------------------------------------------------------------------------------------------


def test_names_forks_and_removal_from_any_folder(tmp_path: Path, home: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    model = script(tmp_path / "s.jsonl", "One.", "Two.", "Three.", "Four.")
    for text, cwd in (("first", here), ("second", there)):
        assert refold("-p", text, "-n", "cart", "--model", model, cwd=cwd).returncode == 0
    (info,) = list_sessions(home)
    assert (info.name, info.first, info.messages, info.cwd) == ("cart", "first", 4, str(here))
    at = next(seq for seq, _, r in records(info.path) if r.kind == "assistant")
    forked = refold("sessions", "fork", "cart", "--at", str(at), cwd=there).stdout.split()
    assert refold("sessions", "rename", forked[0], "dog", cwd=here).stdout == "Renamed: dog\n"
    taken = refold("sessions", "rename", "dog", "cart", cwd=here)
    assert (taken.returncode, taken.stderr) == (2, f"refold: the session {info.id} has the name 'cart' already\n")
    listed = refold("sessions", "--all", cwd=here).stdout
    assert [line.split()[-2] for line in listed.splitlines()] == ["dog", "cart"]
    goes_on = refold("-p", "other", "--resume", "dog", "--model", model, cwd=here)
    assert (goes_on.stdout, refold("sessions", "show", "dog", cwd=here).stdout.count("you: ")) == ("Two.\n", 2)
    out = tmp_path / "cart.json"
    assert refold("sessions", "export", "cart", "-o", str(out), cwd=here).returncode == 0
    imported = refold("sessions", "import", str(out), cwd=there).stdout.split()[0]
    assert refold("sessions", "verify", imported, cwd=there).stdout.endswith("all is well\n")
    assert refold("sessions", "rm", cwd=here).returncode == 2
    for ref in ("dog", imported, "cart"):
        assert refold("sessions", "rm", ref, "-y", cwd=here).returncode == 0
    assert [p for p in (home / "sessions").rglob("*") if p.is_file()] == []
    assert [p for p in (home / "undo").rglob("*.z")] == []


def test_what_is_cut_says_that_it_is_cut(tmp_path: Path, home: Path) -> None:
    prompt = f"Count{' and count' * 10}"
    calls = [call("bash", command=f"seq 3; : {'x' * 300}"), call("bash", command="echo 'one'")]
    model = script(tmp_path / "a-script-with-a-long-name.jsonl", {"calls": calls}, "Done.")
    assert refold("-p", prompt, "--model", model, "--yolo", cwd=tmp_path).returncode == 0
    listed, shown = (refold("sessions", *words, cwd=tmp_path).stdout.splitlines() for words in ((), ("show", "latest")))
    words = "Count and count and count and count and count and count and…"
    assert listed[0].partition(" KB  ")[2] == f"{model[:27]}…  {words}"
    first, second = (json.dumps(c["arguments"]) for c in calls)
    assert [line.partition(" ")[2] if line[0] == "#" else line for line in shown] == [
        f"you: {prompt}",
        "refold:",
        f"  -> bash {first[:199]}…",
        f"  -> bash {second}",
        "  bash ok: 1 (and 2 more lines)",
        "  bash ok: one",
        "refold: Done.",
    ]


def test_a_session_in_which_nothing_was_said_leaves_nothing(tmp_path: Path, home: Path) -> None:
    from agent.models.scripted import Scripted
    from agent.session import Session
    from tests.support.lived import settings

    with Session.start(settings(home), cwd=tmp_path, model=Scripted([])) as session:
        path = session.path
        assert path is not None and path.exists()
    assert [p for p in (home / "sessions").rglob("*") if p.is_file()] == []


def test_removing_asks_first_and_says_what_goes(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"calls": [call("bash", command="echo one")]}, "Done.")
    assert refold("-p", "Count the carts", "--model", model, "--yolo", cwd=tmp_path).returncode == 0
    (info,) = list_sessions(home)
    nobody = refold("sessions", "rm", "latest", cwd=tmp_path)
    assert (nobody.returncode, nobody.stdout, nobody.stderr) == (
        2, "", f"refold: sessions rm removes {info.id} for good, and nobody can be asked here: add --yes\n",
    )  # fmt: skip
    bodies = len(list(info.path.with_suffix(".blobs").iterdir()))
    question = (
        f"{info.id}: Count the carts, 4 messages, last used just now, of {tmp_path}\r\n"
        f"With it go {bodies} stored bodies, its snapshots for /undo. Remove it for good? [y/N] "
    )
    for answer, code, said in (
        ("n\n", 1, "refold: nothing was removed\r\n"),
        ("\n", 1, "refold: nothing was removed\r\n"),
        ("\x04", 1, "refold: nothing was removed\r\n"),
        ("yes\n", 0, f"Removed {info.id}: {info.path}\r\n"),
    ):
        child = pexpect.spawn(argv("x")[0], [*argv()[1:], "sessions", "rm", "latest"], cwd=str(tmp_path), timeout=60)
        child.setecho(False)
        child.expect_exact(question.encode())
        assert child.before == b""
        child.send(answer)
        child.expect(pexpect.EOF)
        child.close()
        shown = child.before.decode().replace("^C", "").replace("^D\x08\x08", "").lstrip("\r\n")
        assert (child.exitstatus, shown, info.path.exists()) == (code, said, code == 1), answer
    assert list_sessions(home) == []


def test_ctrl_c_at_the_question_removes_nothing(tmp_path: Path, home: Path) -> None:
    assert refold("-p", "One", "--model", script(tmp_path / "s.jsonl", "Done."), cwd=tmp_path).returncode == 0
    child = pexpect.spawn(argv("x")[0], [*argv()[1:], "sessions", "rm", "latest"], cwd=str(tmp_path), timeout=60)
    child.expect_exact(b"[y/N] ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus != 0, b"Traceback" in child.before, len(list_sessions(home))) == (True, False, 1)


def test_a_session_in_use_is_not_asked_about(tmp_path: Path, home: Path) -> None:
    assert refold("-p", "One", "--model", script(tmp_path / "s.jsonl", "Done."), cwd=tmp_path).returncode == 0
    (info,) = list_sessions(home)
    log = TranscriptLog.open(info.path)
    child = pexpect.spawn(argv("x")[0], [*argv()[1:], "sessions", "rm", "latest"], cwd=str(tmp_path), timeout=60)
    child.expect(pexpect.EOF)
    child.close()
    log.close()
    assert (child.exitstatus, b"is held by process" in child.before, b"[y/N]" in child.before) == (2, True, False)


# -- sub-agents -----------------------------------------------------------------------------------------------------


@pytest.fixture
def delegated(tmp_path: Path, home: Path) -> Path:
    """A session with two sub-agents and a command between their calls."""
    look = [{"text": "I look > here.", "calls": [call("bash", command="echo '<b>alpha</b>'")]}, "It begins with alpha."]
    given = [
        call("task", description="look", prompt="Find it out.", kind="explore"),
        call("bash", command="echo between"),
        call("task", description="count", prompt="Count <them>.", kind="explore"),
    ]
    answers = [
        {"tasks": {"look": look, "count": ["There are two."]}},
        {"text": "I ask.", "calls": given},
        "Both say so.",
    ]
    model = script(tmp_path / "s.jsonl", *answers)
    assert refold("-p", "Ask them", "-n", "asked", "--model", model, "--yolo", cwd=tmp_path).returncode == 0
    (info,) = list_sessions(home)
    return info.path


def test_markdown_and_html_have_what_sub_agents_said(delegated: Path) -> None:
    text = export(delegated, "md")
    told = [line for line in text.splitlines() if line.startswith(("#", "> #", "**"))]
    assert told == [
        "# asked",
        "## You",
        "## refold",
        "**task** (ok)",
        "> ### Sub-agent: look",
        "> ### The task",
        "> ### sub-agent",
        "> ### sub-agent",
        "**bash** (ok)",
        "**task** (ok)",
        "> ### Sub-agent: count",
        "> ### The task",
        "> ### sub-agent",
        "## refold",
    ]
    assert "> **bash** (ok)\n" in text and "> It begins with alpha.\n" in text
    page = export(delegated, "html")
    folded = re.findall(r'<details class="task"><summary>(.*?)</summary>', page)
    assert folded == ["sub-agent: look", "sub-agent: count"]
    assert page.count("<details") == page.count("</details>") and page.count("<section") == page.count("</section>")
    assert "&lt;b&gt;alpha&lt;/b&gt;" in page and "Count &lt;them&gt;." in page and "<b>" not in page


def test_atif_has_the_trajectories_of_sub_agents(delegated: Path) -> None:
    document = json.loads(export(delegated, "atif"))
    tasks = document["subagent_trajectories"]
    results = document["steps"][2]["observation"]["results"]
    refs = [r.get("subagent_trajectory_ref") for r in results]
    assert refs == [
        [{"trajectory_id": tasks[0]["trajectory_id"]}],
        None,
        [{"trajectory_id": tasks[1]["trajectory_id"]}],
    ]
    assert [[s["message"] for s in t["steps"] if s["source"] != "system"] for t in tasks] == [
        ["Find it out.", "I look > here.", "It begins with alpha."],
        ["Count <them>.", "There are two."],
    ]
    assert {t["session_id"] for t in tasks} == {document["session_id"]}
    if SCHEMA.exists():
        import jsonschema

        jsonschema.validate(document, json.loads(SCHEMA.read_text()))


def test_a_sub_agent_that_cannot_be_read_or_said_nothing_is_no_failure(delegated: Path) -> None:
    first, second = sorted(delegated.with_suffix(".tasks").glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b'{"v":1,', b'{"v":9,'))
    first.write_bytes(recounted(first.read_bytes()))
    second.write_bytes(b"")
    for form in ("md", "html"):
        assert "cannot be read: format version 9" in export(delegated, form)
    assert "subagent_trajectories" not in json.loads(export(delegated, "atif"))


def test_json_brings_sub_agents_along_and_takes_nobodys_name(delegated: Path, tmp_path: Path, home: Path) -> None:
    out = tmp_path / "out.json"
    assert refold("sessions", "export", "asked", "-o", str(out), cwd=tmp_path).returncode == 0
    new = Path(refold("sessions", "import", str(out), cwd=tmp_path).stdout.split()[1])
    names = {s.id: s.name for s in list_sessions(home)}
    assert names == {sessions.id_of(delegated): "asked", sessions.id_of(new): ""}
    assert [p.name for p in tasks_of(new)] == [p.name for p in tasks_of(delegated)]
    for ours, theirs in zip(tasks_of(new), tasks_of(delegated), strict=True):
        assert records(ours) == records(theirs)
    assert json.loads(export(new, "json"))["tasks"] == json.loads(export(delegated, "json"))["tasks"]
    elsewhere = read(tmp_path / "home2", tmp_path, out)
    assert [s.name for s in list_sessions(tmp_path / "home2")] == ["asked"]
    done = refold("sessions", "verify", sessions.id_of(new), cwd=tmp_path)
    assert (done.returncode, done.stdout.count("all is well")) == (0, 3)
    document = json.loads(out.read_text())
    document["tasks"]["../../x"] = {}
    out.write_text(json.dumps(document))
    before = sorted((tmp_path / "home2").rglob("*"))
    with pytest.raises(ValueError, match="a sub-agent that is named '../../x'"):
        read(tmp_path / "home2", tmp_path, out)
    assert (sorted((tmp_path / "home2").rglob("*")), elsewhere.exists()) == (before, True)


def test_removing_an_import_leaves_the_others_snapshots(tmp_path: Path, home: Path) -> None:
    model = script(tmp_path / "s.jsonl", {"calls": [call("write", path="a.md", content="one\n")]}, "Done.")
    work = tmp_path / "work"
    work.mkdir()
    assert refold("-p", "Write", "--model", model, "--yolo", cwd=work).returncode == 0
    (info,) = list_sessions(home)
    (tmp_path / "out.json").write_text(export(info.path, "json"))
    kept = sorted((home / "undo").rglob("*"))
    new = read(home, work, tmp_path / "out.json")
    assert refold("sessions", "rm", sessions.id_of(new), "--yes", cwd=work).returncode == 0
    assert sorted((home / "undo").rglob("*")) == kept
