"""Hooks: what each exit code and word of theirs does, whose may do what, and that a folder's do nothing untrusted."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.commands.base import load_commands
from agent.extend.files import tidy
from agent.extend.hooks import EVENTS, listing, takes_for_ever
from agent.permissions import Verdict
from agent.sandbox import RUNGS
from agent.settings import SettingsError
from agent.trust import Trust
from tests.support.command import argv, refold, script
from tests.support.extended import World, call
from tests.support.plain_face import PlainFace
from tests.support.processes import gone
from tools.base import load_tools

MINE, THEIRS, CLAUDE = "~/hooks.json", ".refold/hooks.json", ".claude/settings.json"
PRESENT = [rung.kind for rung in RUNGS if not rung.why_not()]
HI = call("bash", command="echo hi")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def hooks(event: str, *commands: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    """A file of hooks for one event."""
    entries = [{"type": "command", "command": c, **more} for c in commands]
    return {"hooks": {event: [{"matcher": matcher, "hooks": entries}]}}


def decides(decision: str, reason: str = "so") -> str:
    """A command that prints a decision about a call."""
    more = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return f"echo '{json.dumps({'hookSpecificOutput': more})}'"


# -- what they are told ----------------------------------------------------------------------------------------------


def test_what_a_hook_is_told(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "cat > told.json"))
    with world.open(call("edit", path="a.txt", old="a", new="b"), mode="yolo") as talk:
        world.put("a.txt", "a\n")
        talk.say()
        told = json.loads((world.ws / "told.json").read_text())
        assert told == {
            "session_id": talk.session.id,
            "transcript_path": str(talk.session.path),
            "cwd": str(world.ws),
            "permission_mode": "yolo",
            "hook_event_name": "PreToolUse",
            "tool_name": "edit",
            "tool_input": {
                "path": "a.txt", "old": "a", "new": "b",
                "old_string": "a", "new_string": "b", "file_path": str(world.ws / "a.txt"),
            },
        }  # fmt: skip


def test_after_a_call_it_is_told_the_result_and_its_words_go_to_the_model(world: World) -> None:
    says = 'cat > told.json; echo \'{"hookSpecificOutput": {"additionalContext": "3 lint errors"}}\''
    world.put(MINE, hooks("PostToolUse", says, "echo no good >&2; exit 2", matcher="Bash"))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        words = f"[The PostToolUse hook `{says[:79]}…` says: 3 lint errors]"
        more = "[The PostToolUse hook `echo no good >&2; exit 2` says: no good]"
        assert talk.results == [f"ok: hi\n\n{words}\n\n{more}"]
    told = json.loads((world.ws / "told.json").read_text())
    assert told["tool_response"] == {"status": "ok", "success": True, "text": "hi", "exit_code": 0}


def test_every_file_of_a_patch_is_shown_to_a_hook(world: World) -> None:
    """A guard that looks at file_path must not be passed by a call that writes several files."""
    guard = (
        'python3 -c \'import json, sys; sys.exit(2 * ("secret" in json.load(sys.stdin)["tool_input"]["file_path"]))\''
    )
    world.put(MINE, hooks("PreToolUse", guard, matcher="Edit|Write"))
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: secret.txt\n+s\n*** End Patch\n"
    with world.open(call("apply_patch", patch=patch), mode="yolo") as talk:
        talk.session.toolbox.tools = {**talk.session.toolbox.tools, **_tools("apply_patch")}
        talk.say()
        assert [r.split(":")[0] for r in talk.results] == ["denied"]
        assert [n["code"] for n in talk.notes] == [0, 2]
    assert sorted(os.listdir(world.ws)) == []


@pytest.mark.parametrize(("names", "asked"), [(("docs/a", "docs/b"), 0), (("docs/a", "src/b"), 1)])
def test_an_allowed_file_does_not_allow_the_others_of_a_patch(world: World, names: Sequence[str], asked: int) -> None:
    world.put(MINE, hooks("PreToolUse", f'grep -q \'"file_path": "{world.ws}/docs/\' && {decides("allow")} || true'))
    patch = "".join(f"*** Add File: {name}\n+x\n" for name in names)
    call_ = call("apply_patch", patch=f"*** Begin Patch\n{patch}*** End Patch\n")
    with world.open(call_, answers=[Verdict(True)]) as talk:
        talk.session.toolbox.tools = {**talk.session.toolbox.tools, **_tools("apply_patch")}
        talk.say()
        assert ([r.split(":")[0] for r in talk.results], len(talk.asked)) == (["ok"], asked)


def _tools(name: str) -> dict[str, Any]:
    return load_tools([name])


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [("", True), ("*", True), ("Bash", True), ("bash", True), ("Edit|Bash", True), ("B.*", True), ("Ba", False),
     ("Edit", False), ("mcp__.*", False)],
)  # fmt: skip
def test_matchers_know_both_names(world: World, matcher: str, runs: bool) -> None:
    world.put(MINE, hooks("PreToolUse", "true", matcher=matcher))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert len(talk.notes) == runs


def test_files_of_another_program_are_told_its_names(world: World) -> None:
    names = "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"tool_name\"], file=sys.stderr)'"
    world.put(CLAUDE, hooks("PreToolUse", f"{names}; exit 2"))
    world.trust()
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.notes[0]["err"] == "Bash"


# -- what they decide ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "command", "mode", "status", "asked"),
    [
        (MINE, "echo never >&2; exit 2", "yolo", "denied", 0),
        (MINE, decides("deny"), "yolo", "denied", 0),
        (MINE, decides("ask"), "yolo", "ok", 1),
        (MINE, decides("allow"), "ask", "ok", 0),
        (MINE, "true", "ask", "ok", 1),
        (THEIRS, "echo never >&2; exit 2", "yolo", "denied", 0),
        (THEIRS, decides("deny"), "yolo", "denied", 0),
        (THEIRS, decides("ask"), "yolo", "ok", 1),
        (THEIRS, decides("allow"), "ask", "ok", 1),
        (THEIRS, 'echo \'{"decision": "approve"}\'', "ask", "ok", 1),
        (MINE, 'echo \'{"decision": "block", "reason": "no"}\'', "yolo", "denied", 0),
    ],
)
def test_who_may_decide_what(world: World, file: str, command: str, mode: str, status: str, asked: int) -> None:
    world.put(file, hooks("PreToolUse", command))
    world.trust()
    with world.open(call("bash", command="echo hi > x"), mode=mode, answers=[Verdict(True)]) as talk:
        talk.say()
        assert ([r.split(":")[0] for r in talk.results], len(talk.asked)) == ([status], asked)
        refused = f"The PreToolUse hook `{tidy(command, 80)}` refused a call: "
        told = [notice.removeprefix(refused) for notice in talk.notices]
        assert told == ([] if status == "ok" else [talk.results[0].partition("refuses it: ")[2].removesuffix("]")])


def test_no_hook_gets_past_a_deny_or_a_danger(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", decides("allow")))
    dangerous = call("bash", command="rm -rf /")
    with world.open(HI, dangerous, deny=("bash(echo *)",), answers=[Verdict(False)]) as talk:
        talk.say()
        assert [r.split(":")[0] for r in talk.results] == ["denied", "denied"]
        assert [a.judgement.danger != "" for a in talk.asked] == [True]
        assert len(talk.notes) == 1  # what is denied already is not put to hooks
    with world.open(call("write", path="a", content="a"), mode="plan") as talk:
        talk.say()
        assert [r.split(":")[0] for r in talk.results] == ["denied"]


def test_the_model_is_told_why(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "echo use make >&2; exit 2"))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        why = "the hook `echo use make >&2; exit 2` refuses it: use make"
        results = [e.record for e in talk.session.log.entries if e.kind == "tool_result"]
        assert [(r.status, r.text, r.meta) for r in results] == [
            ("denied", f"[Denied: {why}]", {"reason": why, "rule": ""}),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo oh >&2; exit 1", "it ended with exit code 1: oh"),
        ("exit 7", "it ended with exit code 7"),
        ("kill -9 $$", "it ended with exit code 137"),
        ("sleep 60", "it was stopped after 0.2 s"),
    ],
)
def test_a_hook_that_fails_is_passed_over_and_told(world: World, command: str, words: str) -> None:
    world.put(MINE, hooks("PreToolUse", command, timeout=0.2))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.results == ["ok: hi"]
        assert talk.notices == [f"The PreToolUse hook `{command}` failed and was passed over: {words}"]


def test_json_that_cannot_be_read_is_told(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "echo '{oh'"))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.notices == [
            "The PreToolUse hook `echo '{oh'` printed JSON that cannot be read; it was passed over."
        ]


def test_the_person_is_told_what_a_hook_wants_them_told(world: World) -> None:
    world.put(MINE, hooks("PostToolUse", 'echo \'{"systemMessage": "formatted"}\''))
    with world.open(HI, HI, mode="yolo") as talk:
        talk.say()
        assert talk.notices == ["formatted", "formatted"]


# -- around a turn ---------------------------------------------------------------------------------------------------


def test_a_message_can_be_refused_or_added_to(world: World) -> None:
    table = hooks("UserPromptSubmit", "grep -q key && { echo no keys >&2; exit 2; }; echo branch main")
    table["hooks"] |= hooks("SessionStart", "cat > start.json; echo rules", matcher="startup")["hooks"]
    world.put(MINE, table)
    with world.open({"text": "a"}, {"text": "b"}) as talk:
        command = "grep -q key && { echo no keys >&2; exit 2; }; echo branch main"
        refused = talk.say("my key")
        assert (refused.reason, refused.message) == (
            "denied", f"The hook `{command}` refuses this message: no keys",
        )  # fmt: skip
        assert not any(e.kind == "user" for e in talk.session.log.entries)
        talk.say("go")
        begun = "[The SessionStart hook `cat > start.json; echo rules` says: rules]"
        assert talk.said == [f"go\n\n[The UserPromptSubmit hook `{command}` says: branch main]\n\n{begun}"]
        assert json.loads((world.ws / "start.json").read_text())["source"] == "startup"


def test_what_the_beginning_says_comes_with_the_first_message_only(world: World) -> None:
    world.put(MINE, hooks("SessionStart", "cat > /dev/null; echo rules"))
    with world.open({"text": "a"}, {"text": "b"}) as talk:
        talk.say("one")
        talk.say("two")
        ident = talk.session.id
        assert talk.said == ["one\n\n[The SessionStart hook `cat > /dev/null; echo rules` says: rules]", "two"]
    world.put(MINE, hooks("SessionStart", "cat > again.json", matcher="resume"))
    with world.open({"text": "c"}, resume=ident) as talk:
        talk.say("three")
    assert json.loads((world.ws / "again.json").read_text())["source"] == "resume"


def test_the_end_of_a_turn_can_be_put_off_a_few_times(world: World) -> None:
    world.put(MINE, hooks("Stop", "cat >> stops; echo >> stops; echo run the tests >&2; exit 2"))
    with world.open({"text": "a"}, HI, {"text": "b"}, {"text": "c"}, {"text": "d"}, mode="yolo") as talk:
        ended = talk.say()
        told = [json.loads(line)["stop_hook_active"] for line in (world.ws / "stops").read_text().splitlines()]
        assert (ended.reason, ended.text, ended.steps, told) == ("done", "d", 5, [False, True, True])
        assert ended.usage == talk.session.usage
        sources = [e.record.source for e in talk.session.log.entries if e.kind == "user"]
        assert sources == ["typed", "harness", "harness", "harness"]


def test_the_limit_of_a_turn_holds_when_hooks_make_it_longer(world: World) -> None:
    world.put(MINE, hooks("Stop", "echo more >&2; exit 2"))
    model = script(world.ws / "s.jsonl", *[{"text": str(n)} for n in range(9)])
    done = refold(
        "-p", "go", "-m", model, "--max-turns", "2", "-o", "json", cwd=world.ws, env={"REFOLD_HOME": str(world.own)}
    )
    assert (json.loads(done.stdout)["result"], json.loads(done.stdout)["num_turns"]) == ("1", 2)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"])
def test_esc_ends_a_hook_and_all_it_started(world: World, event: str) -> None:
    mark = f"60.{os.getpid()}{EVENTS.index(event)}"
    world.put(MINE, hooks(event, f"sleep {mark} & wait"))
    with world.open(HI, mode="yolo") as talk:
        began = time.monotonic()
        ended = talk.say(stop_after=0.7)
        assert (ended.reason, time.monotonic() - began < 10) == ("interrupted", True)
        assert gone(mark)
        results = [e.record.text for e in talk.session.log.entries if e.kind == "tool_result"]
        assert results == {"PostToolUse": ["hi"], "Stop": ["hi"]}.get(event, [])
        assert talk.session.hooks is not None
        talk.say("again", stop_after=0.3)  # the log is whole: the next turn can begin


# -- whose they are --------------------------------------------------------------------------------------------------


HOSTILE: dict[str, str | dict[str, Any]] = {
    path: {"hooks": {event: [{"hooks": [{"type": "command", "command": f"touch pwned-{event}"}]}] for event in (
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop",
    )}}
    for path in (THEIRS, CLAUDE, ".claude/settings.local.json")
}  # fmt: skip


def test_an_untrusted_folder_runs_nothing(world: World) -> None:
    for path, table in HOSTILE.items():
        world.put(path, table)
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert (talk.session.hooks, talk.notes) == (None, [])
        assert talk.session.notices == [
            "This folder brings along 3 files (hooks) that do nothing until you trust them: /trust, or `refold trust`."
        ]
    model = script(world.own / "s.jsonl", HI)
    done = refold("-p", "go", "--yolo", "-m", model, cwd=world.ws, env={"REFOLD_HOME": str(world.own)})
    assert (done.returncode, sorted(os.listdir(world.ws))) == (0, [".claude", ".refold"])


def test_a_changed_file_does_nothing_and_is_asked_about_again(world: World) -> None:
    file = world.put(THEIRS, hooks("PreToolUse", "touch ran"))
    world.trust()
    file.write_text(json.dumps(hooks("PreToolUse", "touch pwned")))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.session.hooks is None
        assert talk.session.notices == [
            "This folder brings along 1 file (hooks) that does nothing until you trust it again, "
            "for it has changed: /trust, or `refold trust`."
        ]
    assert sorted(os.listdir(world.ws)) == [".refold"]


@pytest.mark.parametrize("how", ["file", "script", "new script"])
def test_a_change_during_the_session_counts_at_once(world: World, how: str) -> None:
    file = world.put(THEIRS, hooks("PreToolUse", "sh .refold/hooks/run.sh"))
    program = world.put(".refold/hooks/run.sh", "touch ran\n")
    world.trust()
    with world.open(HI, {"text": "a"}, HI, mode="yolo") as talk:
        talk.say()
        assert (world.ws / "ran").exists()
        (world.ws / "ran").unlink()
        path = {"file": file, "script": program, "new script": program.with_name("more.sh")}[how]
        path.write_text(path.read_text() + "\n" if path.exists() else "x")
        talk.say()
        assert talk.results == ["ok: hi"]
        assert talk.notices == [
            "The PreToolUse hook `sh .refold/hooks/run.sh` failed and was passed over: its file or a script has "
            "changed since you trusted it; /trust shows it"
        ]
    assert not (world.ws / "ran").exists()


def test_a_link_out_of_the_folder_is_no_script_of_it(world: World, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.sh").write_text("touch pwned\n")
    world.put(THEIRS, hooks("PreToolUse", "sh .refold/hooks/run.sh"))
    (world.ws / ".refold" / "hooks").mkdir()
    (world.ws / ".refold" / "hooks" / "run.sh").symlink_to(tmp_path / "elsewhere.sh")
    world.trust()
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.session.hooks is None
    assert not (world.ws / "pwned").exists()


_ENV = "env | grep -e KEY -e CLAUDE -e the-key"
"""What matters of the environment: all of it is more than a log keeps of what a hook said."""


@pytest.mark.parametrize("mode", ["plan", "auto"] if PRESENT else [])
def test_a_folders_hook_is_confined_as_the_mode_says_and_has_no_keys(
    world: World, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Path.home() / f".refold-test-{os.getpid()}"
    monkeypatch.setenv("SOME_API_KEY", "the-key-itself")
    command = f"echo x > {outside}; echo x > inside; cat {world.own}/trust.json; {_ENV}; exit 1"
    world.put(THEIRS, hooks("PreToolUse", command))
    world.put(MINE, hooks("PostToolUse", f"{_ENV}; exit 1"))
    world.trust()
    with world.open(call("read", path="."), mode=mode) as talk:
        talk.say()
        theirs, mine = talk.notes
    try:
        assert not outside.exists()
    finally:
        outside.unlink(missing_ok=True)
    assert (world.ws / "inside").exists() == (mode == "auto")
    assert "files" not in theirs["out"]
    for note in (theirs, mine):
        assert ("the-key-itself" in note["out"], f"CLAUDE_PROJECT_DIR={world.ws}" in note["out"]) == (False, True)


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "it is no JSON object"),
        ('{"hooks": []}', "`hooks` is no object of events"),
        ('{"Stop": {}}', "Stop has to be a list of objects with a list `hooks`"),
        ('{"Stop": [{"matcher": "x"}]}', "Stop has to be a list of objects with a list `hooks`"),
        ('{"Stop": [{"matcher": "(", "hooks": [{"command": "x"}]}]}',
         "matcher '(': missing ), unterminated subpattern at position 0"),
    ],
)  # fmt: skip
def test_a_broken_file_that_counts_is_one_line(world: World, text: str, why: str) -> None:
    for path in (MINE, THEIRS):
        file = world.put(path, text)
        world.trust()
        with pytest.raises(SettingsError) as error:
            world.open()
        assert str(error.value) == f"the hooks in {file} cannot be read: {why}. --no-hooks goes on without any."
        world.open(no_hooks=True).session.close()
        world.open(bare=True).session.close()
        file.unlink()


def test_what_is_not_known_does_not_run_and_is_told(world: World) -> None:
    table = hooks("PreToolUse", "true")
    table["hooks"]["Notification"] = [{"hooks": []}]
    table["hooks"]["Stop"] = [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]
    file = world.put(MINE, table)
    with world.open() as talk:
        assert talk.session.notices == [
            f"{file}: refold has no hooks for Notification; they do not run.",
            f"{file}: a hook for Stop is no command and does not run.",
        ]


def test_other_settings_of_another_program_are_no_hooks(world: World) -> None:
    world.put(CLAUDE, {"permissions": {"allow": ["Bash(*)"]}, "env": {"A": "b"}})
    world.trust()
    with world.open() as talk:
        assert (talk.session.hooks, talk.session.notices) == (None, [])


def test_they_are_listed(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "mine.sh", matcher="Bash"))
    world.put(THEIRS, hooks("Stop", "theirs.sh"))
    world.trust()
    world.put(CLAUDE, hooks("Stop", "new.sh"))
    assert listing(world.own, Trust(world.own, world.ws)) == [
        ("PreToolUse", "Bash", "mine.sh", str(world.own / "hooks.json"), "yours"),
        ("Stop", "*", "theirs.sh", str(world.ws / THEIRS), "trusted"),
        ("Stop", "*", "new.sh", str(world.ws / CLAUDE), "not trusted"),
    ]
    env = {"REFOLD_HOME": str(world.own)}
    done = refold("hooks", cwd=world.ws, env=env)
    assert done.stdout.splitlines()[:2] == [
        "PreToolUse        Bash             mine.sh",
        f"                  yours: {world.own}/hooks.json",
    ]
    with world.open(no_hooks=True) as talk:
        face = PlainFace(talk.session)
        asyncio.run(load_commands()["hooks"].run(face, ""))
    assert face.lines[1:2] + face.lines[-1:] == [
        f"PreToolUse | Bash | mine.sh | {world.own}/hooks.json | yours",
        "None of them runs in this session.",
    ]


def test_no_hooks_and_bare_run_none(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "touch ran"))
    model = script(world.own / "s.jsonl", HI)
    for flag in ("--no-hooks", "--bare"):
        refold("-p", "go", "--yolo", flag, "-m", model, cwd=world.ws, env={"REFOLD_HOME": str(world.own)})
    assert not (world.ws / "ran").exists()


def test_in_one_shot_mode_a_refusal_is_the_reason_of_the_exit_code(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", "echo not here >&2; exit 2"))
    model = script(world.own / "s.jsonl", HI)
    done = refold("-p", "go", "--yolo", "-m", model, cwd=world.ws, env={"REFOLD_HOME": str(world.own)})
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        3,
        "refold: a permission was needed and not given: $ echo hi (the hook `echo not here >&2; exit 2` refuses it: "
        "not here)",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[" * 100_000, "maximum recursion depth exceeded"),
        (json.dumps(hooks("PreToolUse", "x", matcher="(" * 5_000 + ")" * 5_000)), "maximum recursion depth exceeded"),
        (json.dumps(hooks("PreToolUse", "x", matcher="a{99999999999999}")), "the repetition number is too large"),
        (json.dumps(hooks("PreToolUse", "x", matcher=r"(\w+)+X")), "matching it could take for ever"),
        (json.dumps(hooks("PreToolUse", "x", matcher="(?:a|a)*X")), "matching it could take for ever"),
        (json.dumps(hooks("PreToolUse", "x", matcher="(.*|x)" * 12)), "matching it could take for ever"),
        (json.dumps(hooks("PreToolUse", "x", matcher=".*" * 12)), "matching it could take for ever"),
    ],
    ids=range(7),
)
def test_no_file_of_hooks_is_a_fault_of_ours_or_takes_for_ever(world: World, text: str, fault: str) -> None:
    world.put(THEIRS, text)
    rows = listing(world.own, Trust(world.own, world.ws))
    assert [row[-1] for row in rows] == ["not trusted, and it cannot be read"]
    world.trust()
    with pytest.raises(SettingsError, match=fault):
        world.open(HI)


def test_matchers_of_every_day_are_understood(world: World) -> None:
    for matcher in (
        "Bash|Edit.*|Write.*|mcp__.*__.*|Multi.*|Re+ad",
        r"mcp__(files|docs)__[a-z*+]+",
        r"\)\*",
        "B(ash)?",
    ):
        assert not takes_for_ever(matcher)


def test_what_a_hook_cannot_be_given_is_told(world: World) -> None:
    world.put(
        MINE,
        hooks("PreToolUse", "echo \0", "echo \ud800", "head -c 60000 /dev/zero | tr '\\0' '[' | sed 's/^/{\"a\":/'"),
    )
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.results == ["ok: hi"]
        faults = (
            "embedded null byte",
            "surrogates not allowed",
            "printed JSON that cannot be read; it was passed over.",
        )
        assert [fault in notice for fault, notice in zip(faults, talk.notices, strict=True)] == [True, True, True]


STRAYS = "setsid sleep 98765 & (setsid setsid sleep 98765 &) ; sleep 0.2"


def test_nothing_that_a_hook_started_is_left(world: World) -> None:
    world.put(MINE, hooks("PreToolUse", STRAYS))
    with world.open(HI, mode="yolo") as talk:
        talk.say()
        assert talk.results == ["ok: hi"]
        assert gone("sleep 98765")


def test_a_hook_ends_with_a_session_that_is_killed(world: World, tmp_path: Path) -> None:
    world.put(MINE, hooks("PreToolUse", "setsid sleep 98764 & touch began; sleep 98764"))
    words = argv("-p", "go", "--model", script(tmp_path / "s.jsonl", HI), "--permission-mode", "yolo")
    env = {**os.environ, "REFOLD_HOME": str(world.own)}
    with subprocess.Popen(words, cwd=world.ws, env=env, stdin=subprocess.DEVNULL) as process:
        while not (world.ws / "began").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert gone("sleep 98764")
