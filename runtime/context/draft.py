"""Draft: a fold while it is being thought out. Strategies change it; nothing counts before the commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from runtime.context.budget import ContextBudgetPolicy, ContextSettings
from runtime.context.estimate import TokenEstimator
from runtime.context.projection import Patch, Span, message_units, place, wire_step
from runtime.context.rounds import Round, RoundSegmenter, Step
from transcripts.log import Entry
from transcripts.records import Checkpoint, ToolCall

Summarise = Callable[[str], Awaitable[str]]
"""An instruction -> the model's notes about the view so far. Raises SummaryFailed."""


PREFACE_OF_GOAL = 0.4
"""At most this part of what the goal leaves: with a low threshold the preface must not crowd out the conversation."""


class SummaryFailed(Exception):
    """No usable notes; the words say why. The fold goes on without them."""


class Draft:
    """The steps of a history with what is to become of them, and what they cost (tokens) under the patch so far.

    `goal` (tokens) is what the strategies work towards; `fixed` (units) what cannot leave: system prompt, tools
    (together `system_units`) and room for the preface (`preface`, tokens).
    """

    def __init__(
        self,
        *,
        messages: Sequence[Entry],
        active: Checkpoint | None,
        policy: ContextBudgetPolicy,
        estimator: TokenEstimator,
        system_units: float,
        goal: int,
        pinned: frozenset[int] = frozenset(),
        summarise: Summarise | None = None,
        focus: str = "",
    ) -> None:
        self.segmenter = RoundSegmenter()
        patch = Patch(active)
        self.steps: list[Step] = self.segmenter.steps(patch.shown(messages))
        """What the fold before left in the view, and what came since."""
        self._messages, self._gone = messages, patch.spans
        self.active, self.policy, self.estimator = active, policy, estimator
        self.goal, self.pinned, self.summarise, self.focus = goal, pinned, summarise, focus
        self.system_units = system_units
        left = goal - estimator.tokens(system_units)
        self.preface = max(0.0, min(policy.preface_room, PREFACE_OF_GOAL * left))
        self.fixed = system_units + self.preface / estimator.factor
        self.reasons: dict[int, str] = {}
        self.texts: dict[str, str] = dict(active.texts) if active else {}
        self.args: dict[str, str] = dict(active.args) if active else {}
        self.blind: set[int] = set(active.without_pictures) if active else set()
        self.notes = active.notes if active else ""
        self.notes_upto = active.notes_upto if active else 0
        self.notes_status = ""
        self._changed: dict[int, Step] = {}
        self._costs = {s.first: self._measure(s) for s in self.steps}
        self._total = sum(self._costs.values())

    @property
    def settings(self) -> ContextSettings:
        """What the person set."""
        return self.policy.settings

    @property
    def tokens(self) -> int:
        """The estimate of the request under the patch so far."""
        for step in self._changed.values():
            self._total -= self._costs[step.first]
            self._costs[step.first] = self._measure(step)
            self._total += self._costs[step.first]
        self._changed.clear()
        return self.estimator.tokens(self.fixed + self._total)

    @property
    def fits(self) -> bool:
        """Whether the goal is reached."""
        return self.tokens <= self.goal

    def visible(self) -> list[Step]:
        """The steps that are in the view, oldest first."""
        return [s for s in self.steps if s.first not in self.reasons]

    @property
    def left_out_upto(self) -> int:
        """The number of the newest message that is left out, by this fold or one before; 0 where none is."""
        return max([0, *(last for _, last, _ in self._gone), *(s.last for s in self.steps if s.first in self.reasons)])

    def rounds(self) -> list[Round]:
        """The rounds of what this fold began with."""
        return self.segmenter.rounds(self.steps)

    def results(self) -> Iterator[tuple[Step, ToolCall, Entry]]:
        """Every tool result in the view with its call, oldest first."""
        for step in self.visible():
            if step.head.kind == "assistant":
                for call in step.head.record.calls:
                    if call.id in step.results:
                        yield step, call, step.results[call.id]

    def is_open(self, step: Step) -> bool:
        """Whether calls of this step still wait for their results: only the newest answer's do. What an older one lacks
        is lost, and keeps nothing in the view."""
        newest = next((s for s in reversed(self.steps) if s.head.kind == "assistant"), None)
        return newest is not None and step.first == newest.first and bool(step.unanswered())

    def is_pinned(self, step: Step) -> bool:
        """Whether the person pinned a message of this step."""
        return any(e.seq in self.pinned for e in step.entries())

    def cost(self, step: Step) -> float:
        """Uncalibrated tokens of a step as it stood when `tokens` was last asked."""
        return self._costs[step.first]

    def text(self, entry: Entry) -> str:
        """The words under which a message would be shown."""
        shown = self.texts.get(str(entry.seq))
        return entry.record.text if shown is None else shown

    def hide(self, step: Step, reason: str) -> None:
        """Leaves a whole step out of the view."""
        self.reasons[step.first] = reason
        self._changed[step.first] = step

    def show_as(self, step: Step, entry: Entry, text: str) -> None:
        """Shows a message under other words, where that is shorter."""
        if len(text) < len(self.text(entry)):
            self.texts[str(entry.seq)] = text
            self._changed[step.first] = step

    def hide_pictures(self, step: Step) -> None:
        """Shows the messages of a step without their pictures."""
        found = {e.seq for e in step.entries() if e.kind != "assistant" and e.record.images} - self.blind
        if found:
            self.blind |= found
            self._changed[step.first] = step

    def shorten_arguments(self, step: Step, call: ToolCall, arguments: str) -> None:
        """Shows a call with other arguments (the text of a JSON object), where that is shorter."""
        key = f"{step.first}:{call.id}"
        if len(arguments) < len(self.args.get(key, call.arguments)):
            self.args[key] = arguments
            self._changed[step.first] = step

    def patch_values(self) -> dict[str, Any]:
        """The patch as values of a checkpoint; words for messages that are left out anyway are dropped."""
        seqs = {e.seq for s in self.visible() for e in s.entries()}
        shown = {str(n) for n in seqs}
        return {
            "upto": self._messages[-1].seq if self._messages else 0,
            "hidden": joined(self._messages, [*self._gone, *self._hidden()]),
            "texts": {k: v for k, v in self.texts.items() if k in shown},
            "args": {k: v for k, v in self.args.items() if k.split(":")[0] in shown},
            "without_pictures": tuple(sorted(self.blind & seqs)),
            "notes": self.notes,
            "notes_upto": self.notes_upto,
        }

    def _hidden(self) -> Iterator[Span]:
        return (
            (e.seq, e.seq, self.reasons[s.first]) for s in self.steps if s.first in self.reasons for e in s.entries()
        )

    def _measure(self, step: Step) -> float:
        if step.first in self.reasons:
            return 0.0
        patch = _DraftPatch(self)
        return sum(message_units(m, self.estimator) for m in wire_step(step, patch, lambda image: "data:"))


def joined(messages: Sequence[Entry], spans: Iterable[Span]) -> dict[str, str]:
    """What is left out, as a checkpoint says it: "first-last" -> reason. Neighbours with one reason are one; what
    stands between a call and its result is not taken along."""
    runs: list[Span] = []
    for first, last, why in sorted(spans):
        start, end = place(messages, first), place(messages, last + 1)
        if runs and runs[-1][1:] == (start, why):
            runs[-1] = (runs[-1][0], end, why)
        elif start < end:
            runs.append((start, end, why))
    return {f"{messages[start].seq}-{messages[end - 1].seq}": why for start, end, why in runs}


class _DraftPatch(Patch):
    """Reads a draft the way the projection reads a checkpoint."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(None)
        self.draft = draft

    def text(self, entry: Entry) -> str:
        return self.draft.text(entry)

    def pictured(self, entry: Entry) -> bool:
        return entry.seq not in self.draft.blind

    def arguments(self, seq: int, call: ToolCall) -> str:
        return self.draft.args.get(f"{seq}:{call.id}", call.arguments)
