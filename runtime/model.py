"""The seam to a model: one method that streams the answer to one view."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta, Waiting
from transcripts.records import Assistant, Usage


class ModelErrorKind(StrEnum):
    """What went wrong with a request, told apart by what can be done about it."""

    PROMPT_TOO_LONG = "prompt_too_long"
    INPUT_PLUS_OUTPUT_TOO_LONG = "input_plus_output_too_long"
    REQUEST_TOO_LARGE = "request_too_large"
    BAD_MEDIA = "bad_media"
    MALFORMED_HISTORY = "malformed_history"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    SERVER = "server"
    NETWORK = "network"
    TIMEOUT = "timeout"
    EMPTY = "empty"
    OUTPUT_LIMIT = "output_limit"
    CONFIG = "config"
    UNKNOWN = "unknown"


RETRYABLE = frozenset(
    {
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.SERVER,
        ModelErrorKind.NETWORK,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.EMPTY,
    }
)
"""Kinds for which asking the same again can help."""


class ModelError(Exception):
    """A request that failed. `limit`: the true window in tokens where the message names it; `used`: the tokens the
    provider counted; `retry_after`: seconds the provider asked us to wait; `partial`: what had already come."""

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        limit: int | None = None,
        used: int | None = None,
        retry_after: float | None = None,
        partial: Assistant | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.limit = limit
        self.used = used
        self.retry_after = retry_after
        self.partial = partial


@dataclass(frozen=True)
class ModelView:
    """Exactly what one request shows the model.

    `messages` are chat-completions messages without the system prompt; `sha` is the SHA-256 of system, tools and
    messages as canonical JSON, so that a request can be rebuilt from the log and compared. `estimate`: tokens of the
    whole request. The sequence grows at its end only, until the next checkpoint.
    """

    system: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    sha: str = ""
    estimate: int = 0
    checkpoint: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Extra request parameters of this call alone: max_tokens, tool_choice, temperature."""


@dataclass(frozen=True)
class Answer:
    """The end of a stream: the whole answer and what the provider said it cost."""

    message: Assistant
    usage: Usage


ModelEvent = TextDelta | ReasoningDelta | ToolCallDelta | Waiting | Answer


class Model(Protocol):
    """A model that can be asked. `name` is provider:model; `window` its size in tokens and `window_source` who said
    so. `stream` yields deltas and ends with exactly one Answer, or raises ModelError."""

    name: str

    @property
    def window(self) -> int: ...

    @property
    def window_source(self) -> str: ...

    def stream(self, view: ModelView) -> AsyncIterator[ModelEvent]: ...
