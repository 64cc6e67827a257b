"""Reads numbers out of error messages: the true window, the tokens used, the seconds to wait."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping

from runtime.model import ModelErrorKind

K = ModelErrorKind

_NUMBER = r"(\d[\d,_]*(?:\.\d+)?\s?(?:[km]\b)?)"
SMALLEST, LARGEST = 256, 100_000_000
"""Tokens a window can plausibly have; other numbers are status codes, versions or bytes."""

_LIMITS = tuple(
    re.compile(p)
    for p in (
        rf"(?:>=?|<=)\s*(?:n_ctx\s*)?\(?{_NUMBER}",
        rf"\[\s*\d+\s*,\s*{_NUMBER}\s*\]",
        rf"\b(?:n_ctx|num_ctx|max_model_len|max_seq_len|max_context_length)\b\W{{0,4}}(?:is |of )?{_NUMBER}",
        rf"context (?:length|size|window|limit)[^\d>]{{0,40}}?{_NUMBER}",
        rf"{_NUMBER}[- ]tokens? (?:maximum|max|limit|context|window)",
        rf"(?:maximum|max|allowed|supported) [a-z ]{{0,40}}(?:length|tokens|limit|size|window|allowed|input|prompt)[^\d]{{0,25}}?{_NUMBER}",
        rf"limit(?:ed)?(?: of| is| to|:|=| \()?\W{{0,3}}(?:only )?{_NUMBER}",
        rf"(?:up to|at most|maximum of|max of|maximum is|maximum:|no more than|less than|below|under|exceeds?|longer than|over)\W{{0,3}}{_NUMBER}",
    )
)
_INPUTS = tuple(
    re.compile(p)
    for p in (
        rf"{_NUMBER} (?:tokens )?(?:in|from|of|for) (?:the |your )?(?:text |)(?:messages|input|prompt)",
        rf"given: {_NUMBER}",
        rf"{_NUMBER} \+ \d",
        rf"(?:passed|has|have|contains?|is|are|got|received|with|using|used) (?:about |approximately )?{_NUMBER} (?:input|prompt|text)",
    )
)
_USED = tuple(
    re.compile(p)
    for p in (
        rf"(?:requested|resulted in|contains?|has|have|passed|used|current length is|got|received|sent|actual)\W{{0,3}}(?:a total of |about )?{_NUMBER}",
        rf"{_NUMBER} tokens? >",
        rf"(?:length|count|tokens?|prompt|input|size) ?(?:of |is |:|=|\()? ?{_NUMBER}",
        rf"(?:first|\() ?{_NUMBER} tokens",
        rf"\({_NUMBER}\) >",
    )
)


def number(text: str) -> int:
    """The integer a message means: "131,072", "1_048_576", "128k" (thousands, the cautious reading), "1.5m"."""
    plain = text.strip().replace(",", "").replace("_", "")
    scale = {"k": 1_000, "m": 1_000_000}.get(plain[-1:], 1)
    return int(float(plain.rstrip("km ")) * scale)


def token_counts(kind: ModelErrorKind, text: str, numbers: Mapping[str, float]) -> tuple[int | None, int | None]:
    """(limit, used) in tokens as an overflow message tells them; None where it does not."""
    if kind is K.OUTPUT_LIMIT:
        return _output_limit(text), None
    if kind not in (K.PROMPT_TOO_LONG, K.INPUT_PLUS_OUTPUT_TOO_LONG):
        return None, None
    limit = _named(numbers, "n_ctx", "max_model_len", "context_length", "limit", "max_tokens_allowed") or _first(
        _LIMITS, text
    )
    used = _named(numbers, "n_prompt_tokens", "prompt_tokens", "input_tokens")
    if kind is K.INPUT_PLUS_OUTPUT_TOO_LONG:
        used = used or _first(_INPUTS, text)
    used = used or _first(_USED, text, beside=limit)
    return _plausible(text, limit, used, kind)


def _plausible(text: str, limit: int | None, used: int | None, kind: ModelErrorKind) -> tuple[int | None, int | None]:
    """Of two numbers in an overflow the smaller is the limit, whatever the sentence around them."""
    found = sorted({n for n in map(number, re.findall(_NUMBER, text)) if SMALLEST <= n <= LARGEST})
    if limit is None and kind is K.PROMPT_TOO_LONG and len(found) == 2:
        return found[0], found[1]
    if limit and used and kind is K.PROMPT_TOO_LONG and used < limit and len(found) == 2:
        return used, limit
    return limit, used if used != limit else None


def _named(numbers: Mapping[str, float], *names: str) -> int | None:
    return next((int(numbers[n]) for n in names if numbers.get(n, 0) >= SMALLEST), None)


def _first(patterns: tuple[re.Pattern[str], ...], text: str, beside: int | None = None) -> int | None:
    for pattern in patterns:
        for match in pattern.finditer(text):
            value = number(match[1])
            if SMALLEST <= value <= LARGEST and value != beside:
                return value
    return None


def _output_limit(text: str) -> int | None:
    match = re.search(rf"(?:at most|>|<=|less than(?: or equal to)?|up to|maximum(?: of| is)?|only)\s*{_NUMBER}", text)
    found = sorted(n for n in map(number, re.findall(_NUMBER, text)) if 1 < n <= LARGEST)
    return number(match[1]) if match else (found[0] if len(found) > 1 else None)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)\b")
_WAIT = re.compile(
    r"(?:try|retry)(?: your request)?(?: again)?(?: in| after)?:? (?:about |approximately )?((?:\d+(?:\.\d+)?\s*[a-z]+\s*,?\s*)+)"
)


def retry_after(headers: Mapping[str, str], numbers: Mapping[str, float], text: str) -> float | None:
    """Seconds the server asks us to wait: by header (milliseconds, seconds or a date), field or sentence."""
    lower = {k.lower(): v for k, v in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _header(lower.get(name, ""), scale)
        if seconds is not None:
            return seconds
    for name in ("retryDelay", "retry_after", "retry-after", "retry_after_seconds"):
        if name in numbers:
            return max(0.0, float(numbers[name]))
    match = _WAIT.search(text)
    return _span(match[1]) if match else None


def _header(value: str, scale: float) -> float | None:
    try:
        return max(0.0, float(value) * scale)
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _span(text: str) -> float | None:
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|d|h|m|s)", text)
    return sum(float(n) * _UNITS["ms" if u.startswith("mil") else u] for n, u in parts) if parts else None
