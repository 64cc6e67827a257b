"""What is around the conversation: completion, history, editor, pager, sessions, the first start."""

from __future__ import annotations

import json
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.loopback import Quiet, listening
from tests.support.screen import Terminal
from tests.terminal.conftest import MAIN, Chat, environment, logged

LOUD = {"calls": [{"name": "bash", "arguments": {"command": "seq 1 200"}}]}


def test_files_are_completed_after_an_at(chat: Chat, work: Path, home: Path) -> None:
    (work / "src").mkdir()
    for name in ("src/alpha.py", "src/beta.py", "with space.txt"):
        (work / name).touch()
    terminal = chat([{"text": "seen"}])
    terminal.type("compare @alp")
    terminal.wait("› src/alpha.py")
    terminal.type("\t")
    terminal.wait("› compare @src/alpha.py$")
    terminal.type("and @spa")
    terminal.wait("› with space.txt")
    terminal.type("\r")
    terminal.wait('@"with space.txt"')
    terminal.type("\r")
    terminal.wait("^seen")
    assert logged(home, "user")[0]["text"] == 'compare @src/alpha.py and @"with space.txt"'


def test_escape_closes_the_suggestions_and_nothing_else(chat: Chat) -> None:
    terminal = chat()
    terminal.type("/he")
    terminal.wait("› /help")
    terminal.type("\x1b")
    terminal.wait_gone("/help  ")
    terminal.wait("^› /he$")


def test_what_was_typed_is_there_in_the_next_session(chat: Chat) -> None:
    first = chat([{"text": "one"}])
    first.type("the first words\r")
    first.wait("^one")
    first.type("\x04")
    first.ended()
    second = chat([{"text": "two"}])
    second.type("\x1b[A")
    second.wait("^› the first words")
    second.type("\x15\x12")
    second.wait("What was typed before")
    second.type("first")
    second.wait("› the first words")
    second.type("\r")
    second.wait("^› the first words")
    second.wait_gone("What was typed before")


def test_the_input_can_be_written_in_an_editor(chat: Chat, tmp_path: Path, home: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, edited\\nsecond line" "$(cat "$1")" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    terminal = chat([{"text": "read"}], env={"EDITOR": str(editor)})
    terminal.type("draft\x07")
    terminal.wait("› draft, edited\n  second line")
    terminal.type("\r")
    terminal.wait("^read")
    assert logged(home, "user")[0]["text"] == "draft, edited\nsecond line"


def test_long_output_is_short_and_whole_behind_a_key(chat: Chat) -> None:
    terminal = chat([LOUD, {"text": "counted"}], "--yolo")
    terminal.type("count\r")
    terminal.wait("194 more lines")
    terminal.wait("counted")
    terminal.type("\x0f")
    terminal.wait("/ searches · q leaves")
    terminal.wait("^1$")
    terminal.type("/150\r")
    terminal.wait("^150$")
    terminal.type("q")
    terminal.wait("^yolo · .*\n›")  # (the emulator has no alternate screen: what the pager drew stays on it)


def test_what_the_model_sees_in_part_is_whole_behind_the_key(chat: Chat) -> None:
    """The model gets both ends of an output over a tenth of the window; the person gets all of it, resumed or not."""
    big = {"calls": [{"name": "bash", "arguments": {"command": "seq 100001 120000"}}]}
    terminal = chat([big, {"text": "counted"}], "--yolo")
    terminal.type("count\r")
    terminal.wait(r"^  100002\n  … 139,999 characters in all \(Ctrl-O\)\n  119997$")
    terminal.wait("counted")
    terminal.type("\x0f")
    terminal.wait("23/20000 · / searches · q leaves")
    terminal.type("/110000\r")
    terminal.wait("^110000$")
    terminal.type("q")
    terminal.wait("^yolo · .*\n›")
    terminal.type("\x04")
    assert terminal.ended() == 0
    again = chat([big, {"text": "counted"}], "--continue")
    again.wait("^counted")
    again.type("\x0f")
    again.wait("23/20000 · / searches · q leaves")


def test_a_backslash_and_control_j_make_new_lines(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "fine"}])
    terminal.type("one\\\rtwo\nthree\x1b[13;2ufour")
    terminal.wait("› one\n  two\n  three\n  four")
    terminal.type("\r")
    terminal.wait("^fine")
    assert logged(home, "user")[0]["text"] == "one\ntwo\nthree\nfour"


def test_clear_and_resume_change_the_session(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "the old answer"}, {"text": "the new answer"}])
    terminal.type("remember me\r")
    terminal.wait("the old answer")
    terminal.type("/clear\r")
    terminal.wait("A new session")
    assert "the old answer" not in terminal.text()
    assert "the old answer" in terminal.scrollback()
    terminal.type("/resume\r")
    terminal.wait("› remember me +just now")
    terminal.type("\r")
    terminal.wait("the old answer")
    terminal.type("/copy\r")
    terminal.wait("Copied: 14 characters|There is no clipboard here")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert len(list((home / "sessions").glob("*/*.jsonl"))) == 1  # the one in which nothing was said is gone


def test_resume_alone_offers_the_sessions(chat: Chat, home: Path, work: Path, words: Callable[..., list[str]]) -> None:
    first = chat([{"text": "an answer"}])
    first.type("find me\r")
    first.wait("an answer")
    first.type("\x04")
    first.ended()
    with Terminal([*words([]), "--resume"], env=environment(home), cwd=work) as second:
        second.wait("Go on with")
        second.type("find")
        second.wait("› find me")
        second.type("\r")
        second.wait("an answer")


def test_an_edit_shows_its_diff_and_the_evidence_line_says_what_was_not_run(chat: Chat, work: Path) -> None:
    (work / "x.py").write_text("def f():\n    return 1\n")
    edit = {"calls": [{"name": "edit", "arguments": {"path": "x.py", "old": "return 1", "new": "return 2"}}]}
    check = {"calls": [{"name": "bash", "arguments": {"command": "make test; true"}}]}
    terminal = chat([edit, {"text": "done"}, check, edit | {"calls": []}, {"text": "checked"}], "--yolo")
    terminal.type("fix\r")
    terminal.wait(r"edit x.py  \+1 −1")
    terminal.wait(r"  2 -     return 1\n  2 \+     return 2")
    terminal.wait("x.py edited, nothing was run")
    terminal.type("check\r")
    terminal.wait("make test; true: exit 0, just now, nothing edited since")
    assert terminal.style("-     return 1").fg == "red"
    assert terminal.style("+     return 2").fg == "green"


def test_thinking_is_folded_to_a_line(chat: Chat) -> None:
    terminal = chat([{"text": "So: 4.", "reasoning": "two and two\nis what?"}])
    terminal.type("2+2\r")
    terminal.wait("Thought")
    terminal.wait(r"So: 4\.")
    terminal.type("\x0f")
    terminal.wait("two and two")
    terminal.type("q")


def test_a_retry_is_shown_with_its_reason(chat: Chat) -> None:
    busy = {"error": "rate_limit", "message": "too many requests", "retry_after": 0.2}
    terminal = chat([busy, {"text": "after all"}])
    terminal.type("hi\r")
    terminal.wait(r"too many requests.*trying again in")
    terminal.wait("after all")


def test_an_error_of_the_model_is_shown_with_its_words(chat: Chat) -> None:
    terminal = chat([{"error": "auth", "message": "Incorrect API key provided", "status": 401}, {"text": "back"}])
    terminal.type("hi\r")
    terminal.wait("The model failed: .*Incorrect API key provided")
    terminal.type("again\r")
    terminal.wait("^back")


def test_a_picture_is_attached_by_its_path(chat: Chat, work: Path, home: Path) -> None:
    picture = work / "shot one.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    terminal = chat([{"text": "a picture"}])
    terminal.paste(str(picture).replace(" ", "\\ "))
    terminal.wait(r"\[Image #1 shot one.png\]")
    terminal.type("what is it?\r")
    terminal.wait("a picture")
    (message,) = logged(home, "user")
    assert [i["media"] for i in message["images"]] == ["image/png"]


class Models(Quiet):
    """A server that lists two models, as Ollama does."""

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": "qwen3:8b"}, {"id": "llama3:8b"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[str]:
    """host:port of a server of models."""
    with listening(Models) as port:
        yield f"127.0.0.1:{port}"


def test_the_first_start_offers_what_there_is_and_keeps_the_choice(home: Path, work: Path, server: str) -> None:
    env = environment(home, OLLAMA_HOST=server)
    with Terminal([sys.executable, str(MAIN)], env=env, cwd=work) as terminal:
        terminal.wait("Which model shall refold use")
        terminal.wait(rf"1 Ollama +2 models at {server}")
        terminal.type("1")
        terminal.wait("Which of its models")
        terminal.type("qwen\r")
        terminal.wait("Use openai_chat:qwen3:8b from now on")
        terminal.type("y")
        terminal.wait("Shift\\+Tab changes the mode")
        terminal.wait("^ask · openai_chat:qwen3:8b")
    kept = (home / "config.toml").read_text()
    assert kept == f'model = "openai_chat:qwen3:8b"\nbase_url = "http://{server}/v1"\napi_key = "none"\n'


def test_an_address_where_nobody_answers_is_told(home: Path, work: Path) -> None:
    with Terminal([sys.executable, str(MAIN)], env=environment(home), cwd=work, rows=30) as terminal:
        terminal.wait("2 Another server")
        terminal.type("2")
        terminal.wait(r"^Address, .* › https://api\.openai\.com/v1\s*\nEnter · Esc: back$")
        terminal.type("\x15http://127.0.0.1:9/v1\r")
        terminal.wait("^Key")
        terminal.type("\r")
        terminal.wait(r"^http://127\.0\.0\.1:9/v1 does not answer, or lists no models\.$")
        terminal.wait("^Name of the model ›")


def test_the_first_start_can_be_left(home: Path, work: Path) -> None:
    with Terminal([sys.executable, str(MAIN)], env=environment(home), cwd=work, rows=30) as terminal:
        terminal.wait("Which model shall refold use")
        terminal.type("\x1b")
        assert terminal.ended() == 41
        assert re.search("no model is configured", terminal.text())


def test_a_session_that_does_not_exist_ends_with_words(home: Path, work: Path, words: Callable[..., list[str]]) -> None:
    with Terminal([*words([]), "--resume", "nosuch"], env=environment(home), cwd=work) as terminal:
        assert terminal.ended() == 2
        assert "nosuch" in terminal.text()
        assert "Traceback" not in terminal.text()


def test_vi_keys(chat: Chat) -> None:
    terminal = chat(env={"REFOLD_EDITING": "vi"})
    terminal.type("one two")
    terminal.wait("› one two")
    terminal.type("\x1b")
    terminal.settle(0.4)
    terminal.type("dbx")
    terminal.wait("› one$")


def test_a_folder_that_is_gone_is_told(home: Path, work: Path, words: Callable[..., list[str]]) -> None:
    command = f'cd "{work}" && rmdir "{work}" && exec {shlex.join(words([]))}'
    with Terminal(["bash", "-c", command], columns=120, env=environment(home)) as terminal:
        assert terminal.ended() == 2
        assert "the folder this shell is in was deleted" in terminal.text()
