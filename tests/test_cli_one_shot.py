"""`refold -p` through the real command: every cause has its exit code, its stdout, its reason, its JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import refold, script

WRITE = {"text": "I write it.", "calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "a\n"}}]}
AGAIN = {"calls": [{"name": "write", "arguments": {"path": "b.txt", "content": "b\n"}}]}
DONE = {"text": "Done."}
ERRORS = {
    "auth": 41,
    "config": 52,
    "unknown": 1,
    "quota": 1,
    "not_found": 1,
}
"""Kind of a model's error that no retry helps -> exit code."""

CAUSES: dict[str, tuple[list[Any], list[str], int, str, str, str]] = {
    # name: (script, flags, exit code, stdout, subtype, meta.cause)
    "success": ([WRITE, DONE], ["--yolo"], 0, "Done.\n", "success", "done"),
    "denied": ([WRITE, DONE], [], 3, "Done.\n", "error_during_execution", "permission_denied"),
    "forbidden": (
        [WRITE, DONE],
        ["--yolo", "--deny", "edit(a.txt)"],
        3,
        "Done.\n",
        "error_during_execution",
        "permission_denied",
    ),
    "turns": ([WRITE, AGAIN, DONE], ["--yolo", "--max-turns", "1"], 4, "I write it.\n", "error_max_turns", "max_turns"),
    "tokens": (
        [WRITE, AGAIN, DONE],
        ["--yolo", "--max-tokens", "10"],
        4,
        "I write it.\n",
        "error_during_execution",
        "max_tokens",
    ),
    "money": (
        [{**WRITE, "usage": {"input": 5, "output": 5, "cost": 0.5}}, DONE],
        ["--yolo", "--max-budget-usd", "0.25"],
        4,
        "I write it.\n",
        "error_max_budget_usd",
        "max_budget_usd",
    ),
    "time": (
        [WRITE, {"text": "late", "delay": 60}],
        ["--yolo", "--timeout", "1.5"],
        4,
        "I write it.\n",
        "error_during_execution",
        "timeout",
    ),
    "check": (
        [DONE, DONE, DONE, DONE, DONE, DONE, DONE],
        ["--require-check", "test -f never"],
        5,
        "Done.\n",
        "error_during_execution",
        "check_failed",
    ),
    "check within limits": (
        [DONE, DONE, DONE],
        ["--require-check", "exit 7", "--max-turns", "2"],
        4,
        "Done.\n",
        "error_max_turns",
        "max_turns",
    ),
    "schema": (
        [DONE, DONE, DONE, DONE, DONE],
        ["--json-schema", '{"type": "object"}'],
        1,
        "Done.\n",
        "error_during_execution",
        "json_schema",
    ),
    "rate limit": (
        [{"error": "rate_limit", "message": "slow down", "retry_after": 0.01}] * 20,
        [],
        75,
        "",
        "error_during_execution",
        "rate_limit",
    ),
    **{
        kind: ([{"error": kind, "message": f"it was {kind}"}], [], code, "", "error_during_execution", kind)
        for kind, code in ERRORS.items()
    },
}


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """An empty folder to work in."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def reason(stderr: str) -> str:
    """The last line on stderr."""
    return stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_every_cause_in_every_form(cause: str, form: str, folder: Path, tmp_path: Path) -> None:
    answers, flags, code, stdout, subtype, word = CAUSES[cause]
    model = script(tmp_path / "script.jsonl", *answers)
    done = refold("-p", "Write a.txt", "--model", model, "-o", form, *flags, cwd=folder)
    assert done.returncode == code, done.stderr
    if code:
        assert reason(done.stderr).startswith("refold: ")
    if form == "text":
        assert done.stdout == stdout
        return
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["type"], result["subtype"], result["is_error"]) == ("result", subtype, code != 0)
    assert (result["meta"]["exit_code"], result["meta"]["cause"]) == (code, word)
    assert result["result"] == stdout.rstrip("\n")
    if code:
        assert reason(done.stderr) == f"refold: {result['meta']['why']}"
    if form == "json":
        assert len(done.stdout.splitlines()) == 1


def test_the_reason_names_the_rule_that_would_allow(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", WRITE, DONE)
    done = refold("-p", "Write a.txt", "--model", model, cwd=folder)
    assert "--allow 'edit(a.txt)'" in reason(done.stderr)
    again = refold("-p", "Write a.txt", "--model", model, "--allow", "edit(a.txt)", cwd=folder)
    assert (again.returncode, again.stdout, (folder / "a.txt").read_text()) == (0, "Done.\n", "a\n")


def test_quiet_says_nothing_but_why(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", WRITE, DONE)
    good = refold("-p", "-q", "Write a.txt", "--model", model, "--yolo", cwd=folder)
    bad = refold("-p", "-q", "Write a.txt", "--model", model, cwd=folder)
    assert (good.returncode, good.stderr, bad.returncode, len(bad.stderr.splitlines())) == (0, "", 3, 1)


def test_a_check_that_fails_goes_back_to_the_model(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", DONE, WRITE, {"text": "Now."})
    words = ["-p", "Write a.txt", "--model", model, "--yolo", "--require-check", "grep -q a a.txt"]
    done = refold(*words, cwd=folder)
    assert (done.returncode, done.stdout, (folder / "a.txt").read_text()) == (0, "Now.\n", "a\n")


def test_an_answer_that_does_not_fit_the_schema_is_asked_for_again(folder: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    model = script(tmp_path / "script.jsonl", DONE, {"text": '{"n": "x"}'}, {"text": '```json\n{"n": 3}\n```'})
    words = ["-p", "Count", "--model", model, "--json-schema", str(tmp_path / "schema.json")]
    text = refold(*words, cwd=folder)
    result = json.loads(refold(*words, "-o", "json", cwd=folder).stdout)
    assert (text.returncode, text.stdout) == (0, '{"n": 3}\n')
    assert (result["structured_output"], result["num_turns"]) == ({"n": 3}, 3)


def test_the_last_message_is_written_to_a_file(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", DONE)
    out = tmp_path / "last.txt"
    done = refold("-p", "x", "--model", model, "--output-last-message", str(out), cwd=folder)
    assert (done.returncode, out.read_text()) == (0, "Done.\n")
    lost = refold("-p", "x", "--model", model, "--output-last-message", str(tmp_path / "no" / "f"), cwd=folder)
    assert (lost.returncode, lost.stdout) == (1, "Done.\n")


def test_a_limit_keeps_the_work_and_the_session_goes_on(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", WRITE, AGAIN, DONE)
    first = refold("-p", "Write both", "--model", model, "--yolo", "--max-turns", "1", cwd=folder)
    second = refold("-p", "Go on", "--continue", "--model", model, "--yolo", cwd=folder)
    assert (first.returncode, second.returncode, second.stdout) == (4, 0, "Done.\n")
    assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("a\n", "b\n")


def test_no_model_names_three_ways(folder: Path) -> None:
    done = refold("-p", "x", cwd=folder)
    assert done.returncode == 41
    assert [w for w in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "--model local") if w not in done.stderr] == []
    assert reason(done.stderr) == "refold: no model is configured; any of the three ways above gives one"
    assert max(map(len, done.stderr.splitlines())) < 80
    result = json.loads(refold("-p", "x", "-o", "json", cwd=folder).stdout)
    assert (result["is_error"], result["meta"]["exit_code"], result["session_id"]) == (True, 41, "")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["-p", "x", "--set", "context_window=tiny"], 52, "context_window must be a number"),
        (["-p", "x", "--set", "nonsense=1"], 2, "--set takes NAME=VALUE"),
        (["-p", "x", "--set", "keep_last=lots"], 52, "keep_last must be a number, not 'lots' (--set keep_last)"),
        (["-p", "x", "--permission-mode", "maybe"], 52, "not 'maybe' (--permission-mode)"),
        (["-p", "x", "--yolo", "--permission-mode", "plan"], 2, "contradict"),
        (["-p", "x", "-C", "no-such-folder"], 2, "there is no folder"),
        (["-p", "x", "--json-schema", "{nonsense"], 2, "--json-schema cannot be used"),
        (["-p", "x", "--json-schema", '{"type": "what"}'], 2, "--json-schema cannot be used"),
        (["-p", "x", "--resume", "nothing"], 2, "No session has the id or name 'nothing'"),
        (["-p", "x", "--resume"], 2, "--resume needs an id"),
        (["-p", "x", "--continue"], 2, "There is no session"),
        (["-p", "x", "--model", "nobody:x"], 52, "There is no provider 'nobody'"),
        (["-p", "x", "--model", "scripted:/no/file"], 52, "cannot be read"),
        (["-p", "x", "--prompt-file", "no-such-file"], 2, "cannot be read"),
        (["-p"], 2, "there is no prompt"),
        (["-p", "x", "--bogus"], 2, "No such option"),
        (["-p", "x", "--max-turns", "many"], 2, "--max-turns"),
        (["-p", "x", "--max-turns", "0"], 2, "at least 1"),
        (["-p", "x", "--timeout", "-5"], 2, "--timeout must be more than 0"),
        (["-p", "x", "-o", "xml"], 2, "'xml' is not one of"),
        (["-p", "x", "--input-format", "json"], 2, "'json' is not one of"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], code: int, why: str, folder: Path, tmp_path: Path) -> None:
    given = words if "--model" in words else [*words, "--model", script(tmp_path / "s.jsonl", DONE)]
    done = refold(*given, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert why in done.stderr


def test_a_home_that_cannot_be_written_is_told_with_what_helps(folder: Path, home: Path, tmp_path: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "sessions").write_text("in the way")
    model = script(tmp_path / "s.jsonl", DONE)
    done = refold("-p", "x", "--model", model, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason(done.stderr).startswith(f"refold: The session cannot be written to {home}/sessions/")
    assert reason(done.stderr).endswith("or keep no session: --no-session-persistence.")
    kept_nothing = refold("-p", "x", "--model", model, "--no-session-persistence", cwd=folder)
    assert (kept_nothing.returncode, kept_nothing.stdout) == (0, "Done.\n")


def test_sessions_are_found_by_name_from_anywhere_and_forked(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"}, {"text": "three"})
    other = tmp_path / "other"
    other.mkdir()
    assert refold("-p", "x", "-n", "work", "--model", model, cwd=folder).stdout == "one\n"
    assert refold("-p", "x", "-n", "work", "--model", model, cwd=other).stdout == "two\n"
    assert refold("-p", "x", "-r", "work", "--fork-session", "--model", model, cwd=folder).stdout == "three\n"
    assert refold("-p", "x", "-r", "work", "--model", model, cwd=folder).stdout == "three\n"
    rows = [json.loads(line) for line in refold("sessions", "--all", "--json", cwd=folder).stdout.splitlines()]
    assert len(rows) == 2
    assert refold("-p", "x", "--no-session-persistence", "--model", model, cwd=folder).stdout == "one\n"
    assert len(refold("sessions", "--all", "--json", cwd=folder).stdout.splitlines()) == 2


def test_sessions_can_be_shown_and_removed(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", WRITE, DONE)
    refold("-p", "Write a.txt", "--model", model, "--yolo", cwd=folder)
    shown = refold("sessions", "show", "latest", cwd=folder).stdout
    assert [w for w in ("you: Write a.txt", "refold: I write it.", "-> write", "refold: Done.") if w not in shown] == []
    path = Path(refold("sessions", "path", "latest", cwd=folder).stdout.strip())
    assert path.is_file()
    assert refold("sessions", "rm", "latest", "--yes", cwd=folder).returncode == 0
    assert list(path.parent.glob(f"{path.stem}*")) == []


def test_the_model_is_remembered_with_the_session(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"})
    refold("-p", "x", cwd=folder, env={"REFOLD_MODEL": model})
    done = refold("-p", "x", "-c", cwd=folder, env={"REFOLD_MODEL": model})
    assert (done.returncode, done.stdout) == (0, "two\n")


def test_a_hostile_env_file_of_the_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", DONE)
    (folder / ".env").write_text(
        "REFOLD_MODEL=openai_chat:theirs\nOPENAI_BASE_URL=http://127.0.0.1:9\nCONTEXT_WINDOW=x\n"
    )
    assert refold("-p", "x", cwd=folder).returncode == 41
    assert refold("-p", "x", "--model", model, cwd=folder).stdout == "Done.\n"


def test_the_command_is_started_by_any_python(folder: Path) -> None:
    assert refold("--version", cwd=folder).stdout.startswith("refold ")
    assert sys.version_info >= (3, 11)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (
            ["--permission-mode", "plan"],
            "write a.txt (the mode plan only reads; --permission-mode edits would allow it)",
        ),
        (
            ["--permission-mode", "ask"],
            "write a.txt (the mode ask asks before each edit); to allow it: --allow 'edit(a.txt)'",
        ),
        (["--yolo", "--deny", "edit(a.txt)"], "write a.txt (your rule edit(a.txt) forbids it)"),
    ],
)
def test_a_refusal_names_the_option_that_would_allow_it(tmp_path: Path, flags: list[str], why: str) -> None:
    done = refold("-p", "go", "--model", script(tmp_path / "s.jsonl", WRITE, DONE), *flags, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == f"refold: a permission was needed and not given: {why}"
