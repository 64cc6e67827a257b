"""The vocabulary: everything a session can say, as frozen dataclasses that go to and from JSON.

The durable format is the most stable thing we own, so the schema of the log and the types of the program are one.
A field may be added with a default; a field is never renamed, and a kind is never reused for another meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

FORMAT_VERSION = 1
"""Version written into every line. A reader refuses a higher one."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 wire can carry (each becomes U+FFFD)."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True)
class ToolCall:
    """One call the model asked for.

    `arguments` is always the text of one JSON object, exactly as it will be shown to the model again. Where the model
    sent something else, `raw` keeps it and `problem` says in one sentence why the call cannot be run.
    """

    id: str
    name: str
    arguments: str = "{}"
    raw: str = ""
    problem: str = ""

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as a dict; a fresh one at each call."""
        return json.loads(self.arguments)


@dataclass(frozen=True)
class Image:
    """A picture of a message: `blob` is the id of its bytes beside the log, `media` its type (image/png)."""

    blob: str
    media: str
    note: str = ""


@dataclass(frozen=True)
class Record:
    """Base of everything that is one line of the log."""

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class SessionStart(Record):
    """First line of a file: where and when it began; for a fork, whose log it continues and up to which record."""

    kind: ClassVar[str] = "session"
    id: str
    cwd: str
    program: str = ""
    model: str = ""
    name: str = ""
    branch: str = ""
    parent: str = ""
    parent_seq: int = 0


@dataclass(frozen=True)
class User(Record):
    """Words for the model in the user's role. `source`: typed (the person), steered (the person, while it worked),
    shell (a command the person ran), hook (what the person's hooks say at the beginning), harness (refold itself: a
    continuation, a correction, a failed check)."""

    kind: ClassVar[str] = "user"
    text: str
    source: str = "typed"
    images: tuple[Image, ...] = ()


@dataclass(frozen=True)
class Assistant(Record):
    """One answer of the model. `finish`: stop, tool_calls, length, content_filter, cut (the stream broke),
    interrupted (the person stopped it), error (refold's own words after a failed turn)."""

    kind: ClassVar[str] = "assistant"
    text: str
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish: str = "stop"
    model: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What a provider wants back unchanged (reasoning items and their like); opaque to everyone else."""


@dataclass(frozen=True)
class ToolStarted(Record):
    """Durable before any effect of the call. `effect`: read, write, execute. `before`: content hash of each file the
    call says it will write (path -> SHA-256 hex, "" where there is no file), so that a crash can be judged later."""

    kind: ClassVar[str] = "tool_started"
    call_id: str
    name: str
    effect: str = "read"
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult(Record):
    """The one answer to a call. `status`: ok, error, denied, interrupted (stopped; may have run), not_run, unknown
    (a crash: it had started and nobody saw the end). `text` is what the model is shown; where the whole output was
    larger, `blob` is the id of its bytes and `chars` its length in characters."""

    kind: ClassVar[str] = "tool_result"
    call_id: str
    name: str
    text: str
    status: str = "ok"
    blob: str = ""
    chars: int = 0
    images: tuple[Image, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Facts for folding and for the face: path, sha, exit_code, command, seconds, diff ...; `files` in the place of
    path and sha, or beside them, where a call touched several."""

    @property
    def files(self) -> dict[str, str]:
        """The files it read or wrote, and the SHA-256 (hex) of each as it left it: "" for one that it removed."""
        many = self.meta.get("files")
        items = many if isinstance(many, list) else [self.meta]
        pairs = [(item.get("path"), item.get("sha")) for item in items if isinstance(item, Mapping)]
        return {path: sha for path, sha in pairs if isinstance(path, str) and isinstance(sha, str)}

    @property
    def about(self) -> str:
        """Its paths, or its command; "" where it has neither."""
        return str(self.meta.get("path") or ", ".join(self.files) or self.meta.get("command") or "")


@dataclass(frozen=True)
class Request(Record):
    """What was sent: SHA-256 of the view's bytes, blob ids of system prompt and tool schemas, the estimate (tokens)."""

    kind: ClassVar[str] = "request"
    view: str
    system: str
    tools: str
    model: str = ""
    estimate: int = 0
    purpose: str = "step"
    messages: int = 0
    units: float = 0.0
    """Uncalibrated tokens of the whole request, to learn from the usage that is reported for it."""
    checkpoint: str = ""
    words: str = ""
    """The instruction at the end of a request that is no step of the conversation (one for notes)."""
    head: int = 0
    """With `words`: how many messages of the view stand before them."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters of this call alone: max_tokens, tool_choice ..."""
    window: int = 0
    """Tokens of the window it was made for; 0 in logs of older versions."""


@dataclass(frozen=True)
class Usage(Record):
    """What the provider reported for a request, in tokens; None where it reported nothing (unknown, not zero)."""

    kind: ClassVar[str] = "usage"
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cost: float | None = None
    """Money in US dollars; None where the price is unknown."""
    seconds: float = 0.0
    model: str = ""
    purpose: str = "step"


@dataclass(frozen=True)
class Checkpoint(Record):
    """One committed fold: a patch on the view, complete in itself (it replaces the one before).

    It speaks about messages with a sequence number up to `upto`; later ones are shown as they are. It never touches
    the history: dropping the record (kind `unfold`) brings the former view back.
    """

    kind: ClassVar[str] = "checkpoint"
    id: str
    upto: int
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Left out of the view: "first-last" (sequence numbers, both ends included) -> reason (the strategy)."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Shown with other words: sequence number -> stub or cut text."""
    args: Mapping[str, str] = field(default_factory=dict)
    """Shown with other arguments: "seq:call_id" -> text of a JSON object."""
    without_pictures: tuple[int, ...] = ()
    """Shown without their pictures: sequence numbers."""
    state: str = ""
    """Written by code: goal, todo, files, last commands, open failures, what is left out."""
    notes: str = ""
    """Written by the model about what is left out; empty where none could be had."""
    notes_upto: int = 0
    """The notes cover left-out messages up to this sequence number."""
    cause: str = ""
    strategies: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    notes_status: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unfold(Record):
    """Drops one checkpoint: the one active before it is active again."""

    kind: ClassVar[str] = "unfold"
    checkpoint: str


@dataclass(frozen=True)
class Note(Record):
    """A fact about the session that the model is not shown: mode, model, cwd, name, pin, window ..."""

    kind: ClassVar[str] = "note"
    key: str
    value: Any = None


@dataclass(frozen=True)
class Rewind(Record):
    """The conversation goes on from record `to`; what came after it stays in the log and leaves the history."""

    kind: ClassVar[str] = "rewind"
    to: int


@dataclass(frozen=True)
class TurnEnd(Record):
    """The end of a turn and why: done, interrupted, error, limit."""

    kind: ClassVar[str] = "turn_end"
    reason: str
    message: str = ""
    steps: int = 0


@dataclass(frozen=True)
class Gap(Record):
    """A damaged region that was found on opening: how many bytes could not be read, which numbers are missing."""

    kind: ClassVar[str] = "gap"
    bytes: int
    first: int = 0
    last: int = 0
    why: str = ""


@dataclass(frozen=True)
class Unknown(Record):
    """A record of a kind this version does not know (a later version wrote it); kept, shown to nobody."""

    kind: ClassVar[str] = "unknown"
    of: str
    data: Mapping[str, Any] = field(default_factory=dict)


Message = User | Assistant | ToolResult
"""What the model can be shown."""

KINDS: dict[str, type[Record]] = {
    c.kind: c
    for c in (
        SessionStart, User, Assistant, ToolStarted, ToolResult, Request, Usage, Checkpoint, Unfold, Note, Rewind,
        TurnEnd, Gap,
    )
}  # fmt: skip


def to_json(record: Record) -> dict[str, Any]:
    """The record's own fields as JSON values, defaults left out; `kind` first."""
    if isinstance(record, Unknown):
        return {"kind": record.of, **record.data}
    out: dict[str, Any] = {"kind": record.kind}
    for name, default in _defaults(type(record)):
        value = getattr(record, name)
        if value != default:
            out[name] = _plain(value)
    return out


def from_json(data: Mapping[str, Any]) -> Record:
    """The record that `to_json` wrote. Unknown kinds become `Unknown`, unknown fields are left aside.

    Raises ValueError where a known kind lacks a field or a field has the wrong shape.
    """
    kind = data.get("kind")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return Unknown(str(kind), {k: v for k, v in data.items() if k not in ("kind", "v", "seq", "at", "crc")})
    try:
        values = {name: _shaped(name, data[name], shape) for name, shape in _shapes(cls) if name in data}
        return cls(**values)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"a record of kind {kind!r} has the wrong shape: {error}") from error


_MISSING = object()
_TABLE: dict[type, tuple[tuple[str, Any], ...]] = {}
_SHAPES: dict[type, tuple[tuple[str, Any], ...]] = {}
_TYPES: dict[str, Any] = {"str": str, "int": int, "float": (int, float), "Mapping": dict, "tuple": list}


def _defaults(cls: type) -> tuple[tuple[str, Any], ...]:
    table = _TABLE.get(cls)
    if table is None:
        table = tuple((f.name, _default(f)) for f in fields(cls))
        _TABLE[cls] = table
    return table


def _default(f: Any) -> Any:
    if f.default_factory is dict:
        return {}
    return f.default if f.default.__class__.__name__ != "_MISSING_TYPE" else _MISSING


def _shapes(cls: type) -> tuple[tuple[str, Any], ...]:
    """(field, what its JSON value must be an instance of) for each field of a record."""
    table = _SHAPES.get(cls)
    if table is None:
        table = tuple((f.name, _shape(str(f.type))) for f in fields(cls))
        _SHAPES[cls] = table
    return table


def _shape(hint: str) -> Any:
    plain = _TYPES.get(hint.partition("[")[0].removesuffix(" | None"), object)
    return (plain, type(None)) if hint.endswith("None") else plain


def _plain(value: Any) -> Any:
    if isinstance(value, (ToolCall, Image)):
        return {
            name: getattr(value, name) for name, default in _defaults(type(value)) if getattr(value, name) != default
        }
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _shaped(name: str, value: Any, shape: Any) -> Any:
    if not isinstance(value, shape):
        raise TypeError(f"{name} is {type(value).__name__}")
    if name == "calls":
        return tuple(_call(call) for call in value)
    if name == "images":
        return tuple(Image(**{k: str(v) for k, v in image.items() if k in _IMAGE_FIELDS}) for image in value)
    return tuple(value) if shape is list else value


def _call(data: Mapping[str, Any]) -> ToolCall:
    """A call as it was logged; one whose arguments are no JSON object any more cannot be run, but can be shown."""
    call = ToolCall(**{k: str(v) for k, v in data.items() if k in _CALL_FIELDS})
    fit = _fit_arguments(call.arguments)
    if fit == call.arguments:
        return call
    problem = "" if fit else "The arguments are not the text of a JSON object."
    return replace(call, arguments=fit or "{}", raw=call.raw or call.arguments, problem=call.problem or problem)


def _fit_arguments(text: str) -> str:
    """The text of a JSON object, without escaped halves of characters; "" where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "{}" if not text.strip() else ""
    if not isinstance(value, dict):
        return ""
    whole = json.dumps(value, ensure_ascii=False) if _HALF.search(text) else ""
    return clean(whole) if _SURROGATE.search(whole) else text


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_CALL_FIELDS = {f.name for f in fields(ToolCall)}
_IMAGE_FIELDS = {f.name for f in fields(Image)}
