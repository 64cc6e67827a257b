"""`refold models`: what can be used, from a real server on loopback."""

from __future__ import annotations

import json

import pytest

from tests.support.command import refold
from tests.support.loopback import Quiet, listening


class Lists(Quiet):
    """Answers what an OpenAI-compatible server says of its models."""

    def do_GET(self) -> None:
        known = {"object": "list", "data": [{"id": "big-one", "object": "model", "max_model_len": 65_536}]}
        body = json.dumps(known).encode() if self.path == "/v1/models" else b"{}"
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def url():
    with listening(Lists) as port:
        yield f"http://127.0.0.1:{port}/v1"


def test_a_server_is_listed_with_its_models_and_their_windows(url, home, tmp_path):
    env = {"OPENAI_BASE_URL": url, "REFOLD_MODEL": "openai_chat:big-one"}
    done = refold("models", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert f"({url})" in done.stdout.splitlines()[0]
    assert "openai_chat:big-one" in done.stdout
    assert "65,536 tokens  (in use)" in done.stdout
    done = refold("models", "--json", cwd=tmp_path, env=env)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"model": "openai_chat:big-one", "window": 65_536, "at": url} in rows


def test_a_server_that_does_not_answer_is_named(home, tmp_path):
    done = refold("models", cwd=tmp_path, env={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert "nobody answers at http://127.0.0.1:9/v1" in done.stdout
