"""First to go: what a tool can say again. Old results become one line that says what they were and how to get them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from runtime.context.draft import Draft
from runtime.context.facts import validity
from runtime.context.rounds import Step
from runtime.context.sightings import exit_of
from transcripts.log import Entry
from transcripts.records import ToolCall

_LARGE_ARGUMENT = 400
"""Characters from which one argument of an old write call is worth a stub."""

_HEAD_ARGUMENT = 80
_MOST_NAMES = 4
"""Files that are named one by one in a stub."""

_KEEP_TOOLS = frozenset({"recall"})


class ToolResults:
    """Stubs old results and the large arguments of old calls.

    The newest `keep_last` results stay whatever happens, and, if the goal can be reached without them, so do those of
    the newest quarter of the goal. All others longer than `max_result_chars` go at once: the prefix breaks only once.
    """

    name = "tool_results"
    loss = 10

    def wanted(self, draft: Draft) -> bool:
        """Whether the goal is not reached yet."""
        return not draft.fits

    async def discard(self, draft: Draft) -> None:
        """Stubs what lies before the protected tail, then, if need be, the tail too."""
        later = superseded(list(draft.results()))
        for protect in (draft.goal // 4, 0):
            for step, call, entry in _eligible(draft, protect, later):
                _stub_result(draft, step, call, entry, later.get(entry.seq, 0))
                _stub_arguments(draft, step, call)
            if draft.fits:
                return


def _eligible(draft: Draft, protect: int, later: dict[int, int]) -> Iterator[tuple[Step, ToolCall, Entry]]:
    kept, last = 0, 0
    for age, (step, call, entry) in enumerate(reversed(list(draft.results()))):
        kept += draft.estimator.tokens(draft.cost(step)) if step.first != last else 0
        last = step.first
        if age >= draft.settings.keep_last and not draft.is_pinned(step) and (kept > protect or entry.seq in later):
            yield step, call, entry


def superseded(results: list[tuple[Step, ToolCall, Entry]]) -> dict[int, int]:
    """Results that a later one makes worthless: number -> number of the later one.

    A read is superseded by the same read again and by a write of the file; any result by the same call with the same
    answer.
    """
    writes: dict[str, int] = {}
    same: dict[tuple[str, str], tuple[int, str]] = {}
    out: dict[int, int] = {}
    for _, call, entry in reversed(results):
        files, key = entry.record.files, (call.name, call.arguments)
        again = same.get(key)
        rewritten = [writes[path] for path in files if path in writes]
        if call.name == "read" and rewritten:
            out[entry.seq] = rewritten[0]
        elif again and (call.name == "read" or again[1] == entry.record.text):
            out[entry.seq] = again[0]
        same.setdefault(key, (entry.seq, entry.record.text))
        if call.name != "read" and entry.record.status == "ok":
            writes = {**dict.fromkeys(files, entry.seq), **writes}
    return out


def _stub_result(draft: Draft, step: Step, call: ToolCall, entry: Entry, later: int) -> None:
    text = entry.record.text
    if str(entry.seq) in draft.texts or len(text) <= draft.settings.max_result_chars or call.name in _KEEP_TOOLS:
        return
    size = draft.estimator.tokens(draft.estimator.units(text))
    head = " ".join(text[: draft.settings.max_result_chars].split())
    what = f"#{entry.seq} {call.name} result, {size:,} tokens, folded"
    draft.show_as(step, entry, f'[{what}; {_truth(entry, later)}recall(id="#{entry.seq}") shows it] {head}')


def _truth(entry: Entry, later: int) -> str:
    """Whether the result is still true, as far as code can tell."""
    files = entry.record.files if entry.record.status == "ok" else {}
    if later:
        return f"superseded by #{later}; "
    if files:
        return _stand(files)
    code = exit_of(entry.record.meta)
    return f"exit {code}; " if code is not None else ""


def _stand(files: Mapping[str, str]) -> str:
    """How files stand now; where a call touched several, those that stand alike share a word."""
    alike: dict[str, list[str]] = {}
    for path, sha in files.items():
        alike.setdefault(validity({"path": path, "sha": sha}), []).append(os.path.basename(path))
    if len(files) == 1:
        return "".join(f"file {truth}; " for truth in alike)
    shown = {truth: names if len(names) <= _MOST_NAMES else [f"{len(names)} files"] for truth, names in alike.items()}
    return "".join(f"{', '.join(names)} {truth}; " for truth, names in shown.items())


def _stub_arguments(draft: Draft, step: Step, call: ToolCall) -> None:
    if len(call.arguments) < _LARGE_ARGUMENT or step.first in draft.pinned:
        return
    short = {}
    for key, value in call.args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) < _LARGE_ARGUMENT:
            short[key] = value
        else:
            short[key] = f'{text[:_HEAD_ARGUMENT]} [... {len(text):,} characters folded: recall(id="#{step.first}")]'
    draft.shorten_arguments(step, call, json.dumps(short, ensure_ascii=False))


STRATEGY = ToolResults()
