"""When to fold: the trigger, the target and the decision."""

from __future__ import annotations

from dataclasses import dataclass

GOAL_SHARE = 0.6
"""A fold works towards this part of what can leave, so that it frees well over the quarter that counts as progress."""


@dataclass(frozen=True)
class ContextSettings:
    """Everything a person can set about folding. Sizes are tokens unless the name says otherwise.

    The names keep_last, max_result_chars, keep_turns, token_budget, min_keep and min_retain_rounds belong to the
    strategies; `docs/folding.md` says what each trades.
    """

    compression_threshold: float = 0.8
    output_reserve: int = 0
    """Kept free for the answer; 0 means a sixteenth of the window, at most 8,192."""
    keep_last: int = 2
    max_result_chars: int = 200
    keep_turns: int = 8
    token_budget: int = 0
    """What truncation cuts down to; 0 means the target, half of the window."""
    min_keep: int = 4
    min_retain_rounds: int = 10
    chars_per_token: float = 4.0
    summary_timeout: float = 120.0
    """Seconds."""
    summarise: bool = True
    user_share: float = 0.15
    """Part of the window that the person's own words may fill before the oldest of them leave the view."""


@dataclass(frozen=True)
class CompactDecision:
    """Whether to fold now, and the figures it was decided on (tokens)."""

    should_compact: bool
    reason: str
    estimated_tokens: int
    threshold: int
    message_count: int


class ContextBudgetPolicy:
    """The arithmetic of one window."""

    def __init__(self, settings: ContextSettings, window: int) -> None:
        self.settings = settings
        self.window = window

    @property
    def reserve(self) -> int:
        """Tokens kept free for the answer."""
        return self.settings.output_reserve or min(8_192, self.window // 16)

    @property
    def trigger(self) -> int:
        """A request estimated above this many tokens is folded first."""
        return min(int(self.window * self.settings.compression_threshold), self.window - self.reserve)

    @property
    def target(self) -> int:
        """A fold lands at or under this many tokens: half of the window, so that the next one is far away."""
        return self.window // 2

    @property
    def state_room(self) -> int:
        """Tokens that the state block may take: 5 % of the window. What there is to know of some hours of work takes
        about 1,200, whatever the window, so in a small one it may take 8 %."""
        return max(int(self.window * 0.05), min(1_200, int(self.window * 0.08)))

    @property
    def preface_room(self) -> int:
        """Tokens held free for state and notes together; the model is asked for notes of a twentieth of the window."""
        return self.state_room + self.window // 20

    def goal(self, before: int, floor: int) -> int:
        """What a fold of a request of `before` tokens works towards: the target, or, where system and tools (`floor`)
        take most of that, a third of what they leave under the trigger. Always clearly less than before."""
        reachable = max(self.target, floor + (self.trigger - floor) // 3)
        return min(reachable, floor + int((before - floor) * GOAL_SHARE))

    @property
    def share(self) -> int:
        """Characters that one tool result may show: a tenth of the window, at most 50,000."""
        return max(1_200, min(50_000, int(self.window * 0.1 * self.settings.chars_per_token)))

    def should_compact(self, *, estimated_tokens: int, message_count: int) -> CompactDecision:
        """Decides on the estimate of the whole request: system, tools, history and pending input."""
        over = estimated_tokens > self.trigger
        reason = "threshold_exceeded" if over else "below_threshold"
        return CompactDecision(over, reason, estimated_tokens, self.trigger, message_count)
