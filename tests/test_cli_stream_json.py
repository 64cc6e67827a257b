"""stream-json: a conversation over pipes, and a reader that knows only the shape in wide use."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import argv, refold, script
from tests.support.stream import valid_lines

READ = {"text": "I look.", "reasoning": "Hm.", "calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}
DONE = {"text": "Done."}


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """A folder with one file."""
    path = tmp_path / "work"
    path.mkdir()
    (path / "a.txt").write_text("alpha\n")
    return path


@dataclass
class Client:
    """A reader as others have written it: knows type, subtype and the documented keys, nothing of ours."""

    session: str = ""
    tools: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    used: dict[str, Any] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    streamed: str = ""
    thought: str = ""
    open_blocks: list[int] = field(default_factory=list)
    answer: str = ""
    failed: bool | None = None

    def read(self, line: str) -> None:
        """Takes one line."""
        value = json.loads(line)
        match value["type"], value.get("subtype"):
            case "system", "init":
                self.session, self.tools = value["session_id"], value["tools"]
            case "assistant", _:
                self._message(value["message"])
            case "user", _:
                for block in value["message"]["content"]:
                    self.results[block["tool_use_id"]] = block["content"]
            case "stream_event", _:
                self._event(value["event"])
            case "result", _:
                self.answer, self.failed = value["result"], value["is_error"]

    def _message(self, message: dict[str, Any]) -> None:
        for block in message["content"]:
            if block["type"] == "text":
                self.said.append(block["text"])
            elif block["type"] == "tool_use":
                self.used[block["id"]] = (block["name"], block["input"])

    def _event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "content_block_start":
                self.open_blocks.append(event["index"])
            case "content_block_stop":
                assert self.open_blocks.pop() == event["index"]
            case "content_block_delta":
                assert self.open_blocks == [event["index"]]
                self.streamed += event["delta"].get("text", "")
                self.thought += event["delta"].get("thinking", "")
            case "message_stop":
                assert self.open_blocks == []


def test_a_reader_of_the_shape_in_use(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", READ, DONE)
    words = ["-p", "Look", "--model", model, "-o", "stream-json", "--include-partial-messages"]
    done = refold(*words, cwd=folder)
    client = Client()
    for line in done.stdout.splitlines():
        client.read(line)
    (call,) = client.used
    assert client.used[call] == ("read", {"path": "a.txt"})
    assert "alpha" in client.results[call]
    assert (client.said, client.streamed, client.thought) == (["I look.", "Done."], "I look.Done.", "Hm.")
    assert (client.answer, client.failed, "read" in client.tools, bool(client.session)) == ("Done.", False, True, True)


def test_the_order_of_the_lines(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", READ, {"error": "rate_limit", "retry_after": 0.1}, DONE)
    done = refold("-p", "Look", "--model", model, "-o", "stream-json", cwd=folder)
    kinds = [(v["type"], v.get("subtype", "")) for v in valid_lines(done.stdout)]
    talk = [("assistant", ""), ("user", ""), ("system", "api_retry"), ("assistant", "")]
    assert kinds == [("system", "init"), *talk, ("result", "success")]


def test_a_fold_is_a_line(folder: Path, tmp_path: Path) -> None:
    (folder / "big.txt").write_text("".join(f"line {n} of a file that is long\n" for n in range(400)))
    big = {"calls": [{"name": "read", "arguments": {"path": "big.txt", "offset": 1}}]}
    more = [
        {"calls": [{"name": "bash", "arguments": {"command": f"head -c 4000 big.txt; echo {n}"}}]} for n in range(8)
    ]
    model = script(tmp_path / "script.jsonl", big, *more, DONE)
    words = ["-p", "Look", "--model", model, "--yolo", "-o", "stream-json", "--set", "context_window=8000"]
    done = refold(*words, "--set", "summarise=no", cwd=folder)
    folds = [v for v in valid_lines(done.stdout) if v.get("subtype") == "compact_boundary"]
    assert done.returncode == 0 and folds
    assert all(f["compact_metadata"]["post_tokens"] < f["compact_metadata"]["pre_tokens"] for f in folds)
    assert {f["meta"]["cause"] for f in folds} == {"threshold"}
    assert all(f["meta"]["left_out"] or f["meta"]["shortened"] for f in folds)
    assert all(f["meta"]["kept"]["total"] == f["meta"]["kept"]["in_view"] + f["meta"]["kept"]["by_id"] for f in folds)


def user(text: Any) -> str:
    """One line of a conversation."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"


def test_a_conversation_over_pipes(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"}, {"text": "three"})
    process = subprocess.Popen(
        argv("-p", "--model", model, "-o", "stream-json", "--input-format", "stream-json"),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    answers, text = [], ""
    for words in ("first", [{"type": "text", "text": "second"}], "third"):
        process.stdin.write(user(words))
        process.stdin.flush()
        for line in process.stdout:
            text += line
            if '"type": "result"' in line:
                answers.append(json.loads(line)["result"])
                break
    rest, _ = process.communicate(timeout=30)
    assert (process.returncode, answers, rest) == (0, ["one", "two", "three"], "")
    assert len({v["session_id"] for v in valid_lines(text)}) == 1


def test_a_conversation_from_a_file_and_a_broken_line(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"})
    words = argv("-p", "--model", model, "-o", "stream-json", "--input-format", "stream-json")
    (tmp_path / "talk.jsonl").write_text(user("first") + "\n" + user("second").rstrip())
    with (tmp_path / "talk.jsonl").open() as file:
        done = subprocess.run(words, cwd=folder, stdin=file, capture_output=True, text=True, timeout=60)
    results = [v["result"] for v in valid_lines(done.stdout) if v["type"] == "result"]
    assert (done.returncode, results) == (0, ["one", "two"])
    bad = subprocess.run(words, cwd=folder, input="{nonsense\n", capture_output=True, text=True, timeout=60)
    assert (bad.returncode, valid_lines(bad.stdout)[-1]["meta"]["exit_code"]) == (2, 2)


def test_one_failure_in_a_conversation_is_the_exit_code(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"error": "quota", "message": "no money"}, {"text": "two"})
    done = refold(
        "-p",
        "--model",
        model,
        "-o",
        "stream-json",
        "--input-format",
        "stream-json",
        cwd=folder,
        input=user("a") + user("b"),
    )
    results = [(v["result"], v["is_error"]) for v in valid_lines(done.stdout) if v["type"] == "result"]
    assert (done.returncode, results) == (1, [("", True), ("two", False)])


class Talk:
    """A conversation with the real command over pipes; `lines` are all that it has said."""

    def __init__(self, folder: Path, model: str, *words: str) -> None:
        self.process = subprocess.Popen(
            argv("-p", "--model", model, "-o", "stream-json", "--input-format", "stream-json", *words),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def say(self, *lines: str) -> None:
        """Sends lines."""
        assert self.process.stdin
        self.process.stdin.write("".join(lines))
        self.process.stdin.flush()

    def until(self, kind: str) -> dict[str, Any]:
        """The next line of this type."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines += valid_lines(line)
            if self.lines[-1]["type"] == kind:
                return self.lines[-1]
        raise AssertionError(f"no {kind}: {self.lines}")

    def end(self) -> int:
        """The exit code; nothing may be left to read that is no valid line."""
        rest, _ = self.process.communicate(timeout=60)
        self.lines += valid_lines(rest)
        return self.process.returncode


def control(ident: str, subtype: str = "interrupt") -> str:
    """A request of whoever holds the other end of the pipe."""
    return json.dumps({"type": "control_request", "request_id": ident, "request": {"subtype": subtype}}) + "\n"


SLEEP = {"text": "I wait.", "calls": [{"name": "bash", "arguments": {"command": "sleep 600"}}]}


def test_a_turn_is_stopped_by_request_and_the_next_message_goes_on(folder: Path, tmp_path: Path, home: Path) -> None:
    talk = Talk(folder, script(tmp_path / "script.jsonl", SLEEP, {"text": "two"}), "--yolo")
    talk.say(user("first"))
    talk.until("assistant")
    talk.say(control("r1"))
    assert talk.until("control_response") == {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "r1"},
    }
    ended = talk.until("result")
    assert (ended["is_error"], ended["subtype"], ended["result"]) == (True, "error_during_execution", "I wait.")
    assert (ended["meta"]["cause"], ended["meta"]["exit_code"]) == ("interrupted", 130)
    talk.say(user("second"))
    assert (talk.until("result")["result"], talk.end()) == ("two", 0)
    shown = refold("sessions", "show", "latest", cwd=folder).stdout
    assert [line.partition(" ")[2] for line in shown.splitlines() if line.startswith("#")][::3] == [
        "you: first",
        "you: second",
    ]
    assert refold("replay", "--verify", cwd=folder).stdout == "2 of 2 requests come out as they were sent\n"


def test_a_stopped_turn_at_the_end_is_the_exit_code(folder: Path, tmp_path: Path) -> None:
    talk = Talk(folder, script(tmp_path / "script.jsonl", {"text": "one"}, SLEEP), "--yolo")
    talk.say(user("first"), user("second"))
    talk.until("result")
    talk.until("assistant")
    talk.say(control("r1"))
    assert (talk.end(), talk.lines[-1]["meta"]["cause"]) == (130, "interrupted")


@pytest.mark.parametrize("from_file", [False, True])
def test_a_request_stops_what_was_said_before_it_and_no_more(folder: Path, tmp_path: Path, from_file: bool) -> None:
    """All of it lies in the pipe before the first turn begins."""
    model = script(tmp_path / "script.jsonl", {"text": "one", "delay": 3}, {"text": "two"})
    words = user("first") + control("r1") + user("second")
    if from_file:
        (tmp_path / "talk.jsonl").write_text(words)
        line = argv("-p", "--model", model, "-o", "stream-json", "--input-format", "stream-json")
        with (tmp_path / "talk.jsonl").open() as file:
            done = subprocess.run(line, cwd=folder, stdin=file, capture_output=True, text=True, timeout=60)
        said, code = valid_lines(done.stdout), done.returncode
    else:
        talk = Talk(folder, model)
        talk.say(words)
        code = talk.end()
        said = talk.lines
    results = [v["meta"]["cause"] for v in said if v["type"] == "result"]
    assert (results, code, sum(v["type"] == "control_response" for v in said)) == (["interrupted", "done"], 0, 1)


def test_requests_that_mean_nothing_are_answered_and_stop_nothing(folder: Path, tmp_path: Path) -> None:
    talk = Talk(folder, script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"}))
    talk.say(control("r0"), control("r1", "set_model"), '{"type": "control_request"}\n', '{"type": "keep_alive"}\n')
    talk.say(user("first"), user("second"))
    assert talk.end() == 0
    said = [v["response"] for v in talk.lines if v["type"] == "control_response"]
    error = "refold knows no control request {} here; it knows 'interrupt'"
    assert said == [
        {"subtype": "success", "request_id": "r0"},
        {"subtype": "error", "request_id": "r1", "error": error.format("'set_model'")},
        {"subtype": "error", "request_id": None, "error": error.format("None")},
    ]
    assert [v["result"] for v in talk.lines if v["type"] == "result"] == ["one", "two"]


def test_a_required_check_is_not_waited_for_once_the_request_came(folder: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script.jsonl", {"text": "one"}, {"text": "two"})
    talk = Talk(folder, model, "--require-check", "touch begun; sleep 600")
    talk.say(user("first"))
    talk.until("assistant")
    while not (folder / "begun").exists():
        assert talk.process.poll() is None
    talk.say(control("r1"))
    assert (talk.until("result")["meta"]["cause"], talk.end()) == ("interrupted", 130)
