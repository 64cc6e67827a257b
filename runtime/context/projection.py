"""ProjectionBuilder: log + checkpoint -> view. Pure: the same records give the same bytes, today and after a crash.

The view is made of wire messages (chat-completions shape). Each is built once, when it is appended; a checkpoint
builds the view anew, once.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.context.estimate import OTHER_PART_CHARS, TokenEstimator
from runtime.context.rounds import RoundSegmenter, Step
from transcripts.log import Entry
from transcripts.records import Checkpoint, Image, ToolCall, User, clean

Wire = dict[str, Any]
Span = tuple[int, int, str]
"""A stretch of messages: first and last number, and a reason."""
Resolve = Callable[[Image], str]
"""An image -> a data URL, or "" where its bytes are gone."""

FOLD_HEADER = (
    '[Earlier parts of this conversation are folded away. Nothing is lost: recall(id="#12") or '
    'recall(query="words") shows any of it.]'
)
_PLAIN = frozenset({"role", "content", "tool_calls", "tool_call_id"})
NOT_SHOWN = "[What stood here is not shown.]"
"""In the place of the person's words between two answers, or before the first, where they are lost or left out."""

FOLDED_PICTURES = "[{} picture(s) folded away]"

LOST_RESULT = "[The result of this call is not in the log. It may have run: verify before you repeat it.]"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]")


def canonical(value: Any) -> bytes:
    """JSON bytes of a wire value: the one form that is hashed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def place(messages: Sequence[Entry], seq: int, start: int = 0) -> int:
    """Where the first message with this number or a later one stands, looked for from `start` on."""
    return bisect_left(messages, seq, start, key=lambda entry: entry.seq)


class Patch:
    """A checkpoint made ready for look-ups. Without a checkpoint everything is shown as it is."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        spans = sorted((*map(int, k.split("-")), why) for k, why in (checkpoint.hidden if checkpoint else {}).items())
        self.spans: list[Span] = spans  # type: ignore[assignment]
        """What is left out: first and last number of each stretch, and the reason; in order."""
        self._starts = [s[0] for s in self.spans]
        self._stubs = {k.split(":")[0] for k in (*checkpoint.texts, *checkpoint.args)} if checkpoint else set()
        self._blind = frozenset(checkpoint.without_pictures if checkpoint else ())

    def hidden(self, seq: int) -> str:
        """Why a message is left out; "" where it is shown."""
        i = bisect_right(self._starts, seq) - 1
        return self.spans[i][2] if i >= 0 and seq <= self.spans[i][1] else ""

    def shown(self, messages: Sequence[Entry]) -> Sequence[Entry]:
        """The messages that are not left out. The others are not even looked at: with a long past behind it, that is
        nearly everything."""
        if not self.spans:
            return messages
        out: list[Entry] = []
        at = 0
        for first, last, _ in self.spans:
            end = place(messages, first, at)
            out += messages[at:end]
            at = place(messages, last + 1, end)
        return [*out, *messages[at:]]

    def text(self, entry: Entry) -> str:
        """The words under which a message is shown."""
        found = self.checkpoint.texts.get(str(entry.seq)) if self.checkpoint else None
        return entry.record.text if found is None else found

    def arguments(self, seq: int, call: ToolCall) -> str:
        """The arguments under which a call is shown."""
        found = self.checkpoint.args.get(f"{seq}:{call.id}") if self.checkpoint else None
        return call.arguments if found is None else found

    def pictured(self, entry: Entry) -> bool:
        """Whether a message is shown with its pictures."""
        return entry.seq not in self._blind

    def fate(self, entry: Entry) -> str:
        """What became of a message: shown, stub, covered (by the notes) or the reason it is left out for."""
        why = self.hidden(entry.seq)
        c = self.checkpoint
        if why:
            return "covered" if c and c.notes and entry.seq <= c.notes_upto else f"left out: {why}"
        return "stub" if str(entry.seq) in self._stubs or entry.seq in self._blind else "shown"


def preface(checkpoint: Checkpoint) -> str:
    """The one message that stands for what is left out: facts by code first, the model's notes after them."""
    parts = [FOLD_HEADER]
    if checkpoint.state:
        parts.append(f'<state written-by="refold">\n{checkpoint.state}\n</state>')
    if checkpoint.notes:
        parts.append(
            '<notes written-by="the model, earlier" authority="below the person\'s own words">\n'
            f"{checkpoint.notes}\n</notes>"
        )
    return "\n\n".join(parts)


def wire_step(step: Step, patch: Patch, resolve: Resolve) -> list[Wire]:
    """The wire messages of one step as the patch shows it; [] where it is left out or nothing but an orphan."""
    head = step.head
    if head.kind == "tool_result" or patch.hidden(head.seq):
        return []
    if head.kind == "user":
        return [_user(head, patch, resolve)]
    return _answer(step, patch, resolve)


def _user(entry: Entry, patch: Patch, resolve: Resolve) -> Wire:
    record: User = entry.record
    text = _said(patch.text(entry), "(empty message)")
    if record.images and not patch.pictured(entry):
        return {"role": "user", "content": f"{text}\n{FOLDED_PICTURES.format(len(record.images))}"}
    pictures = [_picture(i, resolve) for i in record.images]
    if not pictures:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [{"type": "text", "text": text}, *pictures]}


def _picture(image: Image, resolve: Resolve) -> Wire:
    url = resolve(image)
    if not url:
        return {"type": "text", "text": f"[an image ({image.media}) that is no longer there]"}
    return {"type": "image_url", "image_url": {"url": url}}


def _answer(step: Step, patch: Patch, resolve: Resolve) -> list[Wire]:
    record, seq = step.head.record, step.head.seq
    text = _said(patch.text(step.head), "") + _mark(record.finish, record.text)
    message: Wire = {"role": "assistant", "content": text or (None if record.calls else "(no answer)")}
    message.update(record.extra.get("wire", {}))
    if not record.calls:
        return [message]
    message["tool_calls"] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": _callable(call.name), "arguments": clean(patch.arguments(seq, call))},
        }
        for call in record.calls
    ]
    out, pictures = [message], []
    for call in record.calls:
        entry = step.results.get(call.id)
        content = _said(patch.text(entry), "(no output)") if entry else LOST_RESULT
        out.append({"role": "tool", "tool_call_id": call.id, "content": content})
        whole = entry and patch.pictured(entry) and patch.text(entry) == entry.record.text
        shown = entry.record.images if entry and whole else ()
        pictures += [_picture(i, resolve) for i in shown]
    if pictures:
        out.append({"role": "user", "content": [{"type": "text", "text": "[Images from the calls above]"}, *pictures]})
    return out


def _said(text: str, blank: str) -> str:
    """Text as any provider takes it: whole characters, and not nothing but blanks."""
    return clean(text) if text and not text.isspace() else blank


def _callable(name: str) -> str:
    """A name under which a call may be shown: models invent some that no provider takes back."""
    return name if _NAME.fullmatch(name) else (_NOT_NAME.sub("_", name)[:64] or "unknown")


def _mark(finish: str, text: str) -> str:
    words = {"interrupted": "[stopped here by the person]", "cut": "[the connection broke here]"}.get(finish, "")
    return f"\n\n{words}" if words and text else words


class View:
    """A growing list of wire messages with their sizes and a running hash. Two messages of the user's role in a row
    become one, for the strictest providers want the roles to alternate."""

    def __init__(self, estimator: TokenEstimator) -> None:
        self.estimator = estimator
        self.messages: list[Wire] = []
        self._hash = hashlib.sha256()
        self._units = 0.0
        # The last message may still grow, so it is hashed when somebody asks. Grown together, it weighs what its parts
        # do: a fold that has weighed them one by one must not be surprised.
        self._body: bytes | None = b""
        self._weight = 0.0
        self._ids = _Ids()

    def copy(self) -> View:
        """An independent view with the same messages."""
        other = View(self.estimator)
        other.messages, other._units = list(self.messages), self._units
        other._hash, other._ids = self._hash.copy(), self._ids.copy()
        other._body, other._weight = self._body, self._weight
        return other

    @property
    def units(self) -> float:
        """Uncalibrated tokens of all messages."""
        return self._units + self._weight

    def add(self, message: Wire) -> None:
        """Puts one message at the end. Nobody speaks before the person, nor twice in a row, whatever was lost or left
        out; and every call has an id that no other has."""
        if message["role"] == "assistant" and (not self.messages or self.messages[-1]["role"] == "assistant"):
            self.add({"role": "user", "content": NOT_SHOWN})
        if message["role"] in ("assistant", "tool"):
            message = self._ids.own(message)
        weight = message_units(message, self.estimator)
        if self.messages and _mergeable(self.messages[-1], message):
            message = _merge(self.messages.pop(), message)
            self._weight += weight - FRAME_UNITS
        else:
            self._hash.update(self._last_body())
            self._units += self._weight
            self._weight = weight
        self._body = None
        self.messages.append(message)

    def sha(self, fixed: bytes) -> str:
        """SHA-256 (hex) of the messages and of `fixed`, which stands for the system prompt and the tools."""
        whole = self._hash.copy()
        whole.update(self._last_body())
        whole.update(fixed)
        return whole.hexdigest()

    def _last_body(self) -> bytes:
        """The bytes of the last message, as they are hashed."""
        if self._body is None:
            self._body = canonical(self.messages[-1]) + b","
        return self._body


class _Ids:
    """The ids of a view's calls. Logs that were merged or edited may hold one twice; then the later one is changed."""

    def __init__(self, taken: frozenset[str] | set[str] = frozenset()) -> None:
        self._taken = set(taken)
        self._changed: list[tuple[str, str]] = []

    def copy(self) -> _Ids:
        return _Ids(self._taken)

    def own(self, message: Wire) -> Wire:
        """The message with ids of its own; the same object where nothing has to change."""
        if message["role"] == "tool":
            new = next((new for old, new in self._changed if old == message["tool_call_id"]), "")
            if not new:
                return message
            self._changed.remove((message["tool_call_id"], new))
            return {**message, "tool_call_id": new}
        ids = [call["id"] for call in message.get("tool_calls", ())]
        news = [self._free(name) for name in ids]
        self._changed = [] if news == ids else list(zip(ids, news, strict=True))
        if news == ids:
            return message
        calls = [{**call, "id": new} for call, new in zip(message["tool_calls"], news, strict=True)]
        return {**message, "tool_calls": calls}

    def _free(self, name: str) -> str:
        new, n = name, 1
        while not new or new in self._taken:
            n += 1
            new = f"{name or 'call'}_{n}"
        self._taken.add(new)
        return new


def _mergeable(first: Wire, second: Wire) -> bool:
    """Whether two messages can become one without changing the bytes of the first: text takes no pictures."""
    alike = first["role"] == second["role"] == "user"
    return alike and not (isinstance(first["content"], str) and isinstance(second["content"], list))


def _merge(first: Wire, second: Wire) -> Wire:
    a, b = first["content"], second["content"]
    if isinstance(a, str):
        return {"role": "user", "content": f"{a}\n\n{b}"}
    return {"role": "user", "content": [*a, *([{"type": "text", "text": b}] if isinstance(b, str) else b)]}


FRAME_UNITS = 4.0
"""Uncalibrated tokens that a message takes beside its content: role and marks of the template."""


def message_units(message: Mapping[str, Any], estimator: TokenEstimator) -> float:
    """Uncalibrated tokens of one wire message, its frame included."""
    content = message.get("content")
    total = FRAME_UNITS
    for part in content if isinstance(content, list) else [{"text": content or ""}]:
        total += estimator.units(part["text"]) if "text" in part else OTHER_PART_CHARS / estimator.chars_per_token
    for call in message.get("tool_calls", ()):
        total += 8.0 + estimator.units(call["function"]["name"]) + estimator.units(call["function"]["arguments"])
    if "reasoning_content" in message:
        total += estimator.units(message["reasoning_content"] or "")
    return total


@dataclass(frozen=True)
class ProjectionResult:
    """A view and the account of it. `fates`: number of each message -> shown, stub, covered, left out: ..., orphan.
    `mode`: full_history or folded."""

    view: View
    mode: str = "full_history"
    checkpoint: str = ""
    fates: Mapping[int, str] = field(default_factory=dict)


class ProjectionBuilder:
    """Projects a history under a checkpoint."""

    def __init__(self, estimator: TokenEstimator, resolve: Resolve) -> None:
        self.estimator = estimator
        self.resolve = resolve
        self.plain = False
        """Leave out what a provider asked to have back beside words and calls: one has refused the shape with it."""
        self.segmenter = RoundSegmenter()

    def project(self, messages: Sequence[Entry], checkpoint: Checkpoint | None) -> ProjectionResult:
        """The view of these messages under this checkpoint. Changes nothing and asks nobody."""
        view, patch = View(self.estimator), Patch(checkpoint)
        if checkpoint:
            view.add({"role": "user", "content": clean(preface(checkpoint))})
        for step in self.segmenter.steps(patch.shown(messages)):
            self.extend(view, step, patch)
        mode = "folded" if checkpoint else "full_history"
        return ProjectionResult(view, mode, checkpoint.id if checkpoint else "", {})

    def fates(self, messages: Sequence[Entry], checkpoint: Checkpoint | None) -> dict[int, str]:
        """What became of each message, by its number: the sum is the history."""
        patch = Patch(checkpoint)
        out: dict[int, str] = {}
        for step in self.segmenter.steps(messages):
            for entry in step.entries():
                lost = entry in step.orphans or step.head.kind == "tool_result"
                out[entry.seq] = "left out: orphan" if lost else patch.fate(entry)
        return out

    def extend(self, view: View, step: Step, patch: Patch) -> None:
        """Puts one more step at the end of a view."""
        for message in wire_step(step, patch, self.resolve):
            view.add({k: v for k, v in message.items() if k in _PLAIN} if self.plain else message)
