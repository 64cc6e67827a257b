"""Signs that something was missed: things done again, asked again or done against the person's word, where what would
have told better was out of view. Code can be wrong about words, so every sign names what it is read from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.context.projection import Patch
from runtime.context.rounds import SPOKEN
from runtime.context.sightings import constraints, named
from transcripts.log import Entry
from transcripts.records import Checkpoint, ToolCall, ToolResult

SOON = 20
"""Calls after a fold within which something done again is laid at its door."""

_WRITERS = frozenset({"write", "edit", "apply_patch"})
_ALIKE = 0.8
"""Part of their words that two questions share if they are the same question."""

_NEGATIVE = re.compile(r"(?i)\b(never|don't|do not|must not|mustn't|without|avoid|leave)\b|不要|禁止|不能")
_PATH = re.compile(r"(?<![\w/.-])/?[\w.-]+(?:/[\w.*-]+)+/?|(?<![\w/.-])[\w-]+\.[A-Za-z]{1,5}\b(?!\.?\w)")
_RUNNING = re.compile(r"(?i)\b(?:run|use|call|execute|start)\s+((?:[\w./-]+ ?){1,3})")
_GIT = re.compile(r"(?i)\b(commit|push|rebase|reset|stash|merge)\b")
_CHANGING = re.compile(
    r"(?:^|[;&|(\s])(?:rm|mv|cp|tee|truncate|unlink|sed\s+-i\S*|git\s+(?:checkout|rm|mv|restore))\s|>"
)


@dataclass(frozen=True)
class Finding:
    """One sign. `kind`: re-read, same command, same question, constraint out of view, constraint broken. `seq`: the
    record where it shows; `about`: those it is about; `fold`: the one whose view it happened under."""

    kind: str
    seq: int
    fold: str
    words: str
    about: tuple[int, ...] = ()


class Place:
    """A view: the fold that shapes it, None where nothing is folded, and what is not shown whole under it (number ->
    fate)."""

    def __init__(self, fold: Checkpoint | None = None, unseen: Mapping[int, str] | None = None) -> None:
        self.fold, self.unseen = fold, unseen or {}
        self.id = fold.id if fold else ""
        self._patch = Patch(fold)
        self._told: dict[tuple[int, str], bool] = {}

    def tells(self, entry: Entry, words: str) -> bool:
        """Whether these words of a message can be read in the view, in the message itself or in what stands for it."""
        if self.fold is None or entry.seq not in self.unseen:
            return True
        key = (entry.seq, words)
        if key not in self._told:
            shown = "" if self._patch.hidden(entry.seq) else self._patch.text(entry)
            self._told[key] = any(words in text for text in (shown, self.fold.state, self.fold.notes))
        return self._told[key]


@dataclass
class _Constraint:
    """What the person forbade or asked for: where, in which words, and the answers that came while it was away."""

    entry: Entry
    words: str
    files: tuple[str, ...]
    commands: tuple[str, ...]
    away: list[int] = field(default_factory=list)
    last: tuple[int, str] = (0, "")


class Signs:
    """Collects signs from the messages of a session in their order. `place` is the view as it stands."""

    def __init__(self) -> None:
        self._place = Place()
        self._calls = 0
        self._found: list[Finding] = []
        self._reads: dict[str, Entry] = {}
        self._runs: dict[str, Entry] = {}
        self._questions: list[tuple[frozenset[str], Entry]] = []
        self._constraints: list[_Constraint] = []

    @property
    def place(self) -> Place:
        """The view that the next answers are given under."""
        return self._place

    @place.setter
    def place(self, place: Place) -> None:
        self._place, self._calls = place, 0

    def all(self) -> Iterator[Finding]:
        """Every finding, in the order of the session."""
        yield from sorted([*self._found, *self._away()], key=lambda finding: finding.seq)

    # -- what happens -------------------------------------------------------------------------------------------------

    def said(self, entry: Entry) -> None:
        """The person said something."""
        if entry.record.source in SPOKEN:
            for words in constraints(entry.record.text):
                self._constraints.append(_Constraint(entry, words, *forbidden(words)))

    def answered(self, number: int, entry: Entry) -> None:
        """The model answered."""
        for constraint in self._constraints:
            if not self.place.tells(constraint.entry, constraint.words):
                constraint.away.append(number)
                constraint.last = (entry.seq, self.place.id)
        for question in _asked(entry):
            self._ask(question, entry)

    def done(self, entry: Entry, call: ToolCall | None) -> None:
        """A call got its result."""
        record: ToolResult = entry.record
        self._calls += 1
        command, path = record.meta.get("command"), record.meta.get("path")
        if record.name == "read" and isinstance(path, str) and record.status == "ok":
            self._read(path, entry)
        elif isinstance(command, str):
            self._run(command, entry)
        if record.name in _WRITERS and record.status == "ok":
            self._runs.clear()
        self._obey(entry, list(record.files) if record.name in _WRITERS and record.status == "ok" else [], command)

    # -- again --------------------------------------------------------------------------------------------------------

    def _missed(self, before: Entry) -> bool:
        """Whether a message was out of view because of a fold that lies only a few calls back."""
        return before.seq in self.place.unseen and self._calls <= SOON

    def _since(self) -> str:
        return "the first call after the fold" if self._calls == 1 else f"call {self._calls} after the fold"

    def _note(self, kind: str, entry: Entry, before: Entry, words: str) -> None:
        self._found.append(Finding(kind, entry.seq, self.place.id, words, (before.seq,)))

    def _read(self, path: str, entry: Entry) -> None:
        key = f"{path}:{entry.record.meta.get('lines', '')}"
        before = self._reads.get(key)
        same = before is not None and before.record.meta.get("sha") == entry.record.meta.get("sha")
        if before is not None and same and self._missed(before):
            words = f"read {path} again, unchanged since #{before.seq}; {self._since()}"
            self._note("re-read", entry, before, words)
        self._reads[key] = entry

    def _run(self, command: str, entry: Entry) -> None:
        before = self._runs.get(command)
        if before is not None and before.record.text == entry.record.text and self._missed(before):
            words = f"ran {_short(command)} again, same result as #{before.seq}; {self._since()}"
            self._note("same command", entry, before, words)
        self._runs[command] = entry

    def _ask(self, question: str, entry: Entry) -> None:
        words = frozenset(re.findall(r"\w+", question.casefold()))
        for other, before in self._questions:
            if before.seq in self.place.unseen and len(words & other) >= _ALIKE * len(words | other):
                self._note("same question", entry, before, f"asked again what #{before.seq} had asked: {question}")
                break
        if len(words) >= 4:
            self._questions.append((words, entry))

    # -- against the person's word ------------------------------------------------------------------------------------

    def _obey(self, entry: Entry, wrote: Sequence[str], command: Any) -> None:
        for constraint in self._constraints:
            what = _breach(constraint, wrote, command)
            if what:
                seen = self.place.tells(constraint.entry, constraint.words)
                view = "in view" if seen else "out of view"
                said = f"#{constraint.entry.seq}, {view}, says: {_short(constraint.words)}"
                self._note("constraint broken", entry, constraint.entry, f"{what}, though {said}")

    def _away(self) -> Iterator[Finding]:
        for constraint in self._constraints:
            if constraint.away:
                seq, fold = constraint.last
                words = f"{_short(constraint.words)} (#{constraint.entry.seq}) could not be seen by answers "
                yield Finding(
                    "constraint out of view", seq, fold, words + _runs(constraint.away), (constraint.entry.seq,)
                )


def forbidden(words: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(files, commands) that a sentence forbids, as far as code can tell; empty where it forbids nothing."""
    if not (negative := _NEGATIVE.search(words)):
        return (), ()
    rest = words[negative.start() :]
    files = [m[0].rstrip(".").strip("/") for m in _PATH.finditer(rest)]
    commands = [m[1].strip().rstrip(".") for m in _RUNNING.finditer(rest)]
    commands += [f"git {m[1].lower()}" for m in _GIT.finditer(rest)]
    for name in named(rest):
        (commands if " " in name else files).append(name)
    return tuple(dict.fromkeys(f for f in files if len(f) > 2)), tuple(dict.fromkeys(c for c in commands if len(c) > 3))


def _breach(constraint: _Constraint, wrote: Sequence[str], command: Any) -> str:
    """What was done against a constraint, in words; "" where nothing was."""
    for path in wrote:
        inside = f"/{path.strip('/')}/"
        if any(f"/{file.strip('/')}/" in inside for file in constraint.files):
            return f"wrote {path}"
    if isinstance(command, str):
        changes = bool(_CHANGING.search(command))
        if any(_stands_in(c, command) for c in constraint.commands) or (
            changes and any(_stands_in(file, command) for file in constraint.files)
        ):
            return f"ran {_short(command)}"
    return ""


def _stands_in(words: str, command: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(words)}(?![\w-])", command) is not None


def _asked(entry: Entry) -> Iterator[str]:
    """Questions to the person in an answer: those of the tool for it, and the last sentence of an answer that ends the
    turn."""
    for call in entry.record.calls:
        if call.name == "ask_user":
            yield str(call.args.get("question", ""))
    text = entry.record.text.strip()
    if not entry.record.calls and text.endswith(("?", "？")):
        yield re.split(r"(?<=[.!?。！？])\s+|\n+", text)[-1]


def _short(words: str, most: int = 80) -> str:
    line = " ".join(words.split())
    return f"`{line}`" if len(line) <= most else f"`{line[: most - 4]} ...`"


def _runs(numbers: list[int]) -> str:
    out: list[list[int]] = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in out)
