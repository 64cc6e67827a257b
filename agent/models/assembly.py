"""Builds one answer from the chunks of a chat-completions stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.models.slots import CallSlots
from agent.models.thinking import ThinkingSplitter
from runtime.errors import classify_model_error
from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta, Waiting
from runtime.model import ModelError, ModelErrorKind
from transcripts.records import Assistant, clean

K = ModelErrorKind

FINISHES = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "sensitive": "content_filter",
}
"""Finish reasons under which calls are not run; every other one (stop, eos, end_turn, STOP ...) is an ordinary end."""

FAILED = {
    "error": K.SERVER,
    "network_error": K.SERVER,
    "insufficient_system_resource": K.SERVER,
    "abort": K.SERVER,
    "model_context_window_exceeded": K.PROMPT_TOO_LONG,
}
"""Finish reasons that are errors in other words (OpenRouter, z.ai, DeepSeek, SGLang)."""

Delta = TextDelta | ReasoningDelta | ToolCallDelta | Waiting

NOT_RUN = {
    "length": "This call was not run: the answer reached the output limit. Say less in one answer.",
    "content_filter": "This call was not run: the provider's content filter ended the answer.",
}


@dataclass
class Assembly:
    """One answer in the making. `model` is its name for the record; `taken` the call ids of the conversation;
    `gives_back` the fields of its thinking that the provider wants to see again.

    `usage` is the last usage object seen, `finish` the finish reason as the server said it ("" until then).
    """

    model: str
    taken: set[str] = field(default_factory=set)
    already_thinking: bool = False
    gives_back: frozenset[str] = frozenset()
    usage: Mapping[str, Any] | None = None
    finish: str = ""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    details: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._slots = CallSlots(self.taken)
        self._splitter = ThinkingSplitter(self.already_thinking)

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        """Takes one chunk in; yields what is to be shown. Raises ModelError where the chunk carries an error."""
        if chunk.get("error"):
            raise self.failed(classify_model_error(_status(chunk["error"]), body=chunk["error"]))
        self._note_usage(chunk)
        yield from _progress(chunk.get("prompt_progress"))
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            delta = choice.get("message") if not self.text and not self._slots.slots else None
        if isinstance(delta, Mapping):
            yield from self._delta(delta)
        elif isinstance(choice.get("text"), str):
            yield from self._say(choice["text"])
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish = reason

    def failed(self, error: ModelError) -> ModelError:
        """The error with what had already come."""
        error.partial = self.partial()
        return error

    def partial(self, finish: str = "cut") -> Assistant | None:
        """What has come so far as a marked answer without calls; None where there is no text."""
        for thinking, piece in self._splitter.close():
            (self.reasoning if thinking else self.text).append(piece)
        text = clean("".join(self.text))
        if not text.strip():
            return None
        return Assistant(text, reasoning=clean("".join(self.reasoning)), finish=finish, model=self.model)

    def end(self, done: bool) -> Iterator[TextDelta | ReasoningDelta]:
        """Shows what was held back. Raises ModelError where the stream broke off: neither a finish reason nor, for
        plain text, the [DONE] that ends a stream (`done`)."""
        yield from self._show(self._splitter.close())
        if not self.finish and not (done and self.text and not self._slots.slots):
            word = "The stream ended in the middle of the answer." if self._begun() else "The server closed the stream."
            raise self.failed(ModelError(K.NETWORK if self._begun() or not done else K.EMPTY, word))

    def answer(self) -> Assistant:
        """The whole answer. Raises ModelError where it is empty or its finish reason is an error."""
        reason = self.finish.lower()
        if reason in FAILED:
            raise self.failed(ModelError(FAILED[reason], f"The server ended the answer with {self.finish!r}."))
        finish = FINISHES.get(reason, "stop")
        calls = tuple(self._slots.calls())
        text = clean("".join(self.text))
        if not calls and not text.strip():
            raise self.failed(self._nothing(finish))
        if finish in NOT_RUN:
            calls = tuple(replace(c, problem=NOT_RUN[finish]) for c in calls)
        elif calls:
            finish = "tool_calls"
        return Assistant(text, calls, clean("".join(self.reasoning)), finish, self.model, self._extra())

    def _extra(self) -> dict[str, Any]:
        found = {"reasoning_content": clean("".join(self.reasoning)), "reasoning_details": self.details}
        wire = {name: value for name, value in found.items() if value and name in self.gives_back}
        return {"wire": wire} if wire else {}

    def _begun(self) -> bool:
        return bool(self.text or self.reasoning or self._slots.slots)

    def _nothing(self, finish: str) -> ModelError:
        if finish == "length" and not self.reasoning:
            return ModelError(
                K.PROMPT_TOO_LONG, "The model had no room left to answer (finish reason length, no text)."
            )
        if finish == "length":
            return ModelError(K.OUTPUT_LIMIT, "The model used its whole output limit for thinking and said nothing.")
        if finish == "content_filter":
            return ModelError(K.UNKNOWN, "The provider's content filter stopped the answer before it began.")
        what = "only thinking, no answer" if self.reasoning else "no text and no tool call"
        return ModelError(K.EMPTY, f"The model sent an empty response: {what}.")

    def _note_usage(self, chunk: Mapping[str, Any]) -> None:
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, Mapping) else None)
        if isinstance(usage, Mapping):
            self.usage = usage
        timings = chunk.get("timings")
        if self.usage is None and isinstance(timings, Mapping):
            read = (timings.get("prompt_n") or 0) + (timings.get("cache_n") or 0)
            self.usage = {"prompt_tokens": read, "completion_tokens": timings.get("predicted_n")}

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            self.reasoning.append(thought)
            yield ReasoningDelta(clean(thought))
        if isinstance(delta.get("reasoning_details"), list):
            self.details += delta["reasoning_details"]
        yield from self._content(delta.get("content"))
        if isinstance(delta.get("refusal"), str):
            yield from self._say(delta["refusal"])
        calls = delta.get("tool_calls") or delta.get("function_call") or ()
        for fragment in [calls] if isinstance(calls, Mapping) else calls:
            if isinstance(fragment, Mapping):
                yield ToolCallDelta(*self._slots.feed(fragment))

    def _content(self, content: Any) -> Iterator[TextDelta | ReasoningDelta]:
        if isinstance(content, str):
            yield from self._say(content)
        elif isinstance(content, list):
            for part in content:
                yield from self._part(part)

    def _part(self, part: Any) -> Iterator[TextDelta | ReasoningDelta]:
        if isinstance(part, str):
            yield from self._say(part)
        elif isinstance(part, Mapping) and part.get("type") in ("thinking", "reasoning"):
            thought = part.get("thinking") or part.get("text") or ""
            if isinstance(thought, list):
                thought = "".join(p.get("text", "") for p in thought if isinstance(p, Mapping))
            self.reasoning.append(thought)
            yield ReasoningDelta(clean(thought))
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield from self._say(part["text"])

    def _say(self, text: str) -> Iterator[TextDelta | ReasoningDelta]:
        yield from self._show(self._splitter.feed(text))

    def _show(self, pieces: Iterator[tuple[bool, str]]) -> Iterator[TextDelta | ReasoningDelta]:
        for thinking, piece in pieces:
            if piece:
                (self.reasoning if thinking else self.text).append(piece)
                yield ReasoningDelta(clean(piece)) if thinking else TextDelta(clean(piece))


def _progress(progress: Any) -> Iterator[Waiting]:
    """llama.cpp tells how far it has read the prompt, where it was asked to."""
    if isinstance(progress, Mapping):
        done, total = progress.get("processed"), progress.get("total")
        if isinstance(done, int) and isinstance(total, int) and done < total:
            yield Waiting("reading the prompt", done, total)


def _status(error: Any) -> int | None:
    code = error.get("code") if isinstance(error, Mapping) else None
    try:
        return int(code) if code is not None and 400 <= int(code) < 600 else None
    except (TypeError, ValueError):
        return None
