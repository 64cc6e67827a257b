"""The main promise, over real HTTP: a server that enforces its window, one long round, ten windows of results."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent.models import make_model
from agent.session import Session
from agent.settings import Settings
from runtime.events import Compacted, TurnEnded
from tests.support.window_server import WindowServer, serving
from transcripts.log import TranscriptLog

STEPS = 60
WINDOW = 8_000


def reads(count: int) -> list[dict]:
    """So many answers that print one file each, then the last word."""
    calls = [{"id": f"call_{n}", "name": "bash", "arguments": {"command": f"cat f{n}.txt"}} for n in range(count)]
    return [
        *({"text": f"Reading file {n}.", "calls": [c]} for n, c in enumerate(calls)),
        {"text": "All files are read."},
    ]


def body(n: int) -> str:
    """A file of about 1,350 tokens, different from every other."""
    return "".join(f"file {n} line {i}: value {i * n}\n" for i in range(210))


def run(state: WindowServer, tmp_path: Path, prompt: str, **flags: object) -> tuple[list, Session]:
    settings = Settings.load(
        {"model": "openai_chat:m", "api_key": "k", "base_url": state.url, "permission_mode": "yolo", **flags},
        {"REFOLD_HOME": str(tmp_path / "home")},
        tmp_path,
    )
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    for n in range(STEPS):
        (work / f"f{n}.txt").write_text(body(n))

    async def turn() -> tuple[list, Session]:
        session = Session.start(
            settings,
            cwd=work,
            model=make_model(
                "openai_chat:m",
                api_key="k",
                base_url=state.url,
                home=settings.home,
                **({"window": settings.context_window} if settings.context_window else {}),
            ),
        )
        events = [event async for event in session.send(prompt)]
        session.close()
        close = getattr(session.model, "close", None)
        if close:
            await close()
        return events, session

    return asyncio.run(turn())


@pytest.mark.parametrize(
    ("chars_per_token", "say_limit", "told"),
    [(4.0, True, WINDOW), (4.0, True, None), (2.2, True, WINDOW), (2.2, False, WINDOW), (3.0, False, None)],
    ids=["honest", "window unknown", "counts more", "counts more, says nothing", "unknown, says nothing"],
)
def test_sixty_steps_of_ten_windows_in_one_round(tmp_path, chars_per_token, say_limit, told):
    state = WindowServer(reads(STEPS), WINDOW, chars_per_token, say_limit=say_limit)
    with serving(state):
        flags = {"context_window": told} if told else {}
        events, session = run(state, tmp_path, "Read all files. Never write to any of them.", **flags)

    assert [e.message for e in events if isinstance(e, TurnEnded)] == [""]
    assert events[-1] == TurnEnded("done", "All files are read.", steps=STEPS + 1, usage=events[-1].usage)
    assert state.malformed == []
    assert state.served == STEPS + 1
    folds = [e.checkpoint for e in events if isinstance(e, Compacted)]
    assert folds and all(f.tokens_after <= f.tokens_before * 0.75 for f in folds)
    log = TranscriptLog.open(session.path, readonly=True)
    results = [e.record for e in log.entries if e.kind == "tool_result"]
    whole = [log.blobs.get(r.blob).decode() if r.blob else r.text for r in results]
    assert len(results) == STEPS
    assert [text.rstrip("\n") for text in whole] == [body(n).rstrip("\n") for n in range(STEPS)]
    assert sum(map(len, whole)) > 10 * WINDOW * 4


def test_every_request_is_the_head_of_the_next_until_a_checkpoint(tmp_path):
    state = WindowServer(reads(12), 1_000_000)
    with serving(state):
        events, _ = run(state, tmp_path, "Read all files.", context_window=1_000_000)
    assert events[-1].reason == "done"
    assert len(state.bodies) == 13
    for earlier, later in zip(state.bodies, state.bodies[1:], strict=False):
        head = earlier[: earlier.rindex(b"]")]
        assert later.startswith(head)


def test_the_request_for_notes_is_the_last_request_and_one_line_more(tmp_path):
    state = WindowServer(reads(30), WINDOW)
    with serving(state):
        run(state, tmp_path, "Read all files.", context_window=WINDOW)
    assert state.notes_asked
    sent = [_messages(b) for b in state.bodies]
    for asked in map(_messages, state.notes_asked):
        assert max(_shared(asked, b) for b in sent) >= 0.8 * len(asked)


def _messages(raw: bytes) -> bytes:
    return json.dumps(json.loads(raw)["messages"]).encode()


def _shared(a: bytes, b: bytes) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
