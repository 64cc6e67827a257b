"""Third: cut down to a budget. Middles of long texts, then the oldest steps; it works inside one huge round, and it is
what a rescue rests on, for it asks no model."""

from __future__ import annotations

import json

from runtime.context.draft import Draft
from runtime.context.pages import PIECE
from runtime.context.rounds import Step
from transcripts.log import Entry

_CAPS = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
"""Characters a text may keep, tried from generous to harsh."""

_FIRM_CAPS = (8_000, 4_000, 2_000)
_CLOSE_CAPS = (1_000, 500)
"""What the newest texts are cut to, the agent's at last closer, before any of the person's words within their share
leave the view: a tool can say its part again."""

_LARGEST_PART = 0.5
"""Part of the goal that one of the newest texts is first cut to: ten windows of text still fill a good deal of one."""

_HARSH_CAPS = (1_000, 500, 250, 120, 60)


class Truncation:
    """Brings the view down to `token_budget` (or the goal, if that is lower).

    Stays as it is, as long as anything else can give way: the newest `min_keep` messages, the last prompt, calls that
    wait for a result, pinned messages.
    """

    name = "truncation"
    loss = 30

    def wanted(self, draft: Draft) -> bool:
        """Whether the goal is not reached yet."""
        return not draft.fits

    async def discard(self, draft: Draft) -> None:
        """Gives up, in this order: middles of the agent's texts, its oldest steps, the person's older words over their
        share of the window, middles of what is newest, the person's older words, and at last whatever is left."""
        goal = draft.goal
        if draft.settings.token_budget:
            draft.goal = min(goal, draft.settings.token_budget)
        newest = _newest(draft, draft.settings.min_keep)
        old = [s for s in draft.visible() if s.first not in newest]
        agent = [s for s in old if not s.is_person and not draft.is_pinned(s)]
        person = [s for s in old if s.is_person and not draft.is_pinned(s)]
        _cut_middles(draft, agent, _CAPS)
        _put_pictures_away(draft, agent)
        _leave_out(draft, [s for s in agent if not draft.is_open(s)], self.name)
        # What is dearer than that gives way to the goal alone: a budget may be smaller than anything can be made.
        draft.goal = goal
        _cut_middles(draft, person, _CAPS)
        _put_pictures_away(draft, person)
        _shed_words(draft, _over_the_share(draft, person))
        _cut_middles(draft, draft.visible(), (*_large_caps(draft), *_FIRM_CAPS))
        _cut_middles(draft, [s for s in draft.visible() if not s.is_person and not draft.is_pinned(s)], _CLOSE_CAPS)
        _shed_words(draft, [s for s in person if s.first not in draft.reasons])
        _put_pictures_away(draft, draft.visible())
        _cut_middles(draft, draft.visible(), _HARSH_CAPS)
        rest = [s for s in draft.visible() if not draft.is_open(s) and not _is_last_prompt(draft, s)]
        _leave_out(draft, rest, self.name)


def _large_caps(draft: Draft) -> list[int]:
    """Caps over the firm ones, in halves: only in a large window is there room for them."""
    caps = [int(_LARGEST_PART * draft.goal * draft.settings.chars_per_token / draft.estimator.factor)]
    while caps[-1] > 2 * _FIRM_CAPS[0]:
        caps.append(caps[-1] // 2)
    return [cap for cap in caps if cap > _FIRM_CAPS[0]]


def _newest(draft: Draft, count: int) -> set[int]:
    """The steps that hold the newest `count` messages, and the last prompt."""
    kept: set[int] = set()
    messages = 0
    for step in reversed(draft.visible()):
        if messages < max(1, count):
            kept.add(step.first)
        messages += len(step.entries())
    return kept | {s.first for s in draft.visible() if _is_last_prompt(draft, s)}


def _is_last_prompt(draft: Draft, step: Step) -> bool:
    last = next((s for s in reversed(draft.steps) if s.is_person), None)
    return last is not None and last.first == step.first


def _cut_middles(draft: Draft, steps: list[Step], caps: tuple[int, ...]) -> None:
    for cap in caps:
        for step in steps:
            if draft.fits:
                return
            for entry in step.entries():
                _cut(draft, step, entry, cap)
            _cut_arguments(draft, step, cap)


def _put_pictures_away(draft: Draft, steps: list[Step]) -> None:
    for step in steps:
        if draft.fits:
            return
        draft.hide_pictures(step)


def _cut(draft: Draft, step: Step, entry: Entry, cap: int) -> None:
    text = draft.text(entry)
    if len(text) > cap + 80:
        # What was too large for the door is another text than what recall shows: its lines have other numbers.
        draft.show_as(step, entry, middle_out(entry.record.text, cap, entry.seq, not getattr(entry.record, "blob", "")))


def _cut_arguments(draft: Draft, step: Step, cap: int) -> None:
    for call in step.head.record.calls if step.head.kind == "assistant" else ():
        if len(call.arguments) > cap + 80:
            args = {k: _cut_value(v, cap, step.first) for k, v in call.args.items()}
            draft.shorten_arguments(step, call, json.dumps(args, ensure_ascii=False))


def _cut_value(value: object, cap: int, seq: int) -> object:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= cap + 80 else middle_out(text, cap, seq)


def middle_out(text: str, cap: int, seq: int, numbered: bool = False) -> str:
    """The text of message `seq` with its middle left out: at most about `cap` characters, two thirds of them from the
    beginning; whole lines where that costs little. `numbered`: recall shows just this text, so the line where it goes
    on can be named."""
    first, last = cap * 2 // 3, cap // 3
    head, tail = text[:first], text[len(text) - last :]
    if (end := head.rfind("\n", first * 3 // 4)) > 0:
        head = head[:end]
    if 0 <= (start := tail.find("\n", 0, last // 4)) < len(tail) - 1:
        tail = tail[start + 1 :]
    whole = numbered and end > 0 and all(len(line) <= PIECE for line in head.split("\n"))
    line = f", start={head.count(chr(10)) + 2}" if whole else ""
    left = len(text) - len(head) - len(tail)
    return f'{head}\n[... {left:,} characters folded: recall(id="#{seq}"{line}) ...]\n{tail}'


def _leave_out(draft: Draft, steps: list[Step], reason: str) -> None:
    for step in steps:
        if draft.fits:
            return
        draft.hide(step, reason)


def _over_the_share(draft: Draft, steps: list[Step]) -> list[Step]:
    """The person's words that are more than `user_share` of the window: the oldest, but for the first request."""
    room = draft.settings.user_share * draft.policy.window
    over: list[Step] = []
    for step in [*_first_request(steps), *_later(steps)[::-1]]:
        room -= draft.estimator.tokens(draft.cost(step))
        if room < 0:
            over.append(step)
    return over[::-1]


def _first_request(steps: list[Step]) -> list[Step]:
    """The first thing the person said; what a hook or a command of theirs said may stand before it."""
    return [s for s in steps if s.is_spoken][:1] or steps[:1]


def _later(steps: list[Step]) -> list[Step]:
    first = {s.first for s in _first_request(steps)}
    return [s for s in steps if s.first not in first]


def _shed_words(draft: Draft, steps: list[Step]) -> None:
    """The person's oldest words leave last, and only as far as they must; the first request stays longest."""
    for step in [*_later(steps), *_first_request(steps)]:
        if draft.fits:
            return
        draft.hide(step, Truncation.name)


STRATEGY = Truncation()
