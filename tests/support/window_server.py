"""A server that truly enforces a window: real HTTP on loopback, streaming, strict about the shape of a request.

It plays a list of answers, one a request for a step; requests for notes (tool_choice none) get `notes` and use none up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runtime.context.shape import problems
from tests.support.loopback import Quiet, listening


@dataclass
class WindowServer:
    """What the server holds and what it saw. `chars_per_token` is how it counts; `bodies` the raw request bodies it
    accepted for steps, `refused` the token counts it turned away."""

    answers: list[dict[str, Any]]
    window: int = 8_000
    chars_per_token: float = 4.0
    notes: str | None = "Notes: the files were read in order; nothing was decided yet; go on with the next file."
    say_limit: bool = True
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    notes_asked: list[bytes] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    served: int = 0

    def tokens(self, body: dict[str, Any]) -> int:
        """How many tokens the server counts in a request."""
        text = json.dumps([body.get("messages"), body.get("tools")], ensure_ascii=False)
        return int(len(text) / self.chars_per_token)

    def answer(self, raw: bytes) -> tuple[int, dict[str, Any]]:
        """(status, answer or error) for a request."""
        body = json.loads(raw)
        messages = [m for m in body["messages"] if m["role"] != "system"]
        wrong = problems(messages)
        if wrong:
            self.malformed += wrong
            return 400, {"error": {"message": wrong[0], "type": "invalid_request_error"}}
        size = self.tokens(body)
        if size > self.window:
            self.refused.append(size)
            limit = (
                f"This model's maximum context length is {self.window} tokens. "
                f"However, your messages resulted in {size} tokens."
            )
            message = (
                limit
                if self.say_limit
                else "The prompt is longer than the model can take: maximum context length exceeded."
            )
            return 400, {
                "error": {"message": message, "code": "context_length_exceeded", "type": "invalid_request_error"}
            }
        if body.get("tool_choice") == "none":
            self.notes_asked.append(raw)
            return 200, {"text": self.notes or "", "tokens": size}
        self.bodies.append(raw)
        entry = self.answers[min(self.served, len(self.answers) - 1)]
        self.served += 1
        return 200, {**entry, "tokens": size}


def sse(entry: dict[str, Any], model: str) -> Iterator[bytes]:
    """An answer as server-sent events."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        data = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, **more}
        return b"data: " + json.dumps(data).encode() + b"\n\n"

    if entry.get("text"):
        yield chunk({"role": "assistant", "content": entry["text"]})
    for n, call in enumerate(entry.get("calls", [])):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        yield chunk({"tool_calls": [{"index": n, "id": call["id"], "type": "function", "function": function}]})
    yield chunk({}, entry.get("finish") or ("tool_calls" if entry.get("calls") else "stop"))
    usage = {"prompt_tokens": entry["tokens"], "completion_tokens": 20, "total_tokens": entry["tokens"] + 20}
    yield (
        b"data: "
        + json.dumps(
            {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [], "usage": usage}
        ).encode()
        + b"\n\n"
    )
    yield b"data: [DONE]\n\n"


@contextmanager
def serving(state: WindowServer) -> Iterator[WindowServer]:
    """The server, on a free port of the loopback address, for as long as the block runs."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            status, entry = state.answer(raw)
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            if status == 200:
                for piece in sse(entry, "m"):
                    self.wfile.write(piece)
            else:
                self.wfile.write(json.dumps(entry).encode())

    with listening(Handler) as port:
        state.url = f"http://127.0.0.1:{port}/v1"
        yield state
