"""A model server for tests: real HTTP on loopback that plays what it is told to, however odd, and judges each request.

    with serving({"m": [Reply(events=[said("Hello."), ended(), DONE])]}) as server:
        make_model("openai_chat:m", base_url=server.url)

The n-th request that names a model gets that model's n-th reply, the last one for ever after. `strict` refuses what the
strictest providers refuse, with HTTP 400 and without using a reply up.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.loopback import Quiet, listening

DONE = "data: [DONE]\n\n"


@dataclass(frozen=True)
class Pause:
    """Silence, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """The connection is torn down (TCP reset)."""


@dataclass(frozen=True)
class Stall:
    """Nothing more comes, and the connection stays open until the client leaves."""

    comments: bool = False


Event = Mapping[str, Any] | str | bytes | Pause | Reset | Stall
"""A chunk (sent as one event), raw text, raw bytes, or something that happens to the connection."""


@dataclass(frozen=True)
class Reply:
    """One answer. `body` is sent as it is (text, bytes) or as JSON; else `events` are streamed."""

    events: Sequence[Event] = ()
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stall: bool = False
    """Takes the request and never answers."""


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    return {
        "id": "x",
        "choices": [{"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}],
        **more,
    }


def said(text: str, finish: str | None = None) -> dict[str, Any]:
    """A piece of text."""
    return chunk({"content": text}, finish)


def ended(finish: str = "stop") -> dict[str, Any]:
    """The finish reason."""
    return chunk({}, finish)


def part(
    arguments: Any = None, index: int | None = 0, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """A fragment of a tool call; None leaves a field out."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    fields = {k: v for k, v in (("index", index), ("id", id)) if v is not None}
    return chunk({"tool_calls": [{**fields, "function": function}]})


def usage(prompt: int, written: int, **details: Any) -> dict[str, Any]:
    """The chunk that reports tokens."""
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": written, **details}}


def plainly(text: str) -> Reply:
    """An ordinary streamed answer."""
    return Reply([said(text), ended(), usage(11, 7), DONE])


@dataclass
class Asked:
    """One request as it came."""

    model: str
    raw: bytes
    body: dict[str, Any]
    refusals: list[str]
    headers: dict[str, str]
    at: float
    path: str = ""


@dataclass
class ProviderServer:
    """What is served and what was asked. `gets` are answers to GET by path; `left` is set when a client went away."""

    replies: Mapping[str, Sequence[Reply]]
    strict: bool = True
    gets: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    got: list[str] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _served: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The URL without /v1."""
        return self.url.removesuffix("/v1")

    def of(self, model: str) -> list[Asked]:
        """The requests that named a model."""
        return [a for a in self.asked if a.model == model]

    def reply(self, asked: Asked) -> Reply:
        """What a request gets."""
        with self._lock:
            self.asked.append(asked)
            if asked.refusals and self.strict:
                error = {"message": asked.refusals[0], "type": "invalid_request_error", "param": "messages"}
                return Reply(status=400, body={"error": error})
            replies = self.replies.get(asked.model)
            if not replies:
                return Reply(status=404, body={"error": {"message": f"no model {asked.model}"}})
            number = self._served.get(asked.model, 0)
            self._served[asked.model] = number + 1
            return replies[min(number, len(replies) - 1)]


def refusals(body: Mapping[str, Any]) -> list[str]:
    """What a strict provider finds wrong with the messages of a request."""
    out: list[str] = []
    open_calls: list[str] = []
    if re.search("[\ud800-\udfff]", json.dumps(body, ensure_ascii=False)):
        out.append("the body holds a lone surrogate")
    for n, message in enumerate(body.get("messages") or ()):
        role, content = message.get("role"), message.get("content")
        where = f"messages.{n} ({role})"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                out.append(f"{where} answers a call that is not open: {message.get('tool_call_id')!r}")
            else:
                open_calls.remove(message["tool_call_id"])
            out += [] if isinstance(content, (str, list)) else [f"{where} has no content"]
            continue
        out += [f"{where} comes before the result of {call}" for call in open_calls]
        open_calls = []
        if role == "assistant":
            calls = message.get("tool_calls") or []
            out += [f"{where} says nothing"] if not calls and not content else []
            out += [f"{where}: {wrong}" for wrong in _wrong_calls(calls)]
            open_calls = [c.get("id") for c in calls]
        elif role in ("system", "user", "developer"):
            out += [] if content else [f"{where} is empty"]
        else:
            out.append(f"{where}: unknown role")
    return out + [f"the result of {call} is missing" for call in open_calls]


def _wrong_calls(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    ids = [c.get("id") for c in calls]
    out = [] if all(ids) and len(set(ids)) == len(ids) else [f"ids missing or twice: {ids}"]
    for call in calls:
        function = call.get("function") or {}
        out += [] if function.get("name") else ["a call without a name"]
        try:
            fine = isinstance(json.loads(function.get("arguments")), dict)
        except (TypeError, ValueError):
            fine = False
        out += [] if fine else [f"arguments that are no JSON object: {function.get('arguments')!r}"]
    return out


@contextmanager
def serving(replies: Mapping[str, Sequence[Reply]], **options: Any) -> Iterator[ProviderServer]:
    """The server on a free loopback port, for as long as the block runs."""
    state = ProviderServer(replies, **options)

    class Handler(_Handler):
        server_state = state

    with listening(Handler, state.closing.set) as port:
        state.url = f"http://127.0.0.1:{port}/v1"
        yield state


class _Handler(Quiet):
    server_state: ProviderServer

    def do_GET(self) -> None:
        state = self.server_state
        state.got.append(self.path)
        found = state.gets.get(self.path)
        self._whole(Reply(status=200 if found is not None else 404, body=found if found is not None else {}))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw)
        state = self.server_state
        if not self.path.startswith("/v1/"):
            state.got.append(self.path)
            found = state.gets.get(self.path)
            self._whole(Reply(status=200 if found is not None else 404, body=found if found is not None else {}))
            return
        wrong = refusals(body) if "messages" in body else []
        asked = Asked(body.get("model", ""), raw, body, wrong, dict(self.headers), time.monotonic(), self.path)
        reply = state.reply(asked)
        if reply.stall:
            self._wait(False)
        elif reply.body is not None:
            self._whole(reply)
        else:
            self._stream(reply)

    def _whole(self, reply: Reply) -> None:
        raw = reply.body if isinstance(reply.body, (bytes, str)) else json.dumps(reply.body)
        data = raw.encode() if isinstance(raw, str) else raw
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), "Connection": "close"}
        for name, value in {**headers, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        self.send_response(reply.status)
        headers = {"Content-Type": "text/event-stream", "Connection": "close"}
        for name, value in {**headers, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        try:
            for event in reply.events:
                if isinstance(event, Reset):
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    return
                self._send(event)
        except OSError:
            self.server_state.left.set()

    def _send(self, event: Event) -> None:
        if isinstance(event, Pause):
            time.sleep(event.seconds)
        elif isinstance(event, Stall):
            self._wait(event.comments)
        else:
            data = event if isinstance(event, (bytes, str)) else f"data: {json.dumps(event)}\n\n"
            self.wfile.write(data.encode() if isinstance(data, str) else data)
            self.wfile.flush()

    def _wait(self, comments: bool) -> None:
        self.connection.settimeout(0.05)
        while not self.server_state.closing.is_set():
            try:
                if comments:
                    self.wfile.write(b": still here\n\n")
                if self.connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.server_state.left.set()
