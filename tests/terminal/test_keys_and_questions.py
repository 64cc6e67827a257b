"""What keys do: send, complete, answer questions, stop, quit."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment, logged

BASH = {"calls": [{"name": "bash", "arguments": {"command": "echo ran-$((40+2))"}}]}
LONG = {"text": "word " * 400, "stream_delay": 0.05}


def test_the_prompt_takes_keys(chat: Chat) -> None:
    terminal = chat(columns=120, rows=40)
    terminal.type("hello")
    terminal.wait("› hello")
    assert terminal.process.isalive()


def test_enter_takes_the_suggestion_and_runs_it_once(chat: Chat) -> None:
    terminal = chat(rows=60)
    terminal.type("/")
    terminal.wait("› /help")
    terminal.type("hel")
    terminal.wait(r"^› /hel$")
    terminal.type("\r")
    terminal.wait_above("^Commands")
    terminal.settle()
    assert len(re.findall("^Keys$", terminal.scrollback(), re.M)) == 1


def test_an_answer_is_shown_and_the_status_line_counts(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "Hello **you**."}])
    terminal.type("hi\r")
    terminal.wait(r"Hello you\.")
    terminal.wait(r"ask · scripted:script\.jsonl · ▱+ \d+% of 128k")
    assert [r["text"] for r in logged(home, "user")] == ["hi"]


def test_yes_runs_the_command(chat: Chat) -> None:
    terminal = chat([BASH, {"text": "done"}])
    terminal.type("run it\r")
    terminal.wait(r"Run this command\?")
    terminal.wait("y Yes, this once")
    terminal.type("y")
    terminal.wait("ran-42")
    terminal.wait("done")


def test_no_is_told_to_the_model_and_the_next_turn_is_valid(chat: Chat, home: Path) -> None:
    terminal = chat([BASH, {"text": "then not"}, {"text": "next answer"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("n")
    terminal.wait("denied")
    terminal.wait("then not")
    terminal.type("go on\r")
    terminal.wait("next answer")
    assert [(r["status"], "did not allow" in r["text"]) for r in logged(home, "tool_result")] == [("denied", True)]


def test_no_with_a_word_to_the_model(chat: Chat, home: Path) -> None:
    terminal = chat([BASH, {"text": "as you wish"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("d")
    terminal.wait("Tell it ›")
    terminal.type("use make\r")
    terminal.wait("as you wish")
    assert "use make" in logged(home, "tool_result")[0]["text"]


def test_yes_for_the_session_is_not_asked_again(chat: Chat) -> None:
    terminal = chat([BASH, {"text": "one"}, BASH, {"text": "two"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.wait(r"bash\(echo")
    terminal.type("s")
    terminal.wait("Allowed from now on in this session")
    terminal.wait("^one")
    terminal.type("again\r")
    terminal.wait("^two")


def test_the_question_is_answered_by_arrows_too(chat: Chat, home: Path) -> None:
    terminal = chat([BASH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("\x1b[B" * 4)
    terminal.wait("› n No")
    terminal.type("\r")
    terminal.wait("over")
    assert logged(home, "tool_result")[0]["status"] == "denied"


def test_escape_alone_stops_the_turn_at_once_and_keeps_what_came(chat: Chat, home: Path) -> None:
    terminal = chat([LONG])
    terminal.type("tell me\r")
    terminal.wait("word word")
    began = time.monotonic()
    terminal.type("\x1b")
    terminal.wait("Stopped")
    assert time.monotonic() - began < 5
    terminal.wait("Everything so far is kept")
    (answer,) = logged(home, "assistant")
    assert answer["finish"] == "interrupted"
    assert answer["text"].startswith("word word")


def test_escape_at_a_question_says_no_and_stops(chat: Chat, home: Path) -> None:
    terminal = chat([BASH, {"text": "never said"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("\x1b")
    terminal.wait("Stopped")
    terminal.settle()
    assert "ran-42" not in terminal.scrollback()
    assert "never said" not in terminal.scrollback()


def test_enter_steers_and_tab_queues_and_up_takes_back(chat: Chat, home: Path) -> None:
    slow = {"calls": [{"name": "bash", "arguments": {"command": "sleep 1.2"}}]}
    terminal = chat([slow, {"text": "first answer"}, {"text": "second answer"}], "--yolo")
    terminal.type("begin\r")
    terminal.wait("sleep 1.2 ·")
    terminal.type("steer this\r")
    terminal.wait("next step: steer this")
    terminal.type("take me back\t")
    terminal.wait("after this: take me back")
    terminal.type("\x1b[A")
    terminal.wait("› take me back")
    terminal.type("\x15queue this\t")
    terminal.wait("after this: queue this")
    terminal.wait("second answer")
    assert [(r["text"], r.get("source", "typed")) for r in logged(home, "user")] == [
        ("begin", "typed"),
        ("steer this", "steered"),
        ("queue this", "typed"),
    ]


def test_what_waited_comes_back_into_the_input_when_it_is_stopped(chat: Chat) -> None:
    slow = {"calls": [{"name": "bash", "arguments": {"command": "sleep 30"}}]}
    terminal = chat([slow], "--yolo")
    terminal.type("begin\r")
    terminal.wait("sleep 30 ·")
    terminal.type("for later\t")
    terminal.wait("after this: for later")
    terminal.type("\x1b")
    terminal.wait("Stopped")
    terminal.wait("^› for later")


def test_control_c_clears_then_quits(chat: Chat) -> None:
    terminal = chat()
    terminal.type("half a thought")
    terminal.wait("half a thought")
    terminal.type("\x03")
    terminal.wait_gone("half a thought")
    terminal.type("\x03")
    terminal.wait("Ctrl-C again quits")
    terminal.type("\x03")
    assert terminal.ended() == 0


def test_control_d_quits_and_says_how_to_go_on(chat: Chat) -> None:
    terminal = chat([{"text": "Hello."}])
    terminal.type("hi\r")
    terminal.wait("Hello")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert re.search(r"Go on with: refold --resume [0-9a-f]{8}", terminal.text())


def test_shift_tab_changes_the_mode(chat: Chat) -> None:
    terminal = chat()
    terminal.wait("^ask ·")
    terminal.type("\x1b[Z")
    terminal.wait("^edits ·")


def test_a_command_of_the_person_is_told_to_the_model(chat: Chat, home: Path) -> None:
    terminal = chat()
    terminal.type("!echo by-$((1+1))-hand\r")
    terminal.wait("by-2-hand")
    terminal.wait("exit 0")
    terminal.type("!!echo secretly\r")
    terminal.wait("^  secretly")
    terminal.settle()
    (told,) = logged(home, "user")
    assert told["source"] == "shell"
    assert told["text"] == "I ran this command myself:\n$ echo by-$((1+1))-hand\nby-2-hand\n[exit code 0]"


def test_an_unknown_command_stays_in_the_input(chat: Chat) -> None:
    terminal = chat()
    terminal.type("/nosuch\r")
    terminal.wait("There is no command /nosuch")
    terminal.wait("^› /nosuch")


def test_what_is_typed_before_the_chat_is_there_is_not_lost(home: Path, work: Path, words) -> None:
    """Lines entered while the engine is still imported are sent in order, a draft stays a draft."""
    answers = [{"text": "one"}, {"text": "two"}]
    with Terminal(words(answers), env=environment(home), cwd=work) as terminal:
        terminal.type("first line\rsecond line\rdraft")
        terminal.wait("^two")
        terminal.wait("^› draft")
    assert [r["text"] for r in logged(home, "user")] == ["first line", "second line"]


def test_a_line_typed_at_a_question_answers_nothing(chat: Chat, home: Path) -> None:
    """`/model` has a d, which says no, and a p would allow for good: neither may come from somebody who types."""
    terminal = chat([BASH, {"text": "over"}])
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("/model p")
    terminal.settle(1.0)
    terminal.wait("Run this command")
    terminal.type("p")
    terminal.wait("› p Yes, by this rule, in this project")
    terminal.type("n")
    terminal.wait("over")
    assert logged(home, "tool_result")[0]["status"] == "denied"
    assert not (home / "permissions.toml").exists()


def test_two_escapes_with_a_line_between_them_are_not_one_after_the_other(chat: Chat) -> None:
    terminal = chat([{"text": "hello"}])
    terminal.type("hi\r")
    terminal.wait("^hello")
    terminal.type("\x1b")
    terminal.settle(0.4)
    terminal.type("/keys\r")
    terminal.wait("Others: a table")
    terminal.type("\x1b")
    terminal.settle(0.4)
    assert "Go back to before" not in terminal.text()


def test_the_model_in_use_is_offered_once(chat: Chat) -> None:
    terminal = chat(columns=160)
    terminal.type("/model\r")
    terminal.wait(r"1 scripted:\S+script\.jsonl +in use")
    terminal.wait("2 local +built in")


LONG_QUESTION = (
    "Which of the two databases shall I use for the ledger, given that " + "the old one is slow and " * 6 + "gone?"
)


def test_a_long_question_is_read_whole_and_the_answer_stays(chat: Chat, home: Path) -> None:
    ask = {"calls": [{"name": "ask_user", "arguments": {"question": LONG_QUESTION, "choices": ["sqlite", "postgres"]}}]}
    terminal = chat([ask, {"text": "over"}])
    terminal.type("go\r")
    terminal.wait("^Your answer")
    assert LONG_QUESTION in " ".join(terminal.text().split())
    terminal.type("2")
    terminal.wait("^↳ postgres")
    terminal.wait("^over")
    assert "ask_user" not in terminal.scrollback()
    assert logged(home, "tool_result")[0]["text"] == "The person answered: postgres"


def test_escape_at_a_question_of_the_models_is_no_answer(chat: Chat, home: Path) -> None:
    ask = {"calls": [{"name": "ask_user", "arguments": {"question": "Which?", "choices": ["a", "b"]}}]}
    terminal = chat([ask, {"text": "over"}])
    terminal.type("go\r")
    terminal.wait("^Your answer")
    terminal.type("\x1b")
    terminal.wait("^over")
    assert logged(home, "tool_result")[0]["text"] == "The person gave no answer; decide yourself."


def test_a_long_answer_is_seen_whole(chat: Chat) -> None:
    terminal = chat([BASH, {"text": "over"}], columns=40)
    terminal.type("run it\r")
    terminal.wait("Run this command")
    terminal.type("d")
    terminal.wait(r"Tell it ›\s*\nEnter · Esc: back")
    terminal.type("no, " + "for it takes far too long here, " * 3 + "end")
    terminal.wait("end$")
    terminal.wait("^No. Tell it › no, for it takes")


def test_a_danger_that_is_the_reason_too_is_told_once(chat: Chat) -> None:
    terminal = chat([{"calls": [{"name": "bash", "arguments": {"command": "rm -rf build"}}]}])
    terminal.type("clean\r")
    terminal.wait("^› y Yes, this once")
    assert terminal.text().count("it deletes build with everything in it") == 1
