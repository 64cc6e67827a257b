"""When to ask a model again, and how long to wait before. Pure: the caller sleeps, tells the person, can be stopped."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runtime.model import RETRYABLE, ModelError, ModelErrorKind

K = ModelErrorKind

PATIENCE: Mapping[ModelErrorKind, int] = {K.NETWORK: 6, K.TIMEOUT: 3, K.EMPTY: 3}
"""Most tries of one request where that is fewer than the policy's own: a refused port stays refused, a server that
stalled for minutes costs minutes again, and a model with nothing to say rarely finds words at the fourth try."""


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with jitter, bounded in tries and in time.

    `attempts` counts all tries of one request, the first included; `base` and `cap` are seconds; `jitter` is the share
    of a wait that is left to chance, so that many clients do not come back at once. A server's own Retry-After is never
    undercut; one longer than `longest` seconds is not waited for: the person decides.
    """

    attempts: int = 9
    base: float = 0.5
    cap: float = 30.0
    jitter: float = 0.25
    longest: float = 120.0
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def wait(self, error: ModelError, attempt: int) -> float | None:
        """Seconds to wait after try number `attempt` (from 1) failed with `error`; None means do not ask again."""
        if error.kind not in RETRYABLE or attempt >= self.tries(error.kind):
            return None
        if error.retry_after is not None and error.retry_after > self.longest:
            return None
        backoff = min(self.cap, self.base * 2 ** (attempt - 1)) * (1 - self.jitter * self.chance())
        if error.retry_after:
            return error.retry_after + min(backoff, 1.0) * self.jitter * self.chance()
        return backoff

    def tries(self, kind: ModelErrorKind) -> int:
        """How often one request is sent at most when it fails with this kind."""
        return min(self.attempts, PATIENCE.get(kind, self.attempts)) if kind in RETRYABLE else 1
