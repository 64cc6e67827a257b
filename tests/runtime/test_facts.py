"""What code takes down before a fold and says after it."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from runtime.context.facts import empty_facts, gather, state_block, state_sections, told_paths
from runtime.context.sightings import command_kind, constraints, failed_tests, made, named
from tests.support.histories import WINDOWS, History, engine_for, put
from transcripts.log import Entry
from transcripts.records import ToolResult, User


def entries(*records) -> list[Entry]:
    return [Entry(n, "", r.kind, r) for n, r in enumerate(records, 1)]


def ran(command: str, code: int | None = 0, text: str = "") -> ToolResult:
    return ToolResult("c", "bash", text, "ok" if code == 0 else "error", meta={"command": command, "exit_code": code})


def file(tool: str, path: str, text: str = "") -> ToolResult:
    return ToolResult("c", tool, "", meta={"path": path, "sha": hashlib.sha256(text.encode()).hexdigest()})


def block(facts, limit: int = 4_000, visible=()) -> str:
    return state_block(state_sections(facts, visible), "", limit)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Do it. Never touch a.b/x.py! Then rest.", ["Never touch a.b/x.py!"]),
        ("Line one\nwithout a word of thanks\nend", ["without a word of thanks"]),
        ("先看看。不要修改它。好", ["不要修改它。"]),
        ("You must " + "go " * 200, []),
        ("", []),
    ],
)
def test_constraints(words, found):
    assert constraints(words) == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("It listens on port 8100, `a_total` is red.", ["port 8100", "a_total"]),
        ('Rename "old name" as of d52ed84f.', ["old name", "d52ed84f"]),
        ("See https://x.example/a/1. Or localhost:5173 at 12:05:07.", ["https://x.example/a/1", "localhost:5173"]),
        ("deadbeef 1234567 facade", []),
        (" ".join(f"`n{i}`" for i in range(100)), [f"n{i}" for i in range(24)]),
    ],
)
def test_named(words, found):
    assert named(words) == found


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("tests/a.py::t FAILED [ 3%]\n=== summary ===\nFAILED tests/a.py::t - assert 1", ["tests/a.py::t"]),
        ("FAIL: test_x (mod.Case)\nERROR: test_y (mod.Case)", ["test_x (mod.Case)", "test_y (mod.Case)"]),
        ("--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/neg (0.00s)", ["TestSum", "TestSum/neg"]),
        ("test math::adds ... FAILED\ntest math::subs ... ok", ["math::adds"]),
        ("ok 1 - one\nnot ok 2 - two", ["two"]),
        ("  ✓ fine\n  ✕ adds (3 ms)", ["adds"]),
        ("  1) not a failure\n  2) a list", []),
        ("  2 failing\n\n  1) Array adds\n", ["Array adds"]),
        ("all is well", []),
    ],
)
def test_failed_tests(output, found):
    assert failed_tests(output) == found


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cd a && pytest -q x", "pytest"),
        ("python -m pytest -q", "python -m pytest"),
        ("DEBUG=1 npm test -- --watch", "npm test"),
        ("timeout 60 bash scripts/v.sh", "bash scripts/v.sh"),
        ("git commit -m x", "git commit"),
        ("sed -i s/a/b/ x", "sed"),
        ("echo hi > x", "echo hi"),
        ("cat x | sort", ""),
        ("ls -la", ""),
        ("", ""),
    ],
)
def test_command_kind(command, kind):
    assert command_kind(command) == kind


def test_made():
    output = (
        "[main abc1234] fix it\n 1 file changed\n  Local: http://localhost:1/\n * Running on http://127.0.0.1:5000\n"
    )
    assert made(output) == ["[main abc1234] fix it", "* Running on http://127.0.0.1:5000"]


def test_a_failing_test_is_listed_until_a_run_says_that_it_passes():
    red = "FAILED tests/a.py::one - x\nFAILED tests/a.py::two - x\nFAILED tests/b.py::three - x\n"
    history = [ran("pytest -q", 1, red)]
    assert list(gather(empty_facts(), entries(*history))["failing"]) == [
        "tests/a.py::one", "tests/a.py::two", "tests/b.py::three",
    ]  # fmt: skip

    def still(*more: ToolResult) -> list[str]:
        return list(gather(empty_facts(), entries(*history, *more))["failing"])

    assert still(ran("pytest -q tests/b.py")) == ["tests/a.py::one", "tests/a.py::two"]
    assert still(ran("pytest -q tests/a.py::one")) == ["tests/a.py::two", "tests/b.py::three"]
    assert still(ran("pytest -q", 1, "FAILED tests/a.py::two - y")) == ["tests/a.py::two"]
    assert still(ran("pytest -q tests")) == still(ran("pytest")) == []
    assert still(ran("pytest -q tests/c.py"), ran("make lint")) == still()
    assert still(ran("pytest -q", None)) == still()


def test_the_whole_block(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / "src" / name).write_text(name)
    facts = gather(
        empty_facts(),
        entries(
            User("Repair the mail part. Never touch `legacy`."),
            User("It is on port 25. Always keep the order."),
            file("read", f"{tmp_path}/src/a.py", "a.py"),
            file("read", f"{tmp_path}/src/b.py", "b.py"),
            file("write", f"{tmp_path}/src/c.py", "older"),
            file("read", f"{tmp_path}/gone.py", "x"),
            ran("pytest -q", 1, "FAILED t/a.py::one - x"),
            ran("make"),
            ran("cat x"),
            ran("npm run dev", None, "Listening on port 5173"),
            ToolResult("c", "todo", "", meta={"todo": [
                {"text": "look", "status": "done"}, {"text": "mend", "status": "doing"}]}),
        ),
    )  # fmt: skip
    assert json.loads(json.dumps(facts)) == facts
    told = block(facts, visible={1})
    assert told.splitlines() == [
        "the person said:", "(#2) Always keep the order.",
        "they named:", "(#2) port 25",
        "todo, 1 of 2 done:", "[>] mend",
        "failing tests:", "t/a.py::one",
        "commands, the last of each kind:",
        "still running: npm run dev (#10)", "exit 1: pytest -q (#7)", "exit 0: make",
        "commands said:", "Listening on port 5173 (#10)",
        "paths below are in:", str(tmp_path),
        "files written, changed since:", "src/c.py",
        "files read, since deleted:", "gone.py",
        "files read, unchanged since:", "src/{b.py,a.py}",
    ]  # fmt: skip
    assert told_paths(told) == {f"{tmp_path}/{n}" for n in ("src/a.py", "src/b.py", "src/c.py", "gone.py")}
    assert block(facts).splitlines()[:2] == ["first request:", "(#1) Repair the mail part. Never touch `legacy`."]


@pytest.mark.parametrize("limit", [0, 100, 300, 800, 3_000])
def test_where_not_all_fits_every_section_has_its_share(limit):
    facts = gather(
        empty_facts(),
        entries(
            *(User(f"Never do thing {n}.") for n in range(60)),
            *(file("read", f"/p/folder_{n % 9}/file_{n}.py") for n in range(300)),
            *(ran(f"./job{n} go", n % 3) for n in range(60)),
        ),
    )
    told = block(facts, limit)
    assert len(told) <= limit
    heads = {line for line in told.splitlines() if line.endswith(":")}
    if limit >= 800:
        assert {"the person said:", "commands, the last of each kind:"} <= heads
    if limit >= 3_000:
        assert "files read, since deleted:" in heads


def test_the_facts_stay_small_however_long_the_session_is():
    facts = empty_facts()
    for start in range(0, 6_000, 500):
        more = [
            Entry(start + n, "", r.kind, r)
            for n in range(1, 500, 5)
            for r in (
                User(f"Never do {start + n}. " + f"`name_{start}_{n}` " * 30),
                file("write", f"/p/{start}/{n}.py"),
                ran(f"./job{start}_{n} " + "x" * 900, 1, f"FAILED t/{start}.py::t{n}"),
            )
        ]
        facts = gather(facts, sorted(more, key=lambda e: e.seq))
    assert len(json.dumps(facts)) < 80_000
    assert {k: len(facts[k]) for k in ("constraints", "named", "files", "commands", "failing")} == {
        "constraints": 40, "named": 160, "files": 120, "commands": 32, "failing": 40,
    }  # fmt: skip


def test_facts_of_an_older_log_are_taken_over():
    old = {"upto": 3, "goal": [1, "Go."], "constraints": [], "files": {}, "commands": {}, "todo": []}
    new = gather(old, [Entry(4, "", "user", User("See `it`."))])
    assert new == {**empty_facts(), **old, "upto": 4, "named": [[4, "it"]]}


@pytest.mark.parametrize("seed", range(16))
def test_the_state_never_takes_more_than_its_share_of_the_window(seed):
    drawn = History(seed, WINDOWS[seed % len(WINDOWS)])
    engine = engine_for(drawn.window)
    for records in drawn.steps:
        put(engine, records)
        outcome = asyncio.run(engine.compact_if_needed(None))
        if outcome is not None and outcome.checkpoint is not None:
            state = outcome.checkpoint.state
            assert engine.estimator.tokens(engine.estimator.units(state)) <= engine.policy.state_room
            kept = outcome.checkpoint.meta["retained"]
            assert kept["in_view"] + kept["by_id"] == kept["total"]


def test_a_test_that_failed_in_a_pipe_is_failing():
    meta = {"command": "pytest -q | tail -3", "exit_code": 0, "pipe": [1, 0]}
    result = ToolResult("c", "bash", "FAILED tests/test_a.py::test_b - no\n1 failed", meta=meta)
    facts = gather(empty_facts(), [Entry(4, "", "tool_result", result)])
    assert (facts["failing"], facts["commands"]) == (
        {"tests/test_a.py::test_b": {"seq": 4, "command": "pytest -q | tail -3"}},
        {"pytest": {"seq": 4, "command": "pytest -q | tail -3", "exit": 1}},
    )


def test_only_what_the_person_said_is_said_by_the_person():
    """What a command printed stands in a message of theirs; what a hook or refold adds in one of the user's role."""
    printed = "I ran `make`:\nerror: you must never use `gets`. Listen on port 9."
    others = [User(printed, source) for source in ("shell", "harness", "hook")]
    facts = gather(empty_facts(), entries(*others, User("Never use `puts`."), User("Always ask.", "steered")))
    assert facts["constraints"] == [[4, "Never use `puts`."], [5, "Always ask."]]
    assert (facts["named"], facts["goal"]) == ([[4, "puts"]], [4, "Never use `puts`."])
