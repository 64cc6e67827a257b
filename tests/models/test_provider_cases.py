"""Whole turns against servers that misbehave: the real loop, the real tools, a strict server.

The rows of the field's own list are run where it lies beside the checkout; the rows here need nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.models import make_model
from runtime.context.engine import ContextEngine
from runtime.crew import Crew
from runtime.events import Compacted, Retrying, TextDelta, ToolFinished, TurnEnded
from runtime.loop import run_turn
from runtime.retry import RetryPolicy
from tests.support.provider_server import (
    DONE,
    Pause,
    ProviderServer,
    Reply,
    Reset,
    chunk,
    ended,
    part,
    plainly,
    said,
    serving,
    usage,
)
from tools.base import Toolbox, ToolContext, load_tools
from transcripts.log import TranscriptLog
from transcripts.records import Assistant, Note, User

ROWS = Path(__file__).parents[3] / "shared" / "cases" / "provider.jsonl"
QUICK = RetryPolicy(base=0.01, cap=0.05)


@dataclass
class Turn:
    """What one turn did."""

    events: list[Any] = field(default_factory=list)
    server: ProviderServer | None = None
    seconds: float = 0.0
    history: list[Any] = field(default_factory=list)

    @property
    def end(self) -> TurnEnded:
        return self.events[-1]

    @property
    def ran(self) -> list[list[Any]]:
        """[name, arguments] of each call that really ran."""
        return [[e.call.name, e.call.args] for e in self.events if isinstance(e, ToolFinished) and not e.call.problem]

    @property
    def results(self) -> list[tuple[str, str]]:
        return [(e.result.status, e.result.text) for e in self.events if isinstance(e, ToolFinished)]

    @property
    def retries(self) -> list[Retrying]:
        return [e for e in self.events if isinstance(e, Retrying)]

    @property
    def shown(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    @property
    def refusals(self) -> list[str]:
        assert self.server is not None
        return [r for asked in self.server.asked for r in asked.refusals]


def play(replies: list[Reply], folder: Path, prompt: str = "Do it.") -> Turn:
    """One turn of a fresh session in `folder` against a strict server with these replies."""
    turn = Turn()

    async def run(url: str) -> None:
        model: Any = make_model("openai_chat:m", base_url=url, home=folder / "home", timeout=20.0)
        box = Toolbox(load_tools(("bash", "write", "read")), ToolContext(folder, folder))
        engine = ContextEngine(TranscriptLog.memory(), system="You help.", specs=box.specs())
        engine.set_window(model.window, model.window_source)
        crew = Crew(engine, model, box, retry=QUICK)
        began = time.monotonic()
        async for event in run_turn(crew, User(prompt)):
            turn.events.append(event)
        turn.seconds = time.monotonic() - began
        turn.history = [e.record for e in engine.log.entries]
        await model.close()

    with serving({"m": replies}) as server:
        turn.server = server
        asyncio.run(run(server.url))
    return turn


def reply_of(row: dict[str, Any]) -> Reply:
    """A reply as the field's list writes it."""
    if "sse" not in row:
        body = row["json"] if "json" in row else row["text"]
        return Reply(status=row.get("status", 200), body=body, headers=row.get("headers", {}))
    events: list[Any] = []
    for item in row["sse"]:
        if isinstance(item, str):
            events.append(item)
        elif "chunk" in item:
            events.append(item["chunk"])
        elif "hex" in item:
            events.append(bytes.fromhex(item["hex"]))
        elif "sleep" in item:
            events.append(Pause(item["sleep"]))
        else:
            events.append(Reset())
    return Reply(events, row.get("status", 200), headers=row.get("headers", {}))


def shared() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.is_file() else []


def judge(expected: dict[str, Any], turn: Turn) -> None:
    """Holds a turn against what a row expects of it, as far as a row says it in a form that can be checked."""
    assert turn.refusals == []
    assert turn.end.reason in ("done", "error")
    if "tool_calls" in expected:
        assert turn.ran == expected["tool_calls"]
    if "executed" in expected:
        assert turn.ran == expected["executed"]
    if "final" in expected:
        assert (turn.end.reason, turn.end.text) == ("done", expected["final"])
    if "final_contains" in expected:
        assert expected["final_contains"] in turn.shown
    if expected.get("error_result") is True:
        assert [status for status, _ in turn.results][:1] == ["error"]
    elif "error_result" in expected:
        assert turn.results[0] == ("error", "bash: command must be a string, not 5")
    if expected.get("retried") or expected.get("retried_or_marked"):
        assert turn.retries or any(isinstance(r, Assistant) and r.finish == "cut" for r in turn.history)
    if "waits_s_min" in expected:
        assert turn.seconds >= expected["waits_s_min"]
    if "says" in expected:
        assert any(expected["says"] in r.reason for r in turn.retries)
    if "usage" in expected:
        found = turn.end.usage
        assert {"prompt": found.input, "completion": found.output} == expected["usage"]
    if expected.get("retried_without"):
        assert turn.server is not None
        assert [expected["retried_without"] in a.body for a in turn.server.asked] == [True, False]
    if expected.get("does") == "compact once, retry":
        assert turn.server is not None
        assert (len(turn.server.asked), turn.end.reason) == (2, "done")


@pytest.mark.parametrize("row", shared(), ids=lambda row: row["id"])
def test_the_fields_own_rows(row: dict[str, Any], tmp_path: Path) -> None:
    judge(row["expected"], play([reply_of(r) for r in row["input"]["responses"]], tmp_path))


# -- rows of our own --------------------------------------------------------------------------------------------------

ECHO = '{"command": "echo one"}'


def call(arguments: str = ECHO, name: str = "bash") -> Reply:
    return Reply([part(arguments, 0, "a", name), ended("tool_calls"), DONE])


def test_two_calls_with_one_index_run_both(tmp_path: Path) -> None:
    two = Reply(
        [part(ECHO, 0, "a", "bash"), part('{"command": "echo two"}', 0, "b", "bash"), ended("tool_calls"), DONE]
    )
    turn = play([two, plainly("All done.")], tmp_path)
    assert [text.split("\n")[0] for _, text in turn.results] == ["one", "two"]
    assert (turn.end.text, turn.refusals) == ("All done.", [])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ('["echo one"]', "JSON object"),
        ('{"command": "echo', "not valid JSON"),
        (ECHO + ECHO, "JSON object"),
        ('{"words": "echo one"}', "command"),
        ('{"command": "echo one", "timeout": "soon"}', "timeout"),
    ],
)
def test_a_wrong_call_goes_back_as_a_short_correction(arguments: str, word: str, tmp_path: Path) -> None:
    turn = play([call(arguments), plainly("All done.")], tmp_path)
    ((status, text),) = turn.results
    assert (status, word in text, len(text) < 300) == ("error", True, True), text
    assert (turn.end.text, turn.refusals) == ("All done.", [])


def test_a_wrong_name_goes_back_with_the_right_ones(tmp_path: Path) -> None:
    turn = play([call(name="shell"), plainly("All done.")], tmp_path)
    ((status, text),) = turn.results
    assert (status, "shell" in text, "bash" in text) == ("error", True, True)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_calls_of_a_cut_answer_do_not_run(finish: str, tmp_path: Path) -> None:
    touch = '{"command": "touch ran"}'
    events = [part(touch, 0, "a", "bash"), part('{"comm', 1, "b", "bash"), ended(finish), DONE]
    turn = play([Reply(events), plainly("All done.")], tmp_path)
    assert not (tmp_path / "ran").exists()
    assert [status for status, _ in turn.results] == ["not_run", "not_run"] or not turn.ran
    assert (turn.end.text, turn.refusals) == ("All done.", [])


def test_a_long_answer_is_continued(tmp_path: Path) -> None:
    turn = play([Reply([said("The first half, "), ended("length"), DONE]), plainly("the second.")], tmp_path)
    assert turn.shown == "The first half, the second."
    assert (turn.end.reason, turn.refusals) == ("done", [])


def test_a_short_cut_answer_is_kept_in_the_log_and_the_same_is_asked_again(tmp_path: Path) -> None:
    turn = play([Reply([said("The answer is for"), Reset()]), plainly("Forty-two.")], tmp_path)
    assert turn.server is not None
    first, second = turn.server.asked
    assert first.raw == second.raw
    assert [r.value for r in turn.history if isinstance(r, Note) and r.key == "cut"] == ["The answer is for"]
    assert [(r.text, r.finish) for r in turn.history if isinstance(r, Assistant)] == [("Forty-two.", "stop")]
    assert (len(turn.retries), turn.refusals) == (1, [])


def test_a_long_cut_answer_is_kept_marked_and_gone_on_with(tmp_path: Path) -> None:
    long = "The answer is for" * 200
    turn = play([Reply([said(long), Reset()]), plainly("ty-two.")], tmp_path)
    kept = [r for r in turn.history if isinstance(r, Assistant)]
    assert [(r.text, r.finish) for r in kept] == [(long, "cut"), ("ty-two.", "stop")]
    assert turn.server is not None
    roles = [m["role"] for m in turn.server.asked[1].body["messages"]]
    assert (roles, len(turn.retries), turn.refusals) == (["system", "user", "assistant", "user"], 1, [])


def test_an_empty_answer_is_asked_again_a_few_times_and_told(tmp_path: Path) -> None:
    turn = play([Reply([chunk({"reasoning_content": "hm"}), ended(), DONE])], tmp_path)
    assert turn.server is not None
    assert (len(turn.server.asked), len(turn.retries)) == (3, 2)
    assert (turn.end.reason, turn.end.kind, "empty response" in turn.end.message) == ("error", "empty", True)


def test_a_hundred_bad_gateways_end(tmp_path: Path) -> None:
    turn = play([Reply(status=502, body="<html><title>502</title>")], tmp_path)
    assert turn.server is not None
    assert len(turn.server.asked) == QUICK.attempts
    assert (turn.end.reason, "<html>" in turn.end.message) == ("error", False)


@pytest.mark.parametrize(("status", "code"), [(401, "invalid_api_key"), (403, ""), (404, "model_not_found"), (402, "")])
def test_what_cannot_help_is_asked_once(status: int, code: str, tmp_path: Path) -> None:
    turn = play([Reply(status=status, body={"error": {"message": "no", "code": code}})], tmp_path)
    assert turn.server is not None
    assert (len(turn.server.asked), turn.end.reason) == (1, "error")


def test_retry_after_is_obeyed_and_told(tmp_path: Path) -> None:
    slow = Reply(status=429, headers={"Retry-After": "1"}, body={"error": {"message": "slow down"}})
    turn = play([slow, plainly("All done.")], tmp_path)
    assert turn.server is not None
    first, second = turn.server.asked
    assert second.at - first.at >= 1.0
    ((reason, wait),) = [(r.reason, r.wait) for r in turn.retries]
    assert (reason, 1.0 <= wait < 1.5) == ("HTTP 429: slow down", True)


def test_an_overflow_folds_and_asks_again(tmp_path: Path) -> None:
    words = "This model's maximum context length is 3000 tokens. However, your messages resulted in 9000 tokens."
    refused = Reply(status=400, body={"error": {"message": words, "code": "context_length_exceeded"}})
    big = call(json.dumps({"command": "seq 1 4000"}))
    turn = play([big, big, big, refused, plainly("All done.")], tmp_path)
    assert turn.server is not None
    assert any(isinstance(e, Compacted) for e in turn.events)
    assert (turn.end.text, turn.refusals, len(turn.server.asked) <= 6) == ("All done.", [], True)


def test_an_overflow_of_nothing_but_one_short_message_is_tried_once_more(tmp_path: Path) -> None:
    """Nothing can be folded; some servers count the answer that they would write by default."""
    refused = Reply(status=400, body={"error": {"message": "too long", "code": "context_length_exceeded"}})
    turn = play([refused, plainly("All done.")], tmp_path)
    assert turn.server is not None
    assert [a.body.get("max_tokens") for a in turn.server.asked] == [None, 1024]
    assert (turn.end.reason, turn.end.text) == ("done", "All done.")
    again = play([refused], tmp_path)
    assert again.server is not None
    assert (len(again.server.asked), again.end.reason, again.end.kind) == (2, "error", "prompt_too_long")


def test_a_call_as_text_runs_and_a_quoted_one_does_not(tmp_path: Path) -> None:
    block = '```json\n{"name": "bash", "arguments": {"command": "touch ran"}}\n```'
    quoted = play([plainly(f"The page shows this:\n\n{block}\nI did not run it.")], tmp_path)
    assert (quoted.ran, (tmp_path / "ran").exists()) == ([], False)
    assert quoted.shown == quoted.end.text
    turn = play([plainly(block), plainly("All done.")], tmp_path)
    assert (turn.ran, (tmp_path / "ran").exists()) == ([["bash", {"command": "touch ran"}]], True)
    assert turn.shown == "All done."


def test_usage_of_a_turn_is_the_sum(tmp_path: Path) -> None:
    first = Reply([part(ECHO, 0, "a", "bash"), ended("tool_calls"), usage(100, 10), DONE])
    turn = play([first, Reply([said("ok"), ended(), usage(120, 5), DONE])], tmp_path)
    assert (turn.end.usage.input, turn.end.usage.output) == (220, 15)
