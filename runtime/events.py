"""What the loop tells while it works. A face is one `match` over these; nothing here is not yet on disk, except
deltas, which are what is being said right now."""

from __future__ import annotations

from dataclasses import dataclass, field

from transcripts.records import Assistant, Checkpoint, ToolCall, ToolResult, Usage


@dataclass(frozen=True)
class TurnStarted:
    """The person's message is on disk."""

    text: str
    seq: int


@dataclass(frozen=True)
class Steered:
    """A line typed while the turn ran has been handed to the model."""

    text: str
    seq: int


@dataclass(frozen=True)
class RequestSent:
    """A request is on its way: its number within the turn, its estimate and the window, in tokens."""

    step: int
    estimate: int
    window: int


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's thinking."""

    text: str


@dataclass(frozen=True)
class ToolCallDelta:
    """A call is being written: its name (once known) and how many characters of arguments have come."""

    name: str
    chars: int


@dataclass(frozen=True)
class Waiting:
    """The model says what it is doing before it answers (a local model that reads the prompt): done of total tokens."""

    what: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True)
class AnswerRecorded:
    """One answer of the model is on disk, with what it cost."""

    message: Assistant
    usage: Usage
    seq: int


@dataclass(frozen=True)
class ToolStarted:
    """A call begins; for a call with effects this is durable."""

    call: ToolCall
    effect: str
    title: str


@dataclass(frozen=True)
class ToolProgress:
    """A running call has something to show: text is new output."""

    call: ToolCall
    text: str


@dataclass(frozen=True)
class ToolFinished:
    """A call's one result is on disk."""

    call: ToolCall
    result: ToolResult
    seq: int


@dataclass(frozen=True)
class TaskEvent:
    """Something happened in a sub-agent: `call` is the call it works for, `task` the id of its own log. `reads`: it
    may only read; `doing`: what it does now and what it has cost, in one line for the person."""

    call: ToolCall
    task: str
    event: Event
    reads: bool = False
    doing: str = ""


@dataclass(frozen=True)
class Compacting:
    """A fold begins: why, at which estimate, against which trigger (tokens)."""

    cause: str
    estimate: int
    trigger: int


@dataclass(frozen=True)
class Compacted:
    """A fold was committed."""

    checkpoint: Checkpoint
    line: str


@dataclass(frozen=True)
class CompactFailed:
    """A fold did not help; says what the view is made of, in tokens."""

    why: str
    floor: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Retrying:
    """A request failed in a way that may pass: what happened, and the wait in seconds before attempt `attempt`."""

    reason: str
    wait: float
    attempt: int
    attempts: int


@dataclass(frozen=True)
class Notice:
    """Something the person should know: level info, warning or error."""

    text: str
    level: str = "info"


@dataclass(frozen=True)
class TurnEnded:
    """The turn is over. `reason`: done, interrupted, error, limit, denied, stuck. `kind`: the ModelErrorKind of an
    error. `text`: the final answer (also a partial one)."""

    reason: str
    text: str = ""
    message: str = ""
    kind: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    denials: tuple[str, ...] = ()


Event = (
    TurnStarted | Steered | RequestSent | TextDelta | ReasoningDelta | ToolCallDelta | Waiting | AnswerRecorded
    | ToolStarted | ToolProgress | ToolFinished | TaskEvent | Compacting | Compacted | CompactFailed | Retrying | Notice
    | TurnEnded
)  # fmt: skip
