"""An earlier conversation, drawn again when it is resumed: its log becomes events, and the view draws them as it drew
them the first time. Only what was never written down is missing: how long it thought, and refold's own notices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rich.text import Text

from agent.clean import one_line
from agent.permitting import word_of
from agent.terminal import blocks
from agent.terminal.screen import Screen
from agent.terminal.shell import Ran
from agent.terminal.view import View
from runtime.events import AnswerRecorded, Compacted, ReasoningDelta, Steered, ToolFinished, ToolStarted, TurnEnded
from runtime.folding import fold_line
from tools.ask_user import ANSWERED
from transcripts.log import Entry
from transcripts.records import Assistant, Checkpoint, ToolCall, ToolResult, TurnEnd, Usage, User
from transcripts.records import ToolStarted as Begun

SHOWN = 60
"""Messages that are drawn again; the earlier ones are counted."""

LOOKED_AT = 400
"""Entries before those that are looked through for what was run and edited last."""

_DRAWN = frozenset({"user", "assistant", "tool_result", "tool_started", "turn_end", "checkpoint"})
_MESSAGES = frozenset({"user", "assistant", "tool_result"})

_FATE = re.compile(r"(?:(?:\A|\n)\[[^\n]*\])+\s*\Z")
"""The sentences for the model at the end of what a stopped call had said."""

UNFINISHED = "no result: refold ended before this was over"


def replay(view: View, screen: Screen, entries: Sequence[Entry]) -> None:
    """Prints the end of a conversation from the entries of its log. What refold itself told the model is left out."""
    _Replay(view, screen, surviving(entries)).run()


def surviving(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that can be drawn, less what a rewind set aside."""
    out: list[Entry] = []
    for entry in entries:
        if entry.kind in _DRAWN:
            out.append(entry)
        elif entry.kind == "rewind":
            while out and out[-1].seq > entry.record.to:
                out.pop()
    return out


class _Replay:
    """One run over the entries. `open` are calls without a result so far, `late` the results that were written down
    after their turn had been stopped, and were drawn with its end. `cut`: a call of this turn was stopped."""

    def __init__(self, view: View, screen: Screen, entries: list[Entry]) -> None:
        self._view = view
        self._screen = screen
        self._entries = entries
        self._open: dict[str, ToolCall] = {}
        self._late: set[str] = set()
        self._cut = False

    def run(self) -> None:
        told = [n for n, e in enumerate(self._entries) if e.kind in _MESSAGES and not _harness(e)]
        hidden = len(told) - SHOWN if len(told) > SHOWN + 1 else 0
        first = told[hidden] if hidden else 0
        if hidden:
            words = f"{hidden:,} earlier messages are not drawn again; all of them are there."
            self._view.note(words)
        view = self._view
        used, window, clock = view.used, view.window, view.evidence.clock
        for n, entry in enumerate(self._entries[max(0, first - LOOKED_AT) :], max(0, first - LOOKED_AT)):
            at = _seconds(entry.at)
            view.evidence.clock = lambda at=at: at
            if n < first:
                self._remember(entry)
            else:
                self._draw(n, entry)
        view.evidence.clock = clock
        view.used, view.window = used, window
        view.forget_running()
        view.end()
        for call in self._open.values():
            head = blocks.heading(one_line(view.title(call), 160), "unknown", self._screen.theme)
            self._screen.print(blocks.hanging(Text.assemble(head, (f"  {UNFINISHED}", "warn"))))

    def _remember(self, entry: Entry) -> None:
        """Takes what was run and edited before the first entry that is drawn."""
        record, evidence = entry.record, self._view.evidence
        match record:
            case Assistant(_, calls):
                self._open = {c.id: c for c in calls}
            case Begun(call_id, _, effect):
                if call_id in self._open:
                    evidence.see(ToolStarted(self._open[call_id], effect, ""))
            case ToolResult(call_id, name):
                evidence.see(ToolFinished(self._open.pop(call_id, None) or ToolCall(call_id, name), record, entry.seq))
            case TurnEnd():
                evidence.line()
            case _:
                pass

    def _draw(self, n: int, entry: Entry) -> None:
        view, record = self._view, entry.record
        match record:
            case User():
                self._user(record, entry.seq)
            case Assistant(_, calls, reasoning):
                if reasoning.strip():
                    view.show(ReasoningDelta(reasoning))
                view.show(AnswerRecorded(record, Usage(), entry.seq))
                self._open.update({c.id: c for c in calls})
            case Begun(call_id, _, effect):
                if call_id in self._open:
                    view.show(ToolStarted(self._open[call_id], effect, ""))
            case ToolResult(call_id):
                if call_id not in self._late:
                    self._result(record, entry.seq)
            case TurnEnd(reason, message):
                self._end_calls(n)
                view.forget_running()
                view.show(TurnEnded(reason, message=message))
            case Checkpoint():
                view.show(Compacted(record, fold_line(record)))
            case _:
                pass

    def _user(self, record: User, seq: int) -> None:
        screen, text = self._screen, record.text
        if record.source == "steered":
            self._view.show(Steered(_shortened(text), seq))
        elif record.source == "shell":
            ran = Ran.of_message(text)
            screen.print(blocks.user(f"!{_shortened(ran.command if ran else text)}", screen.theme))
            if ran:
                self._view.show_command(ran)
        elif record.source != "harness":
            screen.print(blocks.user(_shortened(text), screen.theme))

    def _result(self, result: ToolResult, seq: int) -> None:
        call = self._open.pop(result.call_id, None) or ToolCall(result.call_id, result.name)
        view = self._view
        if result.status == "denied" and (said := word_of(result.text)) is not None:
            view.told(_shortened(said))
        elif call.name == "ask_user" and result.status == "ok" and not call.problem:
            view.asked(str(call.args.get("question", "")).strip())
            view.told(result.text.removeprefix(ANSWERED) if result.text.startswith(ANSWERED) else "(no answer)")
        elif result.status == "interrupted":
            self._cut = True
            result = replace(result, text=_FATE.sub("", result.text))
        view.show(ToolFinished(call, result, seq))

    def _end_calls(self, n: int) -> None:
        """Draws the calls that a stop left open: their results stand behind the end of the turn. Of those that had not
        begun the first was asked about, unless the one before it was stopped; the others never came up."""
        later = {e.record.call_id: e for e in self._entries[n + 1 : n + 1 + 2 * len(self._open)] if _result_of(e)}
        came_up, self._cut = self._cut, False
        for call in list(self._open.values()):
            entry = later.get(call.id)
            if entry is None:
                continue
            self._late.add(call.id)
            if entry.record.status != "not_run":
                self._result(entry.record, entry.seq)
            elif not came_up:
                self._view.not_run(self._view.title(call))
            self._open.pop(call.id, None)
            came_up = True


def _harness(entry: Entry) -> bool:
    return entry.kind == "user" and entry.record.source == "harness"


def _result_of(entry: Entry) -> bool:
    return entry.kind == "tool_result"


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _shortened(text: str) -> str:
    lines = text.split("\n")
    return text if len(lines) <= 12 else "\n".join([*lines[:10], f"… {len(lines) - 10} more lines"])
