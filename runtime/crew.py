"""What one turn works with, and what it has to show so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from runtime.context.engine import ContextEngine
from runtime.model import Model
from runtime.retry import RetryPolicy
from tools.base import Toolbox
from transcripts.records import ToolCall, Usage


@dataclass(frozen=True)
class Permit:
    """Whether a call may run; where not, `message` is what the model is told."""

    allow: bool
    message: str = ""


Approve = Callable[[ToolCall], Awaitable[Permit]]


async def allow_all(call: ToolCall) -> Permit:
    """Lets everything run."""
    return Permit(True)


@dataclass(frozen=True)
class Limits:
    """Where a turn stops by itself; 0 means no limit. `max_tokens` counts input and output of the turn, `max_cost` is
    in US dollars. `nudge_at` and `stop_at`: after how many identical calls with identical results the model is told
    so, and after how many the turn ends."""

    max_steps: int = 100
    max_tokens: int = 0
    max_cost: float = 0.0
    max_overflows: int = 3
    max_continuations: int = 3
    nudge_at: int = 3
    stop_at: int = 0


@dataclass(frozen=True)
class Crew:
    """The parts of a session that the loop drives. `steered` hands over lines typed since the last step."""

    engine: ContextEngine
    model: Model
    toolbox: Toolbox
    approve: Approve = allow_all
    steered: Callable[[], list[str]] = list
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass
class Turn:
    """The state of one turn. `text` is the newest answer, `stuck` why it must end, `seen` the calls made so far with
    the result they last gave and how often it was the same."""

    steps: int = 0
    text: str = ""
    continuations: int = 0
    overflows: int = 0
    max_output: int = 0
    asked_less: bool = False
    stuck: str = ""
    usage: Usage = field(default_factory=Usage)
    denials: list[str] = field(default_factory=list)
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def count(self, usage: Usage) -> None:
        """Adds what one request cost; unknown stays unknown unless something is known."""
        self.usage = total(self.usage, usage)

    def over(self, limits: Limits) -> str:
        """Which limit is reached, in words; "" where none is."""
        spent = (self.usage.input or 0) + (self.usage.output or 0)
        if limits.max_tokens and spent >= limits.max_tokens:
            return f"the limit of {limits.max_tokens:,} tokens is reached ({spent:,} used)"
        if limits.max_cost and (self.usage.cost or 0) >= limits.max_cost:
            return f"the limit of ${limits.max_cost:g} is reached (${self.usage.cost or 0:.4f} spent)"
        if limits.max_steps and self.steps >= limits.max_steps:
            return f"the limit of {limits.max_steps} requests is reached"
        return ""


def total(a: Usage, b: Usage) -> Usage:
    """The sum of two usages; None (unknown) only where both are."""

    def add(x: float | None, y: float | None) -> float | None:
        return y if x is None else x if y is None else x + y

    values = {
        name: add(getattr(a, name), getattr(b, name)) for name in ("input", "output", "cached", "reasoning", "cost")
    }
    return Usage(**values, seconds=a.seconds + b.seconds, model=b.model or a.model)  # type: ignore[arg-type]
