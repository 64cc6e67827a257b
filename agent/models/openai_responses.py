"""OpenAI's Responses API: the one in which a thinking model keeps its thoughts from step to step.

The reasoning items of an answer go into the record as they came (encrypted) and back with the next request; nothing is
stored at the provider's.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from agent.models import responses_wire
from agent.models.assembly import NOT_RUN, Delta
from agent.models.base import ModelOptions, usage_of
from agent.models.openai_chat import DEFAULT_URL, checked
from agent.models.remote import RemoteModel
from agent.models.slots import CallSlots
from agent.models.sse import ChunkReader
from agent.models.wire import call_ids
from runtime.errors import classify_model_error
from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta
from runtime.model import Answer, ModelError, ModelErrorKind, ModelEvent, ModelView
from transcripts.records import Assistant, clean

K = ModelErrorKind
OPTIONAL = ("reasoning", "include", "temperature", "store", "tool_choice", "prompt_cache_key")
"""Fields that a server may not know, and that a request can do without."""


def create(name: str, options: ModelOptions) -> OpenAIResponses:
    """The model of that name. Raises ModelError where name or key is missing."""
    return OpenAIResponses(name, checked(name, options, "openai_responses"))


class OpenAIResponses(RemoteModel):
    """A model behind the Responses API. `extra` of the options: body (more fields of each request)."""

    tool_protocol = "native"

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, options, provider="openai_responses", default_url=DEFAULT_URL)
        self._without = frozenset(self.profile.without)
        self._taken: set[str] | None = None

    async def stream(self, view: ModelView) -> AsyncGenerator[ModelEvent]:
        """Streams the answer to one view; see runtime.model.Model."""
        if self._taken is None:
            self._taken = call_ids(view.messages)
        while True:
            try:
                async with aclosing(self._once(view)) as events:
                    async for event in events:
                        yield event
                return
            except ModelError as error:
                refused = self._refused(error)
                if not refused or error.partial is not None:
                    raise
                self._without |= {refused}

    def _refused(self, error: ModelError) -> str:
        """The field that a refusal names and that can be left out; "" where there is none."""
        if error.status not in (400, 422) or error.kind in (K.PROMPT_TOO_LONG, K.INPUT_PLUS_OUTPUT_TOO_LONG):
            return ""
        text = error.message.lower()
        return next((f for f in OPTIONAL if f in text and f not in self._without), "")

    async def _once(self, view: ModelView) -> AsyncGenerator[ModelEvent]:
        started = time.monotonic()
        said = Said(self.name, self._taken or set())
        reader = ChunkReader()
        effort = self.options.effort or self.profile.effort
        body = responses_wire.body(self.model, view, self.options, effort, self._without)
        try:
            async with self.connection.open(_open, body) as response:
                self.begin_pricing()
                while not said.finish and (data := await response.read()):
                    for chunk in reader.feed(data):
                        for event in said.feed(chunk):
                            yield event
            if not said.finish:
                for chunk in reader.close():
                    for event in said.feed(chunk):
                        yield event
            message = said.answer()
            usage = await self.priced(usage_of(said.usage, self.name, started))
            yield Answer(message, usage)
        except ModelError as error:
            error.partial = error.partial or said.partial()
            raise


@dataclass
class Said:
    """One answer in the making. `finish` is set by the event that ends it."""

    model: str
    taken: set[str] = field(default_factory=set)
    usage: Mapping[str, Any] | None = None
    finish: str = ""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    output: list[Mapping[str, Any]] = field(default_factory=list)
    _writing: dict[str, tuple[str, int]] = field(default_factory=dict)

    def feed(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Takes one event in; yields what is to be shown. Raises ModelError where the event is an error."""
        kind = str(event.get("type") or "")
        piece = event.get("delta")
        if kind in ("response.output_text.delta", "response.refusal.delta") and isinstance(piece, str):
            self.text.append(piece)
            yield TextDelta(clean(piece))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self.reasoning.append(str(piece))
            yield ReasoningDelta(clean(str(piece)))
        elif kind == "response.output_item.added":
            item = event.get("item") or {}
            if item.get("type") == "function_call":
                self._writing[str(item.get("id"))] = (str(item.get("name")), 0)
        elif kind == "response.function_call_arguments.delta":
            name, size = self._writing.get(str(event.get("item_id")), ("", 0))
            self._writing[str(event.get("item_id"))] = (name, size + len(str(piece)))
            yield ToolCallDelta(name, size + len(str(piece)))
        elif kind == "response.output_item.done" and isinstance(event.get("item"), Mapping):
            self.output.append(event["item"])
        else:
            self._end(kind, event)

    def partial(self) -> Assistant | None:
        """What has come, marked; None where there is no text."""
        text = clean("".join(self.text))
        return Assistant(text, finish="cut", model=self.model) if text.strip() else None

    def answer(self) -> Assistant:
        """The whole answer. Raises ModelError where the stream broke off or the answer is empty."""
        if not self.finish:
            raise ModelError(K.NETWORK, "The stream ended in the middle of the answer.")
        slots = CallSlots(self.taken)
        for item in self.output:
            if item.get("type") == "function_call":
                slots.feed({"id": item.get("call_id"), "function": item})
        calls = tuple(slots.calls())
        text = clean("".join(self.text))
        if not calls and not text.strip():
            raise self._nothing()
        finish = self.finish
        if finish in NOT_RUN:
            calls = tuple(replace(c, problem=NOT_RUN[finish]) for c in calls)
        elif calls:
            finish = "tool_calls"
        thoughts = [i for i in self.output if i.get("type") == "reasoning" and i.get("encrypted_content")]
        extra = {"wire": {responses_wire.ITEMS: thoughts}} if thoughts else {}
        return Assistant(text, calls, clean("".join(self.reasoning)), finish, self.model, extra)

    def _end(self, kind: str, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        response = response if isinstance(response, Mapping) else event
        if kind == "error" or kind == "response.failed" or event.get("error"):
            raise classify_model_error(None, body=response.get("error") or dict(event))
        if kind not in ("response.completed", "response.incomplete", "response.done") and "output" not in event:
            return
        self.usage = response.get("usage") or self.usage
        if response.get("output"):
            self._take_all(response["output"])
        reason = (response.get("incomplete_details") or {}).get("reason", "")
        self.finish = {"content_filter": "content_filter"}.get(reason, "length") if reason else "stop"

    def _take_all(self, output: list[Mapping[str, Any]]) -> None:
        """The final list is the truth; its text only counts where none was streamed."""
        self.output = [i for i in output if isinstance(i, Mapping)]
        if not self.text:
            parts = [p for i in self.output if i.get("type") == "message" for p in i.get("content") or ()]
            self.text = [p.get("text") or p.get("refusal") or "" for p in parts]

    def _nothing(self) -> ModelError:
        if self.finish == "length":
            return ModelError(K.OUTPUT_LIMIT, "The model used its whole output limit for thinking and said nothing.")
        return ModelError(K.EMPTY, "The model sent an empty response: no text and no tool call.")


def _open(client: Any, body: Mapping[str, Any]) -> Any:
    """The input goes as extra body, as in openai_chat: the SDK would walk through all of it."""
    import openai

    rest = {k: v for k, v in body.items() if k != "model"}
    return client.responses.with_streaming_response.create(
        model=body["model"], input=openai.omit, stream=True, extra_body=rest
    )
