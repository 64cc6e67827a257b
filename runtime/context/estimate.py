"""How many tokens a text will be, before a provider has counted it.

Starts from characters over a ratio and learns from reported usage. Chinese, JSON and base64 are not English: they are
weighed apart, then one factor per model is learned on top.
"""

from __future__ import annotations

import string

CHARS_PER_TOKEN = 4.0
"""Characters of English prose a token; the usual rule of thumb, and where every model starts."""

OTHER_PART_CHARS = 4_500
"""Characters counted for a part without text (an image); about 1,100 tokens, a picture of 1024 x 1024."""

_LETTERS = string.ascii_letters.encode() + b" \t\r\n"
_WIDE_TOKENS = 0.75
"""Tokens for a character outside ASCII: Chinese is 0.5 to 0.7 with current tokenizers, emoji more."""
_SAMPLE = 4_000
_SMOOTHING = 0.5
_FACTOR_MIN, FACTOR_MAX = 0.4, 3.0
"""Tokens for a unit, at least and at most: hardly any text of any tokenizer is farther off."""
_NONSENSE = 2.0
"""A count that is so many times farther off than that is none, and nothing is learned from it."""


def units(text: str, chars_per_token: float = CHARS_PER_TOKEN) -> float:
    """Uncalibrated tokens of a text. Never zero for a text that is not empty.

    Signs and digits take more tokens than letters, so their share of what is not wide is measured (on a sample of a
    long text).
    """
    if not text:
        return 0.0
    wide = 0
    size = len(text)
    if not text.isascii():
        extra = len(text.encode("utf-8", "surrogatepass")) - size
        wide = min(size, extra if extra < size // 4 else (extra + 1) // 2)
    sample = text if size <= _SAMPLE else text[: _SAMPLE // 2] + text[-_SAMPLE // 2 :]
    plain = sample.encode("ascii", "ignore")
    dense = len(plain.translate(None, _LETTERS)) / max(1, len(plain))
    narrow = (size - wide) / chars_per_token * (1.0 + max(0.0, dense - 0.10) * 1.6)
    return max(1.0, narrow + wide * _WIDE_TOKENS)


class TokenEstimator:
    """Turns units into tokens with a factor learned from what the provider reports."""

    def __init__(self, chars_per_token: float = CHARS_PER_TOKEN) -> None:
        self.chars_per_token = chars_per_token
        self.factor = 1.0
        self.samples = 0

    def units(self, text: str) -> float:
        """Uncalibrated tokens of a text at this estimator's ratio."""
        return units(text, self.chars_per_token)

    def tokens(self, count: float) -> int:
        """Tokens for so many units, rounded up."""
        return -int(-count * self.factor // 1)

    def plausible(self, count: float, reported: int) -> bool:
        """Whether `reported` tokens can be what `count` units are, whatever the text and the tokenizer."""
        return count * _FACTOR_MIN / _NONSENSE <= reported <= count * FACTOR_MAX * _NONSENSE

    def observe(self, count: float, reported: int) -> None:
        """Learns from one request: `count` units were sent, the provider counted `reported` tokens (0 is unknown)."""
        if count < 50 or not self.plausible(count, reported):
            return
        seen = min(max(reported / count, _FACTOR_MIN), FACTOR_MAX)
        self.factor = seen if self.samples == 0 else self.factor + _SMOOTHING * (seen - self.factor)
        self.samples += 1


CUT_SHARE = 0.8
"""A reported input under this part of the one before it, though the request has only grown, was cut by the server."""

FIRST_CUT_SHARE, FIRST_CUT_TOKENS = 0.45, 3_000
"""For a first request, from so many estimated tokens on: no kind of text is overestimated by more than that."""


LEAST_COUNT = 1_000
"""Reported tokens below which a count is made up rather than the size of a window."""


def was_cut(reported: int, before: tuple[int, float] | None, estimator: TokenEstimator, count: float) -> bool:
    """Whether a server silently left out a part of a request of `count` units: it reports `reported` tokens of input,
    and reported `before` (tokens, units) for the request before it, of which this one is a continuation."""
    if reported < LEAST_COUNT:
        return False
    if before is not None:
        return count >= before[1] and reported < before[0] * CUT_SHARE
    expected = estimator.tokens(count)
    return expected >= FIRST_CUT_TOKENS and reported < expected * FIRST_CUT_SHARE
