"""What stays when the model or the mode changes in the middle of a session, and what is taken up on resume."""

from __future__ import annotations

import json

import pytest

from agent.session import Session
from agent.settings import Settings
from transcripts.records import User


@pytest.fixture
def start(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text(json.dumps({"text": "hello"}) + "\n")
    settings = Settings.load({"model": f"scripted:{script}"}, {"REFOLD_HOME": str(tmp_path / "home")}, tmp_path)
    return lambda **more: Session.start(settings, cwd=tmp_path, **more)


def test_another_model_finds_the_tools_as_they_were(start):
    async def answer(question, choices):
        return "yes"

    with start(ask=answer) as session:
        before = session.toolbox.ctx
        before.seen["/a"], before.state["todo"] = "sha", [{"text": "x", "status": "doing"}]
        session.use_model(session.spec)
        after = session.toolbox.ctx
        assert after is not before
        assert (after.seen, after.state, after.ask, after.cwd) == (before.seen, before.state, answer, before.cwd)


@pytest.mark.parametrize(("chosen", "found"), [("edits", "edits"), ("plan", "plan"), ("yolo", None)])
def test_a_chosen_mode_is_taken_up_on_resume_but_never_the_freest(start, chosen, found):
    with start() as session:
        default = session.permissions.mode
        session.set_mode(chosen)
        session.engine.append(User("hi"))
        ident = session.id
    with start(resume=ident) as again:
        assert again.permissions.mode == (found or default)
