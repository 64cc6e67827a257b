"""A model that plays a file: answers, tool calls, errors and delays, for tests, demos and bug reports.

docs/scripted.md describes the format. It is a real provider: what it plays goes through the same seam as any other.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.faults import reason
from agent.models.arguments import read_arguments
from agent.models.base import ModelOptions, config_error, usage_of
from runtime.errors import classify_model_error
from runtime.events import ReasoningDelta, TextDelta, ToolCallDelta, Waiting
from runtime.model import Answer, ModelError, ModelErrorKind, ModelEvent, ModelView
from transcripts.records import Assistant, ToolCall, Usage, clean

Entry = Mapping[str, Any]
Step = Entry | str | ModelError | Answer | Callable[[ModelView], Any]
"""One step: an entry as in a file, a text, an error, a whole answer, or what makes one of these of a view."""

WINDOW = 128_000
PIECE = 24
"""Characters of one delta, so that a face has something to draw."""
REMEMBERED = 500
"""Views that are kept; all of a long session would take memory with the square of its length."""
END = "The script is over: it has no more answers."


def create(name: str, options: ModelOptions) -> Scripted:
    """The model that plays the file `name`. `extra` of the options: answered (answers this session has had already, so
    that a resumed session goes on where it was). Raises ModelError CONFIG where the file cannot be read."""
    if not name:
        raise config_error("Which script? Name a file after the colon, for example scripted:answers.jsonl.")
    path = Path(os.path.expanduser(name))
    head, steps = read_script(path)
    window = options.window or head.get("window")
    answered = int(options.extra.get("answered", 0))
    return Scripted(steps, window=window, start=answered, name=path.name, head=head)


def read_script(path: Path) -> tuple[dict[str, Any], list[Step]]:
    """(settings, answers) of a JSON or JSONL file. Raises ModelError CONFIG with file and line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise config_error(f"The script {path} cannot be read: {reason(error, path)}") from error
    entries = _entries(text, path)
    head: dict[str, Any] = {}
    if entries and not _is_answer(entries[0]):
        head = dict(entries.pop(0))
    wrong = next((n for n, e in enumerate(entries, 1) if not _is_answer(e)), None)
    if wrong is not None:
        raise config_error(f"The script {path}: answer {wrong} has none of text, calls, error, finish, reasoning.")
    return head, list(entries)


class Scripted:
    """Plays `steps`, one a request. `views` are the last REMEMBERED views it was shown, oldest first; `position` the
    next step.

    `start` answers count as given: the script goes on behind the one of that number, with any errors that follow it.
    After the last step every request gets the text of `end`; a request for notes (a fold) gets `notes`.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        window: int | None = None,
        start: int = 0,
        name: str = "script",
        head: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = f"scripted:{name}"
        self.views: deque[ModelView] = deque(maxlen=REMEMBERED)
        self._steps = list(steps)
        self.position = _behind(self._steps, start)
        self._head = dict(head or {})
        self._window, self._source = window or WINDOW, "set" if window else "default"

    @property
    def window(self) -> int:
        """The window in tokens, as the script or the person set it."""
        return self._window

    @property
    def window_source(self) -> str:
        """learned, set or default."""
        return self._source

    def learn_window(self, tokens: int) -> None:
        """Takes a window that an error named; a script's server is nobody to remember."""
        self._window, self._source = tokens, "learned"

    def for_task(self, description: str) -> Scripted:
        """What plays a sub-agent's part: the answers that the setting `tasks` has for this description; without any,
        this script itself goes on."""
        own = (self._head.get("tasks") or {}).get(description)
        if own is None:
            return self
        return Scripted(own, window=self._window, name=self.name.partition(":")[2], head=self._head)

    async def prepare(self) -> None:
        """Nothing takes time here."""

    async def close(self) -> None:
        """Nothing is open."""

    async def stream(self, view: ModelView) -> AsyncGenerator[ModelEvent]:
        """Plays the next step; see runtime.model.Model."""
        started = time.monotonic()
        self.views.append(view)
        enforced = self._too_long(view)
        if enforced is not None:
            raise enforced
        step = self._notes() if view.params.get("tool_choice") == "none" else self._next()
        if callable(step) and not isinstance(step, Mapping):
            step = step(view)
        if isinstance(step, ModelError):
            raise step
        if isinstance(step, Answer):
            yield step
            return
        entry: Entry = {"text": step} if isinstance(step, str) else step
        async for event in self._play({**self._head.get("defaults", {}), **entry}, view, started):
            yield event

    def _next(self) -> Step:
        step = self._steps[self.position] if self.position < len(self._steps) else self._head.get("end", END)
        self.position += 1
        return step

    def _notes(self) -> Step:
        """The answer to a request for notes: the setting `notes`, an empty one without it. No step is used up, so that
        a fold never shifts a script."""
        return self._head.get("notes", "")

    def _too_long(self, view: ModelView) -> ModelError | None:
        """With `enforce` in the settings the script's server refuses what is over it, and no step is used up."""
        limit = self._head.get("enforce")
        size = view_tokens(view) if limit else 0
        if not limit or size <= limit:
            return None
        words = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in {size} tokens."
        )
        return classify_model_error(400, "context_length_exceeded", words)

    async def _play(self, entry: Entry, view: ModelView, started: float) -> AsyncGenerator[ModelEvent]:
        if entry.get("delay"):
            yield Waiting(entry.get("waiting", "thinking"))
            await asyncio.sleep(entry["delay"])
        pause = entry.get("stream_delay", 0)
        for kind, text in ((ReasoningDelta, entry.get("reasoning", "")), (TextDelta, entry.get("text", ""))):
            for start in range(0, len(text), PIECE):
                yield kind(clean(text[start : start + PIECE]))
                if pause:
                    await asyncio.sleep(pause)
        message = _message(entry, self.name, self.position)
        if "error" in entry:
            raise _error(entry, message)
        for call in message.calls:
            yield ToolCallDelta(call.name, len(call.arguments))
        yield Answer(message, _usage(entry, view, self.name, started))


def _behind(steps: Sequence[Step], answers: int) -> int:
    """The position behind that many answers; a step that is an error answers nothing."""
    given = 0
    for position, step in enumerate(steps):
        if given == answers:
            return position
        given += not (isinstance(step, ModelError) or (isinstance(step, Mapping) and "error" in step))
    return len(steps) + max(0, answers - given)


def view_tokens(view: ModelView) -> int:
    """What a view would cost at four characters a token: the count a script's server works with."""
    return len(json.dumps([view.system, list(view.tools), list(view.messages)], ensure_ascii=False)) // 4


def _entries(text: str, path: Path) -> list[Entry]:
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict) and "answers" in whole:
        return [{k: v for k, v in whole.items() if k != "answers"}, *whole["answers"]]
    entries: list[Entry] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entries.append(json.loads(line))
        except ValueError as error:
            raise config_error(f"The script {path}, line {number}, is not JSON: {error}") from error
    return entries


def _is_answer(entry: Any) -> bool:
    return isinstance(entry, str) or (
        isinstance(entry, dict) and not {"text", "calls", "error", "finish", "reasoning"}.isdisjoint(entry)
    )


def _message(entry: Entry, model: str, position: int) -> Assistant:
    calls = tuple(_call(c, f"call_{position}_{n}") for n, c in enumerate(entry.get("calls", ()), 1))
    finish = entry.get("finish") or ("tool_calls" if calls else "stop")
    if finish in ("length", "content_filter"):
        problem = "This call was not run: the answer was cut before it was complete."
        calls = tuple(ToolCall(c.id, c.name, c.arguments, c.raw, problem) for c in calls)
    return Assistant(clean(entry.get("text", "")), calls, clean(entry.get("reasoning", "")), finish, model)


def _call(call: Mapping[str, Any], new: str) -> ToolCall:
    raw = call.get("arguments", {})
    arguments, problem = read_arguments(raw)
    kept = clean(raw) if problem and isinstance(raw, str) else ""
    return ToolCall(call.get("id") or new, call["name"], arguments, kept, problem)


def _error(entry: Entry, message: Assistant) -> ModelError:
    try:
        kind = ModelErrorKind(entry["error"])
    except ValueError:
        kind = ModelErrorKind.UNKNOWN
    words = entry.get("message") or str(entry["error"]).replace("_", " ")
    return ModelError(
        kind,
        words,
        status=entry.get("status"),
        limit=entry.get("limit"),
        used=entry.get("used"),
        retry_after=entry.get("retry_after"),
        partial=Assistant(message.text, finish="cut", model=message.model) if message.text else None,
    )


def _usage(entry: Entry, view: ModelView, model: str, started: float) -> Usage:
    reported = entry.get("usage")
    if reported is None:
        said = len(entry.get("text", "")) + len(json.dumps(entry.get("calls", "")))
        reported = {"input_tokens": view_tokens(view), "output_tokens": max(1, said // 4)}
    named = {"input": "input_tokens", "output": "output_tokens", "cached": "cached_tokens"}
    return usage_of({named.get(k, k): v for k, v in reported.items()}, model, started)
