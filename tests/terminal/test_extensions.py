"""Commands that are files, skills and hooks, in the chat itself."""

from __future__ import annotations

import json
from pathlib import Path

from tests.terminal.conftest import Chat, logged


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_command_stands_in_the_list_and_is_sent_under_its_name(chat: Chat, home: Path) -> None:
    _put(home / "commands" / "fix.md", "---\ndescription: Mend an issue\nargument-hint: NUMBER\n---\nMend issue $1.")
    terminal = chat([{"text": "It is mended."}])
    terminal.type("/fi")
    terminal.wait("› /fix +Mend an issue")
    terminal.type("\t7\r")
    terminal.wait("It is mended.")
    assert "Mend issue" not in terminal.scrollback()
    assert "› /fix 7" in terminal.scrollback()
    assert [r["text"] for r in logged(home, "user")] == ["Mend issue 7."]


def test_a_command_can_be_the_first_word(chat: Chat, home: Path) -> None:
    _put(home / "commands" / "fix.md", "Mend issue $1.")
    terminal = chat([{"text": "It is mended."}], "/fix 7")
    terminal.wait("It is mended.")
    assert [r["text"] for r in logged(home, "user")] == ["Mend issue 7."]


def test_skills_are_listed_and_run(chat: Chat, home: Path) -> None:
    _put(home / "skills" / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: Fill in forms.\n---\nUse fill.py.")
    terminal = chat([{"text": "It is filled in."}])
    terminal.type("/skills\r")
    terminal.wait("pdf +Fill in forms")
    terminal.type("/pdf form.pdf\r")
    terminal.wait("It is filled in.")
    (said,) = logged(home, "user")
    assert said["text"].endswith("\n\nUse fill.py.\n\nform.pdf")


def test_what_a_hook_refuses_is_told_and_esc_ends_one(chat: Chat, home: Path, work: Path) -> None:
    def command(words: str) -> list[dict[str, object]]:
        return [{"hooks": [{"type": "command", "command": words}]}]

    hooks = {
        "UserPromptSubmit": command("grep -q slow && sleep 77; exit 0"),
        "PreToolUse": command("echo not here >&2; exit 2"),
        "PostToolUse": command("exit 9"),
    }
    _put(home / "hooks.json", json.dumps(hooks))
    call = {"calls": [{"name": "bash", "arguments": {"command": "touch made"}}]}
    terminal = chat([call, {"text": "I could not."}], "--yolo")
    terminal.type("go\r")
    terminal.wait("I could not.")
    assert "The PreToolUse hook `echo not here >&2; exit 2` refused a call: not here" in " ".join(
        terminal.scrollback().split()
    )
    terminal.type("slow\r")
    terminal.settle(0.5)
    terminal.type("\x1b")
    terminal.wait("[Ss]topped|interrupted")
    terminal.type("/hooks\r")
    terminal.wait("PostToolUse")
    assert not (work / "made").exists()
