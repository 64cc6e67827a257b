"""What is left of something that was stopped: the person sees it, and the model is told the same."""

from __future__ import annotations

import re
from pathlib import Path

from agent.terminal.words import end_line
from runtime.events import TurnEnded
from tests.support.screen import Terminal
from tests.terminal.conftest import Chat, environment, logged

TALKS = {"calls": [{"name": "bash", "arguments": {"command": "echo begun; sleep 30"}}]}


def test_a_stopped_command_shows_what_it_had_said_and_tells_the_model(chat: Chat, home: Path) -> None:
    terminal = chat([TALKS, {"text": "I look first."}], "--yolo")
    terminal.type("go\r")
    terminal.wait("^  begun")
    terminal.type("\x1b")
    terminal.wait(r"^● \$ echo begun; sleep 30  stopped, \d")
    terminal.wait("^  begun")
    terminal.type("\x0f")
    terminal.wait("1/1")
    assert re.search("^begun", terminal.text(), re.M)
    terminal.type("q")
    terminal.wait("^yolo")
    terminal.type("go on\r")
    terminal.wait("I look first")
    terminal.type("\x04")
    assert terminal.ended() == 0
    again = chat([], "--continue")
    again.wait(r"^● \$ echo begun; sleep 30  stopped, \d\.\d s$")
    (result,) = logged(home, "tool_result")
    told = (
        "[interrupted]\n[Stopped while it ran; above is what it had printed. Look at what it did before you repeat it.]"
    )
    assert (result["status"], result["text"]) == ("interrupted", f"begun\n{told}")


def test_a_call_that_was_asked_about_and_given_up_is_named(chat: Chat) -> None:
    terminal = chat([{"calls": [{"name": "bash", "arguments": {"command": "touch x"}}]}])
    terminal.type("go\r")
    terminal.wait("Run this command")
    terminal.type("\x1b")
    terminal.wait(r"^● \$ touch x  not run")


def test_what_is_said_with_a_no_stays_to_be_read(chat: Chat) -> None:
    terminal = chat([{"calls": [{"name": "bash", "arguments": {"command": "touch x"}}]}, {"text": "as you wish"}])
    terminal.type("go\r")
    terminal.wait("Run this command")
    terminal.type("d")
    terminal.wait("Tell it ›")
    terminal.type("use make\r")
    terminal.wait("as you wish")
    terminal.wait(r"^↳ use make")


def test_a_command_of_the_persons_that_is_stopped_keeps_its_output(chat: Chat, home: Path) -> None:
    terminal = chat()
    terminal.type("!echo half; sleep 30\r")
    terminal.wait("^  half")
    terminal.type("\x1b")
    terminal.wait(r"^  stopped, \d")
    terminal.wait("^  half")
    terminal.type("\x04")
    assert terminal.ended() == 0
    (told,) = logged(home, "user")
    assert re.fullmatch(
        r"I ran this command myself:\n\$ echo half; sleep 30\nhalf\n\[I stopped it after [\d.]+ s\]", told["text"]
    )


def test_plain_lines_stop_too(home: Path, work: Path, words) -> None:
    env = environment(home, TERM="dumb")
    with Terminal(words([TALKS], "--yolo"), env=env, cwd=work) as terminal:
        terminal.wait("^>")
        terminal.type("!echo half; sleep 30\n")
        terminal.wait("half$")
        terminal.type("\x03")
        terminal.type("go\n")
        terminal.wait("^stopped")
        terminal.settle(0.6)
        terminal.type("\x03")
        terminal.wait(r"^\* \$ echo begun; sleep 30 \(stopped\)")


def test_a_log_that_is_gone_is_not_the_models_fault(chat: Chat, home: Path) -> None:
    terminal = chat([{"text": "one"}, {"text": "two"}])
    terminal.type("hi\r")
    terminal.wait("^one")
    (log,) = (home / "sessions").glob("*/*.jsonl")
    log.unlink()
    terminal.type("again\r")
    terminal.wait("Nothing was done: the log was deleted")


def test_a_turn_that_goes_in_circles_says_that_it_was_stopped() -> None:
    ended = TurnEnded("stuck", message="the same call gave the same result 3 times in a row")
    words = f"Stopped, it goes in circles: {ended.message}. Tell it what to do differently."
    assert end_line(ended) == ("warn", words)
