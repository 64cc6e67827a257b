"""Tells apart why a request to a model failed, from whatever the server said. Standard library only.

Servers agree on nothing: the same overflow comes as a code, as one of some fifty sentences, inside JSON inside a
string, with status 400, 413, 422, 500 or within a stream. So structured fields come first, then wording that only looks
like an overflow is set aside (rate limits above all), then the overflow itself is recognised by how such sentences are
built rather than by a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime import wordings as w
from runtime.limits import retry_after, token_counts
from runtime.model import ModelError, ModelErrorKind

K = ModelErrorKind

DEPTH = 8
"""How deep nested objects and JSON inside strings are walked; gateways wrap a message three or four times."""

SHOWN = 2000
"""Longest error text that is shown, in characters; the rest is a proxy's page or an echo of the request."""

_CODE_KEYS = ("code", "type", "error_type", "__type", "status", "error_code", "reason", "errorCode", "exception")
_TEXT_KEYS = (
    "message", "msg", "detail", "error", "error_description", "description", "errorMessage", "raw", "title",
    "status_msg", "error_msg", "errmsg",
)  # fmt: skip


@dataclass
class _Said:
    """What a server said, gathered: short codes, sentences, and named numbers."""

    codes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def code(self) -> str:
        return " ".join(self.codes).lower()

    @property
    def text(self) -> str:
        return " ".join([*self.codes, *self.texts]).lower().replace("’", "'").replace("`", "'")


def classify_model_error(
    status: int | None = None,
    code: str = "",
    message: str = "",
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> ModelError:
    """The typed error for what a server answered.

    `status` is the HTTP status (None inside a stream), `code` the error's code or type, `message` its sentence, `body`
    the whole answer (object, text or bytes), `headers` those of the answer. `limit` and `used` of the result are
    tokens; for INPUT_PLUS_OUTPUT_TOO_LONG `used` counts the input alone where the message tells it, so used >= limit
    means that asking for less output cannot help. For OUTPUT_LIMIT `limit` is the most output tokens the model can
    write.
    """
    said = _Said()
    for part in (code, message, body):
        _gather(part, said, 0)
    status = status or _status_in(said)
    text = said.text
    wait = retry_after(headers or {}, said.numbers, text)
    kind = _kind(status, said.code, text, wait)
    limit, used = token_counts(kind, text, said.numbers)
    return ModelError(kind, _words(status, said, code), status=status, limit=limit, used=used, retry_after=wait)


def _gather(value: Any, said: _Said, depth: int, key: str = "") -> None:
    if depth > DEPTH or value is None or isinstance(value, bool):
        return
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, Mapping):
        for k, v in value.items():
            _gather(v, said, depth + 1, str(k))
    elif isinstance(value, (list, tuple)):
        for v in value:
            _gather(v, said, depth + 1, key)
    elif isinstance(value, (int, float)):
        said.numbers.setdefault(key, value)
        if key in _CODE_KEYS:
            said.codes.append(str(value))
    else:
        _gather_text(str(value), said, depth, key)


def _gather_text(value: str, said: _Said, depth: int, key: str) -> None:
    inner = _json_inside(value)
    if inner is not None:
        _gather(inner, said, depth + 1, key)
        return
    if key in ("retryDelay", "retry_after", "retry-after") and (m := re.match(r"([\d.]+)s?$", value)):
        said.numbers.setdefault(key, float(m[1]))
    elif re.fullmatch(r"[\w.#:/-]{1,80}", value):
        if key in _CODE_KEYS or not key:
            said.codes.append(value)
        elif key in _TEXT_KEYS:
            said.texts.append(value)
    elif (key in _TEXT_KEYS or key in _CODE_KEYS or not key) and value not in said.texts:
        said.texts.append(value)


def _json_inside(value: str) -> Any:
    start = value.find("{")
    if start < 0:
        return None
    for candidate in (value, value[start : value.rfind("}") + 1]):
        try:
            found = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(found, dict):
            before = value[:start].strip() if candidate != value else ""
            return {"message": before, "error": found} if before else found
    return None


def _status_in(said: _Said) -> int | None:
    return next((int(c) for c in said.codes if re.fullmatch(r"[45]\d\d", c)), None)


def _kind(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind:
    """The first rule that holds; the order is the point (see the module's first words)."""
    for rule in (_by_code, _by_rate, _by_lookalike, _by_length, _by_status, _by_words):
        kind = rule(status, code, text, wait)
        if kind is not None:
            return kind
    return K.UNKNOWN


def _by_code(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    if w.QUOTA_CODE.search(code):
        return _quota(text, wait)
    if w.RATE_CODE.search(code):
        return K.QUOTA if w.QUOTA.search(text) and not _soon(wait) else _rate(text, wait)
    if w.LENGTH_CODE.search(code):
        return K.INPUT_PLUS_OUTPUT_TOO_LONG if _both(text) else K.PROMPT_TOO_LONG
    if w.SIZE_CODE.search(code):
        return K.REQUEST_TOO_LARGE
    return None


def _by_rate(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    if status == 402:
        return K.QUOTA
    if status == 429:
        return _quota(text, wait) if w.QUOTA.search(text) else _rate(text, wait)
    if status in (401,):
        return K.AUTH
    if w.RATE.search(text):
        return _quota(text, wait) if w.QUOTA.search(text) else _rate(text, wait)
    if w.QUOTA.search(text) and not w.CONTEXT.search(text):
        return _quota(text, wait)
    return None


def _soon(wait: float | None) -> bool:
    return wait is not None and wait <= 120


def _quota(text: str, wait: float | None) -> ModelErrorKind:
    """A quota that the server says is free again in a moment is a rate limit by another name."""
    return K.RATE_LIMIT if _soon(wait) else K.QUOTA


def _rate(text: str, wait: float | None) -> ModelErrorKind:
    return K.QUOTA if w.DAILY.search(text) and wait is None else K.RATE_LIMIT


def _by_lookalike(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    """Sentences that talk about length, tokens or limits, and are about something else."""
    if w.NEGATIVE.search(text):
        return K.PROMPT_TOO_LONG
    if w.CACHE.search(text) or w.OTHER_FIELD.search(text):
        return K.UNKNOWN
    if w.ITEMS.search(text):
        return K.REQUEST_TOO_LARGE
    if w.MEDIA_NOUN.search(text) and w.MEDIA_FAULT.search(text) and not w.TOKENS.search(text):
        return K.BAD_MEDIA
    if w.PAIRING.search(text) and not w.TOKENS.search(text):
        return K.MALFORMED_HISTORY
    if w.TIMEOUT.search(text) and not w.TOKENS.search(text):
        return K.TIMEOUT
    if w.OUTPUT_PARAM.search(text) and w.OUTPUT_FAULT.search(text) and not w.INPUT_SIDE.search(text):
        return K.OUTPUT_LIMIT
    return None


def _by_length(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    if status is not None and status not in (400, 413, 422, 500, 502, 503):
        return None
    if w.BYTES.search(text) and not w.TOKENS.search(text):
        return K.REQUEST_TOO_LARGE
    if not _too_long(text):
        return K.REQUEST_TOO_LARGE if status == 413 else None
    return K.INPUT_PLUS_OUTPUT_TOO_LONG if _both(text) else K.PROMPT_TOO_LONG


def _too_long(text: str) -> bool:
    """More of something than there is room for, where the something is a prompt or the room a context."""
    if w.ADVICE.search(text):
        return True
    if not w.OVER.search(text):
        return False
    return bool(w.CONTEXT.search(text) or w.TOKENS.search(text) or (w.PROMPT.search(text) and w.LENGTH.search(text)))


def _both(text: str) -> bool:
    """Whether the answer that was asked for counts too. What a server advises to reduce does not."""
    told = re.split(r"(?:please|try |reduce|decrease|make sure)", text)[0] or text
    return bool(w.INPUT_SIDE.search(told) and w.OUTPUT_SIDE.search(told)) and not w.NO_OUTPUT.search(told)


def _by_status(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    if status == 403:
        return K.AUTH
    if status == 404 or w.NOT_FOUND.search(text):
        return K.NOT_FOUND
    if status in (408, 504, 524):
        return K.TIMEOUT
    return K.SERVER if status is not None and (status >= 500 or status in (409, 425)) else None


def _by_words(status: int | None, code: str, text: str, wait: float | None) -> ModelErrorKind | None:
    for kind, pattern in ((K.AUTH, w.AUTH), (K.SERVER, w.OVERLOADED), (K.TIMEOUT, w.TIMEOUT)):
        if pattern.search(text):
            return kind
    return K.SERVER if status is None and w.SERVER.search(text) else None


def _words(status: int | None, said: _Said, code: str) -> str:
    """The server's own words for the person: one line, no HTML, no code repeated."""
    text = " ".join(" ".join(_plain(said)).split())[:SHOWN]
    text = text or " ".join(dict.fromkeys(said.codes))[:SHOWN] or "the server gave no reason"
    return f"HTTP {status}: {text}" if status else text


def _plain(said: _Said) -> Iterator[str]:
    seen = ""
    for text in said.texts:
        if re.search(r"<\s*(!doctype|html|head|body)\b", text, re.IGNORECASE):
            title = re.search(r"<title>\s*(.*?)\s*</title>", text, re.IGNORECASE | re.DOTALL)
            text = f"the server sent an HTML page{f' ({title[1][:100]})' if title else ''}"
        if text not in seen:
            seen += text
            yield text
