"""Against a server that nobody here wrote: llmock breaks the stream on purpose and judges how its client took it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from llmock.testing import LLMockServer

from agent.models import make_model
from runtime.context.engine import ContextEngine
from runtime.crew import Crew
from runtime.events import Retrying, ToolFinished, TurnEnded
from runtime.loop import run_turn
from runtime.retry import RetryPolicy
from tools.base import Toolbox, ToolContext, load_tools
from transcripts.log import TranscriptLog
from transcripts.records import User

ECHO = {"command": "echo one"}


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with LLMockServer() as running:
        yield running


@pytest.fixture
def mock(server: LLMockServer) -> Iterator[LLMock]:
    found = LLMock(server)
    found.reset()
    yield found
    found.reset()


def turn(mock: LLMock, folder: Path, provider: str = "openai_chat", timeout: float = 10.0) -> list[Any]:
    """The events of one turn with bash as its only tool."""
    events: list[Any] = []

    async def run() -> None:
        options = {"base_url": mock.base_url("openai"), "api_key": "k", "home": folder / "home", "timeout": timeout}
        model: Any = make_model(f"{provider}:gpt-4o", **options)
        box = Toolbox(load_tools(("bash",)), ToolContext(folder, folder))
        engine = ContextEngine(TranscriptLog.memory(), system="You help.", specs=box.specs())
        crew = Crew(engine, model, box, retry=RetryPolicy(base=0.06, cap=0.5))
        async for event in run_turn(crew, User("Run the command.")):
            events.append(event)
        await model.close()

    asyncio.run(run())
    assert isinstance(events[-1], TurnEnded)
    return events


def ran(events: list[Any]) -> list[tuple[dict[str, Any], str]]:
    return [(e.call.args, e.result.status) for e in events if isinstance(e, ToolFinished)]


@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses"])
def test_a_call_in_fragments_runs_and_the_turn_ends(provider: str, mock: LLMock, tmp_path: Path) -> None:
    mock.call_tool("bash", ECHO)
    events = turn(mock, tmp_path, provider)
    assert (ran(events), events[-1].reason) == ([(ECHO, "ok")], "done")
    assert events[-1].text
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("fault", ["disconnect", "truncate", "corrupt"])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_stream_that_breaks_is_asked_again(
    provider: str, fault: str, chunks: int, mock: LLMock, tmp_path: Path
) -> None:
    mock.call_tool("bash", ECHO, times=2)
    getattr(mock, fault)(after_chunks=chunks)
    events = turn(mock, tmp_path, provider)
    assert (ran(events), events[-1].reason) == ([(ECHO, "ok")], "done")
    assert len([e for e in events if isinstance(e, Retrying)]) == 1
    mock.assert_resilient(strict=fault != "corrupt")  # it takes a corrupt stream that was sent to its end for used


def test_a_stall_is_timed_out_and_asked_again(mock: LLMock, tmp_path: Path) -> None:
    mock.reply("All done.").stall(after_chunks=1, seconds=30)
    events = turn(mock, tmp_path, timeout=3)
    assert [e.reason.startswith("The server stalled") for e in events if isinstance(e, Retrying)] == [True]
    assert events[-1].reason == "done"
    mock.assert_resilient(strict=True)


def test_retry_after_is_obeyed_each_time(mock: LLMock, tmp_path: Path) -> None:
    mock.rate_limit(times=2, retry_after=0.5)
    events = turn(mock, tmp_path)
    assert [e.wait >= 0.5 for e in events if isinstance(e, Retrying)] == [True, True]
    assert events[-1].reason == "done"
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_what_passes_is_asked_again_with_growing_waits(status: int, mock: LLMock, tmp_path: Path) -> None:
    mock.fail(status, times=2)
    assert turn(mock, tmp_path)[-1].reason == "done"
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_does_not_pass_is_asked_once(status: int, mock: LLMock, tmp_path: Path) -> None:
    mock.fail(status, times=None)
    assert turn(mock, tmp_path)[-1].reason == "error"
    mock.assert_resilient(strict=True)


def test_an_outage_ends_after_a_bounded_number_of_tries(mock: LLMock, tmp_path: Path) -> None:
    mock.outage(status=503)
    events = turn(mock, tmp_path)
    assert (events[-1].reason, events[-1].kind) == ("error", "server")
    mock.assert_resilient()


def test_an_overflow_is_not_sent_again_as_it_was(mock: LLMock, tmp_path: Path) -> None:
    mock.context_overflow()
    turn(mock, tmp_path)
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_broken_call_goes_back_as_a_correction(kind: str, mock: LLMock, tmp_path: Path) -> None:
    mock.break_tool_call(kind)
    events = turn(mock, tmp_path)
    assert ([status for _, status in ran(events)], events[-1].reason) == (["error"], "done")
    mock.assert_resilient(strict=True)
