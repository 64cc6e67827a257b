"""What the audit says of a session, word for word."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from agent.audit.findings import Asked, Audit, Fold, Stretch, audit
from agent.audit.signs import Finding, forbidden
from agent.audit.text import audit_lines
from tests.support.histories import WINDOWS, History, engine_for, put
from transcripts.log import TranscriptLog
from transcripts.records import (
    Assistant,
    Checkpoint,
    Gap,
    Record,
    Request,
    Rewind,
    SessionStart,
    ToolCall,
    ToolResult,
    Unfold,
    Unknown,
    Usage,
    User,
)

FILES = {"path": "/w/a.py", "sha": hashlib.sha256(b"a").hexdigest()}


class Told:
    """A session told record by record; what is said of one is numbered as the log numbers it."""

    def __init__(self, folder: Path) -> None:
        self.log = TranscriptLog.create(folder / "s.jsonl")
        self.fold = ""
        self.add(SessionStart("abc", "/w", model="scripted:x"))

    def add(self, record: Record) -> int:
        return self.log.append(record).seq

    def step(self, name: str = "", meta: dict | None = None, text: str = "out", said: str = "I go on.", **args) -> int:
        """A request, an answer, and, with a name, one call and its result; gives the number of the last."""
        self.add(Request("", "", "", "scripted:x", 900, checkpoint=self.fold, window=1_000))
        calls = (ToolCall(f"c{len(self.log.entries)}", name, json.dumps(args)),) if name else ()
        last = self.add(Assistant(said, calls))
        self.add(Usage(1_000, 10, 700))
        for call in calls:
            last = self.add(ToolResult(call.id, name, text, meta=meta or {}))
        return last

    def folded(self, hidden: dict[str, str], **more) -> int:
        self.fold = f"f{len(self.log.entries)}"
        values = {"cause": "threshold", "strategies": ("sliding_window",), "tokens_before": 900, "tokens_after": 300}
        return self.add(Checkpoint(self.fold, len(self.log.entries), hidden, **{**values, **more}))

    def audit(self) -> Audit:
        path = self.log.path
        assert path is not None
        self.log.close()
        log = TranscriptLog.open(path, readonly=True)
        found = audit(log)
        log.close()
        return found


def signs(found: Audit) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(f.kind, f.seq, f.about) for f in found.findings]


def test_the_whole_of_a_small_session(tmp_path):
    told = Told(tmp_path)
    told.add(User("Look at a.py."))
    first = told.step("read", FILES, path="a.py")
    told.add(Request("", "", "", purpose="summary", estimate=950, window=1_000))
    told.add(Usage(950, 40, 900, seconds=2.5, purpose="summary"))
    kept = {"total": 3, "in_view": 2, "by_id": 1}
    told.folded({"4-6": "sliding_window"}, notes="Looked.", notes_upto=6, notes_status="ok", meta={"retained": kept})
    again = told.step("read", FILES, path="a.py")
    told.step("recall", said="I ask back.", id="#6")
    told.step(said="Done.")

    assert told.audit() == Audit(
        session="s",
        model="scripted:x",
        window=1_000,
        records=20,
        stretches=(
            Stretch("", 0, 0, {}, {}, 1, 1),
            Stretch("f8", 3, 3, {"covered": 2}, {"covered": "#4 to #6"}, 2, 4),
        ),
        requests=(
            Asked(3, "step", 0, 1_000, 900, 4, 1_000, 700, 10),
            Asked(7, "summary", 0, 1_000, 950, 0, 950, 900, 40),
            Asked(10, "step", 1, 1_000, 900, 11, 1_000, 700, 10),
            Asked(14, "step", 1, 1_000, 900, 15, 1_000, 700, 10),
            Asked(18, "step", 1, 1_000, 900, 19, 1_000, 700, 10),
        ),
        folds=(
            Fold(
                id="f8", seq=9, at=told.log.entries[8].at, cause="threshold", strategies=("sliding_window",),
                before=900, after=300, shrink=0.6667, notes="ok", kept=kept, answers=3, uncached_after=300,
                cached_after=700, notes_input=950, notes_cached=900, notes_seconds=2.5, recalled=("#17 id=#6",),
            ),
        ),
        findings=(
            Finding(
                "re-read", again, "f8",
                f"read /w/a.py again, unchanged since #{first}; the first call after the fold", (first,),
            ),
        ),
        rates={
            "folds followed by: re-read": 1.0,
            "folds followed by: same command": 0.0,
            "folds followed by: same question": 0.0,
            "input that was cached": 0.7,
            "input for notes that was cached": 0.9474,
        },
    )  # fmt: skip


def test_a_search_that_found_nothing_brought_nothing_back(tmp_path):
    told = Told(tmp_path)
    told.add(User("Look."))
    told.step("read", FILES, path="a.py")
    told.folded({"4-6": "sliding_window"})
    told.step("recall", text="#6 read: x", query="x")
    told.step(
        "recall", text="[This is time 3 ...]\nNothing out of view matches. What is in view is not searched.", query="y"
    )
    told.step("recall", text="Nothing that is out of view matches. In view, and so not searched: #2 (user).", query="z")
    assert [words.partition(" ")[2] for words in told.audit().folds[0].recalled] == ["query=x"]


def test_a_read_that_had_to_be_made_again_is_no_sign(tmp_path):
    told = Told(tmp_path)
    told.add(User("Go."))
    told.step("read", FILES, path="a.py")
    told.step("read", {**FILES, "lines": "1-10"}, path="a.py")
    told.folded({"4-6": "sliding_window"})
    told.step("read", {**FILES, "sha": "0" * 64}, path="a.py")
    told.step("read", {**FILES, "lines": "1-10"}, path="a.py")
    assert signs(told.audit()) == []


def test_long_after_a_fold_nothing_is_laid_at_its_door(tmp_path):
    told = Told(tmp_path)
    told.add(User("Go."))
    told.step("read", FILES, path="a.py")
    told.folded({"4-6": "sliding_window"})
    for n in range(20):
        told.step("read", {"path": f"/w/{n}", "sha": str(n)}, path=str(n))
    told.step("read", FILES, path="a.py")
    assert signs(told.audit()) == []


def test_the_same_command_again(tmp_path):
    told = Told(tmp_path)
    told.add(User("Go."))
    ran = [told.step("bash", {"command": c}, text=t) for c, t in (("make", "ok"), ("date", "1"), ("ls", "a"))]
    told.folded({f"4-{ran[-1]}": "sliding_window"})
    again = told.step("bash", {"command": "make"}, text="ok")
    told.step("bash", {"command": "date"}, text="2")
    told.step("write", {"path": "/w/b"}, path="b")
    told.step("bash", {"command": "ls"}, text="a")
    assert signs(told.audit()) == [("same command", again, (ran[0],))]


def test_the_same_question_again(tmp_path):
    told = Told(tmp_path)
    told.add(User("Go."))
    asked = told.step(said="I looked. Which of the two ports shall the server use?")
    tool = told.step("ask_user", question="May I delete the old table?")
    told.add(User("The first."))
    told.folded({f"4-{tool}": "sliding_window"})
    first = told.step(said="Which of the two ports shall the server use now?")
    second = told.step("ask_user", question="May I delete the old table?")
    told.step(said="And what else shall be done about it?")
    found = told.audit()
    assert signs(found) == [
        ("same question", first, (asked,)),
        ("same question", second - 2, (tool - 2,)),
    ]


def test_a_constraint_that_was_away_and_broken(tmp_path):
    told = Told(tmp_path)
    word = told.add(User("Never touch src/legacy.py. Always say please."))
    told.step("write", {"path": "/w/src/legacy.py", "sha": "0" * 64}, path="src/legacy.py")
    told.folded({"2-2": "truncation"}, state="the person said:\n(#2) Always say please.")
    broken = told.step("bash", {"command": "rm src/legacy.py"})
    told.step("bash", {"command": "cat src/legacy.py"})
    told.add(Unfold(told.fold))
    told.step("bash", {"command": "sed -i s/a/b/ src/legacy.py"})
    found = told.audit()
    assert [f.undone for f in found.folds] == [True]
    said = "`Never touch src/legacy.py.`"
    assert [(f.kind, f.words, f.about) for f in found.findings] == [
        ("constraint broken", f"wrote /w/src/legacy.py, though #2, in view, says: {said}", (word,)),
        ("constraint broken", f"ran `rm src/legacy.py`, though #2, out of view, says: {said}", (word,)),
        ("constraint out of view", f"{said} (#2) could not be seen by answers 2 to 3", (word,)),
        ("constraint broken", f"ran `sed -i s/a/b/ src/legacy.py`, though #2, in view, says: {said}", (word,)),
    ]
    assert found.findings[1].seq == broken


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Never edit src/a.py or docs/.", (("src/a.py", "docs"), ())),
        ("Do not run npm install here.", ((), ("npm install here",))),
        ("Don't push, and do not use `git rebase -i`.", ((), ("git push", "git rebase", "git rebase -i"))),
        ("Always keep a.py small.", ((), ())),
        ("不要修改 `config.toml`。", (("config.toml",), ())),
        ("You must not be rude.", ((), ())),
    ],
)
def test_what_a_sentence_forbids(words, found):
    files, commands = forbidden(words)
    assert (set(files), set(commands)) == tuple(map(set, found))


def test_a_session_without_a_fold(tmp_path):
    told = Told(tmp_path)
    told.add(User("Go."))
    told.step(said="Done.")
    found = told.audit()
    assert list(audit_lines(found)) == [
        "Session s: scripted:x, window 1,000",
        "1 answer under 1 view, 0 folds",
        "", "What the answers could not see", "nothing: every answer saw everything",
        "", "What went wrong, as far as code can tell", "nothing",
        "", "Rates", " 70.0 %  input that was cached",
    ]  # fmt: skip


def test_damage_and_the_unknown_are_passed_over(tmp_path):
    told = Told(tmp_path)
    told.add(User("Never touch `x`."))
    told.add(Unknown("take", {"a": 1}))
    told.add(Gap(12, 3, 5, "torn"))
    told.add(ToolResult("", "", "[What stood here cannot be read.]", "unknown"))
    told.add(ToolResult("c", "read", "", meta={"path": 3, "sha": None}))
    told.add(ToolResult("c", "bash", "", meta={"command": ["x"]}))
    told.add(Checkpoint("", 0))
    told.add(Rewind(2))
    told.add(Unfold("nothing"))
    told.add(Assistant("Done.", (ToolCall("c", "ask_user", "{}"),)))
    found = told.audit()
    assert (len(found.folds), found.findings, [(s.first, s.last) for s in found.stretches]) == (1, (), [(1, 1)])
    assert list(audit_lines(found))[0] == "Session s: scripted:x, window unknown"


@pytest.mark.parametrize("seed", range(30))
def test_every_answer_is_accounted_for(seed):
    drawn = History(seed, WINDOWS[seed % len(WINDOWS)])
    engine = engine_for(drawn.window)
    answers = 0
    for records in drawn.steps:
        put(engine, records)
        answers += isinstance(records[0], Assistant)
        engine.log.append(Request("", "", ""))
        asyncio.run(engine.compact_if_needed(None))
    found = audit(engine.log)
    covered = [n for s in found.stretches for n in range(s.first, s.last + 1)]
    assert covered == list(range(1, answers + 1))
    for stretch in found.stretches:
        assert sum(stretch.counts.values()) <= stretch.messages
        assert bool(stretch.fold) or not stretch.counts
