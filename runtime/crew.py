"""What one turn works with, and what it has to show so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from runtime.context.engine import ContextEngine
from runtime.model import Model
from runtime.retry import RetryPolicy
from tools.base import Toolbox
from transcripts.records import ToolCall, ToolResult, Usage


@dataclass(frozen=True)
class Permit:
    """Whether a call may run; where not, `message` is what the model is told, `reason` the same in one sentence for the
    person, and `rule` what would allow it, a rule a line ("" where none would)."""

    allow: bool
    message: str = ""
    reason: str = ""
    rule: str = ""


Approve = Callable[[ToolCall], Awaitable[Permit]]


After = Callable[[ToolCall, ToolResult], Awaitable[ToolResult]]


async def allow_all(call: ToolCall) -> Permit:
    """Lets everything run."""
    return Permit(True)


@dataclass(frozen=True)
class Limits:
    """Where a turn stops by itself; 0 means no limit. `max_steps` counts the turn's own requests, `max_requests` those
    of its sub-agents as well, as do `max_tokens` (input and output) and `max_cost` (US dollars). `nudge_at` and
    `stop_at`: after how many identical calls with identical results the model is told so, and after how many the turn
    ends."""

    max_steps: int = 100
    max_requests: int = 0
    max_tokens: int = 0
    max_cost: float = 0.0
    max_overflows: int = 3
    max_continuations: int = 3
    nudge_at: int = 3
    stop_at: int = 0


@dataclass
class Spent:
    """What the requests of a turn have cost so far, those of its sub-agents among them. A sub-agent's has the turn's
    `above` it, with the `limits` of that turn: what it spends is spent there too."""

    limits: Limits = field(default_factory=Limits)
    above: Spent | None = None
    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def count(self, usage: Usage) -> None:
        """Adds what one request cost; unknown stays unknown unless something is known."""
        self.requests += 1
        self.usage = total(self.usage, usage)
        if self.above is not None:
            self.above.count(usage)

    @property
    def tokens(self) -> int:
        """Read and written, as far as they are known."""
        return (self.usage.input or 0) + (self.usage.output or 0)

    def over(self, limits: Limits) -> str:
        """Which limit is reached, in words; "" where none is."""
        cost = self.usage.cost or 0
        if limits.max_tokens and self.tokens >= limits.max_tokens:
            return f"the limit of {limits.max_tokens:,} tokens is reached ({self.tokens:,} used)"
        if limits.max_cost and cost >= limits.max_cost:
            return f"the limit of ${limits.max_cost:g} is reached (${cost:.4f} spent)"
        if limits.max_requests and self.requests >= limits.max_requests:
            return f"the limit of {limits.max_requests} requests is reached"
        return self.above.over(self.above.limits) if self.above is not None else ""


@dataclass(frozen=True)
class Crew:
    """The parts of a session that the loop drives, for one turn. `steered` hands over lines typed since the last
    step; `after`, where there is one, may add to the result of a call that has run, before it is recorded."""

    engine: ContextEngine
    model: Model
    toolbox: Toolbox
    approve: Approve = allow_all
    steered: Callable[[], list[str]] = list
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    spent: Spent = field(default_factory=Spent)
    after: After | None = None


@dataclass
class Turn:
    """The state of one turn; what it has cost is `spent`. `text` is the newest answer, `stuck` why it must end, `seen`
    the calls made so far with the result they last gave and how often it was the same."""

    steps: int = 0
    text: str = ""
    continuations: int = 0
    overflows: int = 0
    max_output: int = 0
    asked_less: bool = False
    stuck: str = ""
    spent: Spent = field(default_factory=Spent)
    denials: list[str] = field(default_factory=list)
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def count(self, usage: Usage) -> None:
        """Adds what one request of its own cost."""
        self.spent.count(usage)

    @property
    def usage(self) -> Usage:
        """The sum over its requests and those of its sub-agents."""
        return self.spent.usage

    def over(self, limits: Limits) -> str:
        """Which limit is reached, in words; "" where none is."""
        if found := self.spent.over(limits):
            return found
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
