"""Any server that speaks OpenAI's chat completions, streamed.

The stream is read as bytes, not as the SDK's objects: a malformed chunk, JSON in place of events, an answer that stops
in the middle are things to be told apart, and the SDK's parser raises or guesses at each. The SDK is imported when the
first request is made (it costs about half a second), in a thread.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from agent.models import wire
from agent.models.assembly import Assembly, Delta
from agent.models.base import ModelOptions, config_error, usage_of
from agent.models.connection import Response
from agent.models.curtain import Curtain
from agent.models.remote import RemoteModel
from agent.models.sse import ChunkReader
from agent.models.text_calls import lift_calls
from runtime.events import TextDelta, ToolCallDelta
from runtime.model import Answer, ModelError, ModelErrorKind, ModelEvent, ModelView
from transcripts.records import Assistant

DEFAULT_URL = "https://api.openai.com/v1"
GRACE = 3.0
"""Seconds to wait after the finish reason for usage and the end of the stream; some servers keep the line open."""
KEEP_ALIVES = 4
"""How many timeouts long a server may send nothing but signs of life; some do so while a request waits in a queue."""


def create(name: str, options: ModelOptions) -> OpenAIChat:
    """The model of that name at `options.base_url`. Raises ModelError where name or key is missing."""
    return OpenAIChat(name, checked(name, options, "openai_chat"))


def checked(name: str, options: ModelOptions, provider: str) -> ModelOptions:
    """The options, if they are enough to ask OpenAI or a server like it. Raises ModelError CONFIG or AUTH."""
    if not name:
        raise config_error(f"Which model? Name one after the colon, for example {provider}:gpt-5.")
    if not options.api_key and not options.base_url:
        words = "There is no key for OpenAI. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none."
        raise ModelError(ModelErrorKind.AUTH, words)
    return options


class OpenAIChat(RemoteModel):
    """A model behind chat completions. `extra` of the options: tool_protocol ("native" or "text"), body (more fields of
    each request), label (what to call the provider in `name`)."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, options, provider="openai_chat", default_url=DEFAULT_URL)
        self._habits = wire.habits_of(self.profile, options)
        self._taken: set[str] | None = None

    @property
    def tool_protocol(self) -> str:
        """native, or text where the model writes its calls as ```json blocks."""
        return self._habits.tool_protocol

    async def stream(self, view: ModelView) -> AsyncGenerator[ModelEvent]:
        """Streams the answer to one view; see runtime.model.Model."""
        if self._taken is None:
            self._taken = wire.call_ids(view.messages)
        while True:
            habits = self._habits
            try:
                async with aclosing(self._once(view, habits)) as events:
                    async for event in events:
                        yield event
                return
            except ModelError as error:
                self._habits = wire.adapt(habits, error)
                if self._habits is habits or error.partial is not None:
                    raise

    async def _once(self, view: ModelView, habits: wire.Habits) -> AsyncGenerator[ModelEvent]:
        started = time.monotonic()
        assembly = Assembly(self.name, self._taken or set(), self.profile.think_open, habits.gives_back)
        reader, curtain = ChunkReader(), Curtain(loose=habits.tool_protocol == "text")
        body = wire.body(self.model, view, self.options, habits)
        try:
            async with self.connection.open(_open, body) as response:
                self.begin_pricing()
                while data := await _more(response, assembly, reader):
                    for event in _events(reader.feed(data), assembly, curtain):
                        yield event
            for event in _events(reader.close(), assembly, curtain):
                yield event
            for event in _behind(curtain, assembly.end(reader.done)):
                yield event
            message = _with_calls(assembly.answer(), view, habits)
            rest = curtain.close()
            if rest and not message.calls:
                yield TextDelta(rest)
            usage = await self.priced(usage_of(assembly.usage, self.name, started))
            yield Answer(message, usage)
        except ModelError as error:
            raise assembly.failed(error) from error.__cause__


def _events(chunks: Iterator[Mapping[str, Any]], assembly: Assembly, curtain: Curtain) -> Iterator[Delta]:
    try:
        for chunk in chunks:
            yield from _behind(curtain, assembly.feed(chunk))
    except ModelError:
        if not assembly.finish:
            raise


def _behind(curtain: Curtain, events: Iterable[Delta]) -> Iterator[Delta]:
    """The events, text that may be a call held back; how long it has grown is told instead."""
    for event in events:
        if not isinstance(event, TextDelta):
            yield event
            continue
        if shown := curtain.feed(event.text):
            yield TextDelta(shown)
        if curtain.held:
            yield ToolCallDelta("", len(curtain.held))


def _with_calls(message: Assistant, view: ModelView, habits: wire.Habits) -> Assistant:
    names = [t["function"]["name"] for t in view.tools]
    return lift_calls(message, names, loose=habits.tool_protocol == "text")


async def _more(response: Response, assembly: Assembly, reader: ChunkReader) -> bytes:
    """The next bytes, b"" once the answer is complete. What goes wrong after the finish reason does not matter."""
    if reader.done:
        return b""
    if not assembly.finish:
        if time.monotonic() - reader.last > KEEP_ALIVES * response.timeout:
            raise ModelError(ModelErrorKind.TIMEOUT, "The server stalled: it sends signs of life and no answer.")
        return await response.read()
    try:
        return await response.read(GRACE)
    except ModelError:
        return b""


def _open(client: Any, body: Mapping[str, Any]) -> Any:
    """The SDK walks through every message it is handed at each request (0.16 ms each); an extra body it takes as is."""
    import openai

    rest = {k: v for k, v in body.items() if k != "model"}
    return client.chat.completions.with_streaming_response.create(
        model=body["model"], messages=openai.omit, stream=True, extra_body=rest
    )
