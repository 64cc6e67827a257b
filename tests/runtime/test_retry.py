"""When it is worth asking again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model import RETRYABLE, ModelError, ModelErrorKind
from runtime.retry import RetryPolicy

K = ModelErrorKind
CALM = RetryPolicy(attempts=5, base=1.0, cap=6.0, jitter=0.0)


def waits(policy: RetryPolicy, error: ModelError) -> list[float | None]:
    return [policy.wait(error, attempt) for attempt in range(1, 8)]


def test_waits_grow_to_the_cap_and_end() -> None:
    assert waits(CALM, ModelError(K.SERVER, "boom")) == [1.0, 2.0, 4.0, 6.0, None, None, None]


@pytest.mark.parametrize("kind", sorted(set(ModelErrorKind) - RETRYABLE))
def test_what_cannot_help_is_not_tried(kind: ModelErrorKind) -> None:
    assert CALM.wait(ModelError(kind, "no", retry_after=1.0), 1) is None
    assert CALM.tries(kind) == 1


def test_some_kinds_are_given_up_sooner() -> None:
    default = RetryPolicy()
    assert {k: default.tries(k) for k in sorted(RETRYABLE)} == {
        K.EMPTY: 3,
        K.NETWORK: 6,
        K.RATE_LIMIT: 9,
        K.SERVER: 9,
        K.TIMEOUT: 3,
    }
    assert RetryPolicy(attempts=2).tries(K.NETWORK) == 2


def test_the_servers_own_wish_is_obeyed_up_to_a_bound() -> None:
    assert CALM.wait(ModelError(K.RATE_LIMIT, "slow", retry_after=7.0), 1) == 7.0
    assert CALM.wait(ModelError(K.RATE_LIMIT, "slow", retry_after=0.0), 2) == 2.0
    assert CALM.wait(ModelError(K.RATE_LIMIT, "slow", retry_after=121.0), 1) is None
    assert RetryPolicy(longest=200.0, jitter=0.0).wait(ModelError(K.RATE_LIMIT, "slow", retry_after=121.0), 1) == 121.0


@given(st.sampled_from(sorted(RETRYABLE)), st.integers(1, 20), st.none() | st.floats(0, 500), st.floats(0, 1))
def test_no_wait_is_below_the_wish_or_without_bound(
    kind: ModelErrorKind, attempt: int, wish: float | None, chance: float
) -> None:
    policy = RetryPolicy(chance=lambda: chance)
    wait = policy.wait(ModelError(kind, "no", retry_after=wish), attempt)
    if wait is not None:
        assert (wish or 0.0) <= wait <= max(policy.cap, policy.longest + 1)
        assert attempt < policy.attempts
