"""Reads numbers out of error messages: the true window, the tokens used, the seconds to wait."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.model import ModelErrorKind

K = ModelErrorKind

SMALLEST, LARGEST = 256, 100_000_000
"""Tokens a window can plausibly have; other numbers are status codes, versions or bytes."""

_NUMBER = re.compile(
    r"(?<![\w.$#-])(\d[\d,_]*(?:\.\d+)?)(?:\s?([km])\b)?(?![\w])"
    r"(?!\s?(?:seconds?|minutes?|bytes?|mb|kb|mib|images?|pixels?)\b)"
)
_NO_LIMIT = re.compile(r"\(2013\)|\berror code:? \d+|\bstatus(?: code)?:? \d+|\bhttp \d+")
"""Numbers that are codes, though they stand where a limit would (MiniMax: "context window exceeds limit (2013)")."""

_WINDOW_BEFORE = re.compile(r"context (?:length|window|size|limit)(?: of| is|:| =)?(?: only)? ?\(?$")
_OUTPUT_BEFORE = re.compile(
    r"(?:max[_ ](?:new[_ ]|completion[_ ]|output[_ ])?tokens|completion|output(?: tokens)?|generation)['`\"]?"
    r"(?: of| is too large:?|:| is| =)?\W{0,4}$"
)
_LIMIT_BEFORE = re.compile(
    r"limit\w*|max(?:imum)?\b|at most|up to|\bonly\b|context|window|exceed\w*|\bthan\b|\bover\b|above|beyond|"
    r"surpass\w*|[<>≤≥]=?|"
    r"n_ctx|num_ctx|max_\w+|allowed|supports?|should be|must be|\bfit\b|最大|上限|不超过|超过"
)
_USED_BEFORE = re.compile(
    r"requested|resulted in|contain\w*|\bha(?:s|ve|d)\b|\bgot\b|received|given|passed|current|\bused\b|actual|"
    r"\bsent\b|\bcount\b|total of|too long|\bfirst\b|\bkeep\b|n_keep|\bbut\b|prompt(?: length| of)?|"
    r"inputs?(?: length| of)?|sequence length|number of|实际|当前"
)
_LIMIT_AFTER = re.compile(
    r"^\W{0,3}(?:tokens?|k)?\W{0,3}(?:maximum|max\b|limit|allowed|context|window|fit\b|of context|is (?:only|the max))"
)
_USED_AFTER = re.compile(
    r"^\W{0,3}(?:tokens?)?\W{0,3}(?:>|exceed|is (?:longer|larger|over|greater|more|too)|longer|larger|over\b|were|was|"
    r"in (?:the|your)|input|given)"
)
_INPUT = re.compile(
    r"^[^\d.]{0,6}(?:tokens )?(?:\(?(?:in|from|of|for) )?(?:the |your )?(?:text )?(?:messages|inputs?|prompt)"
)
_INPUT_BEFORE = re.compile(r"(?:inputs?|prompt)(?: tokens?| length)? ?(?:is |of |: ?|\()?$|given: $")


@dataclass(frozen=True)
class _Found:
    """A number with the words around it, up to the next number on each side."""

    value: int
    before: str
    after: str

    @property
    def leaning(self) -> int:
        """Positive where the words call it a limit, negative where they call it what was used; the nearest decides."""
        if _OUTPUT_BEFORE.search(self.before):
            return -1
        if _WINDOW_BEFORE.search(self.before):
            return 4
        if _LIMIT_AFTER.search(self.after):
            return 3
        if _USED_AFTER.search(self.after):
            return -3
        limit = max((m.end() for m in _LIMIT_BEFORE.finditer(self.before)), default=-1)
        used = max((m.end() for m in _USED_BEFORE.finditer(self.before)), default=-1)
        return 0 if limit == used else 2 if limit > used else -2


def token_counts(kind: ModelErrorKind, text: str, numbers: Mapping[str, float]) -> tuple[int | None, int | None]:
    """(limit, used) in tokens as an overflow message tells them; None where it does not."""
    if kind is K.OUTPUT_LIMIT:
        return _output_limit(text), None
    if kind not in (K.PROMPT_TOO_LONG, K.INPUT_PLUS_OUTPUT_TOO_LONG):
        return None, None
    limit = _named(numbers, "n_ctx", "max_model_len", "context_length", "context_window", "limit")
    used = _named(numbers, "n_prompt_tokens", "prompt_tokens", "input_tokens", "requested_tokens")
    found = _find(text)
    told = _of_both(found) if kind is K.INPUT_PLUS_OUTPUT_TOO_LONG else _of_one(found)
    return limit or told[0], used or told[1]


def _find(text: str) -> list[_Found]:
    text = _NO_LIMIT.sub(" ", text)
    hits = [(m, _value(m)) for m in _NUMBER.finditer(text)]
    hits = [(m, v) for m, v in hits if SMALLEST <= v <= LARGEST]
    out = []
    for n, (match, value) in enumerate(hits):
        left = hits[n - 1][0].end() if n else 0
        right = hits[n + 1][0].start() if n + 1 < len(hits) else len(text)
        before, after = (
            text[max(left, match.start() - 60) : match.start()],
            text[match.end() : min(right + 1, match.end() + 40)],
        )
        out.append(_Found(value, before, after))
    return out


def _value(match: re.Match[str]) -> int:
    """ "131,072", "1_048_576", "128k" (thousands, the cautious reading), "1.5m"."""
    scale = {"k": 1_000, "m": 1_000_000}.get(match[2] or "", 1)
    return int(float(match[1].replace(",", "").replace("_", "").rstrip(".")) * scale)


def _of_one(found: list[_Found]) -> tuple[int | None, int | None]:
    """Of two numbers in an overflow the smaller is the limit, whatever the sentence around them."""
    values = sorted({f.value for f in found})
    window = next((f.value for f in found if f.leaning == 4), None)
    if len(values) == 2:
        return (values[0], values[1]) if window in (None, values[0]) else (window, None)
    limit = next((f.value for f in sorted(found, key=lambda f: -f.leaning) if f.leaning > 0), None)
    over = [f for f in found if f.value != limit and f.leaning <= 0 and (limit is None or f.value > limit)]
    used = next((f.value for f in sorted(over, key=lambda f: f.leaning) if f.leaning < 0 or limit), None)
    return limit, used


def _of_both(found: list[_Found]) -> tuple[int | None, int | None]:
    """Input, output, their sum and the limit: the limit is called one, the input is called input."""
    inputs = [f.value for f in found if _INPUT.search(f.after) or _INPUT_BEFORE.search(f.before)]
    rest = [f for f in found if not inputs or f.value != inputs[0]]
    limit = next((f.value for f in sorted(rest, key=lambda f: (-f.leaning, -f.value)) if f.leaning > 0), None)
    plus = next((f.value for f in found if f.after.startswith(" + ")), None)
    used = plus or next((v for v in inputs if v != limit), None)
    return limit, used


def _named(numbers: Mapping[str, float], *names: str) -> int | None:
    return next((int(numbers[n]) for n in names if SMALLEST <= numbers.get(n, 0) <= LARGEST), None)


def _output_limit(text: str) -> int | None:
    found = _find(text)
    if len({f.value for f in found}) > 1:
        return min(f.value for f in found)
    return found[0].value if found and found[0].leaning > 0 else None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|d|h|m|s)[a-z]*"
_WAIT = re.compile(
    r"(?:try|retry)(?: your request)?(?: again)?(?: in| after)?:? (?:about |approximately )?"
    rf"((?:{_SPAN}\s*,?\s*)+)"
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
    return (
        round(sum(float(n) * _UNITS["ms" if u.startswith("mil") else u] for n, u in re.findall(_SPAN, match[1])), 3)
        if match
        else None
    )


def _header(value: str, scale: float) -> float | None:
    try:
        seconds = float(value) * scale
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds < 1e9 else None
