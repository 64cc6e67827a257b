"""One `match` over events: what is finished is printed, what is not is live."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from agent.clean import one_line, plain
from agent.evidence import Evidence
from agent.terminal import blocks
from agent.terminal.activity import Activity, Running
from agent.terminal.fragments import Rows
from agent.terminal.numbers import seconds
from agent.terminal.region import Live
from agent.terminal.screen import WIDEST, Screen
from agent.terminal.shell import Ran
from agent.terminal.stream import Block, MarkdownStream, tail_of
from agent.terminal.words import call_title, end_line, retry_line
from runtime.events import (
    AnswerRecorded,
    Compacted,
    CompactFailed,
    Compacting,
    Event,
    Notice,
    ReasoningDelta,
    RequestSent,
    Retrying,
    Steered,
    TaskEvent,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Waiting,
)
from runtime.folding import failed_line
from transcripts.blobs import Blobs
from transcripts.records import ToolCall, ToolResult

KEPT = 40
"""Outputs that Ctrl-O can show in full."""

PAGED = 4_000_000
"""Characters of one output that the pager shows: it lays all of them out at once."""

PROGRESS = 8_000
"""Characters of a running command's output that are kept for the live lines."""


@dataclass(frozen=True)
class Output:
    """Something that was printed short. Where even `text` is not all of it, `blob` is the id of the whole."""

    title: str
    text: str
    blob: str = ""

    def whole(self, blobs: Blobs) -> str:
        """All of it, as far as it is kept; of what is too long for a pager both ends."""
        try:
            text = blobs.get(self.blob).decode("utf-8", "replace")
        except (KeyError, ValueError, OSError):
            return self.text
        if len(text) <= PAGED:
            return text
        half = PAGED // 2
        return f"{text[:half]}\n[... {len(text) - 2 * half:,} of {len(text):,} characters left out ...]\n{text[-half:]}"


class View:
    """Shows the events of one session. `title_of` gives a call its heading."""

    def __init__(self, screen: Screen, live: Live, activity: Activity, title_of: Callable[[ToolCall], str]) -> None:
        self.outputs: deque[Output] = deque(maxlen=KEPT)
        self.answer = ""
        self.evidence = Evidence()
        self.used = 0
        self.window = 0
        self._screen = screen
        self._live = live
        self._activity = activity
        self._title_of = title_of
        self._stream = MarkdownStream()
        self._said = 0
        self._thoughts: list[str] = []
        self._thinking_since = 0.0
        self._dirty = self._asked = False
        self._titles: dict[str, str] = {}

    def keep(self, title: str, text: str, blob: str = "") -> None:
        """One more output for Ctrl-O; one that is empty is not kept."""
        if text.strip():
            self.outputs.append(Output(title, text, blob))

    def keep_result(self, title: str, result: ToolResult) -> None:
        """What a call did, for Ctrl-O: the change it made, else what it said."""
        changed = str(result.meta.get("diff") or "")
        self.keep(title, changed or result.text, "" if changed else result.blob)

    def begin_session(self, used: int, window: int) -> None:
        """Another session: nothing of the last one holds any more. `used` of `window` tokens are taken."""
        self.answer, self.used, self.window = "", used, window
        self.evidence = Evidence()
        self.outputs.clear()

    # -- the frame --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A turn begins."""
        self._activity.begin("asking the model")
        self._titles.clear()

    def end(self) -> None:
        """A turn is over, however it ended; nothing live is left of it."""
        self._finish_text()
        self._finish_thought()
        self._cut_short()
        self._activity.end()
        self._screen.refresh()

    def tick(self, n: int) -> None:
        """Some time has passed: what is being written is drawn anew. The spinner turns at every third tick; it stands
        still while the person is asked something."""
        if self._dirty:
            self._draw_tail()
            self._screen.refresh()
        elif n % 3 == 0 and self._live.dialog is None:
            self._screen.refresh()

    def show(self, event: Event) -> None:
        """Takes one event."""
        self.evidence.see(event)
        match event:
            case TextDelta(text):
                self._text(text)
            case ReasoningDelta(text):
                self._reason(text)
            case ToolCallDelta(name, chars):
                self._finish_thought()
                self._activity.phase(
                    f"writing a call of {name or 'a tool'}" + (f", {chars:,} characters" if chars > 400 else "")
                )
            case Waiting(what, done, total):
                self._activity.phase(what, done, total)
            case RequestSent(_, estimate, window):
                self.used, self.window = estimate, window
                self._activity.phase("waiting for the model")
            case AnswerRecorded():
                self._recorded(event)
            case ToolStarted() | ToolProgress() | ToolFinished() | TaskEvent():
                self._tool(event)
            case _:
                self._rest(event)

    def _rest(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._activity.phase("asking the model")
            case Steered(text):
                self._finish_text()
                self._screen.print(blocks.user(text, self._screen.theme, self._screen.theme.sign("↳ ", "> ")))
            case Compacting():
                self._activity.phase("folding the conversation")
            case Compacted(checkpoint, line):
                self.used = checkpoint.tokens_after
                self.note(line, "fold")
            case CompactFailed(why, floor):
                self.note(f"Could not fold: {failed_line(why, floor)}", "warn")
            case Retrying(wait=wait):
                self._finish_text()
                self.note(retry_line(event), "warn")
                self._activity.phase(f"waiting {seconds(wait)} before the next try")
            case Notice(text, level):
                self.note(text, {"warning": "warn", "error": "error"}.get(level, "info"))
            case TurnEnded():
                self._ended(event)
            case _:
                pass

    def note(self, text: str, role: str = "info") -> None:
        """A line of refold's own."""
        self._screen.print(blocks.note(text, role, self._screen.theme))

    # -- text -------------------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        self._finish_thought()
        self._said += len(text)
        self._activity.tokens += len(text) / 4
        self._activity.phase("writing")
        done = self._stream.feed(text)
        self._dirty = True
        if done:
            self._print_blocks(done)
            self._draw_tail()

    def _print_blocks(self, done: list[Block]) -> None:
        for block in done:
            lines = blocks.block_lines(block, self._screen.paper, min(self._screen.width, WIDEST))
            self._screen.print_lines(lines, gap=not block.glued)

    def _draw_tail(self) -> None:
        self._dirty = False
        block = self._stream.pending()
        if block is None:
            self._live.tail = []
            return
        paper, rows = self._screen.paper, self._screen.rows // 2
        block = tail_of(block, rows, rows * self._screen.width)
        lines = blocks.block_lines(block, paper, min(self._screen.width, WIDEST))[-self._screen.rows :]
        gap: Rows = [] if block.glued else [[("", "")]]
        self._live.tail = [*gap, *(paper.fragments([line]) for line in lines)]

    def _finish_text(self) -> None:
        self._print_blocks(self._stream.close())
        self._live.tail = []
        self._dirty = False

    def _reason(self, text: str) -> None:
        if not self._thoughts:
            self._thinking_since = time.monotonic()
        self._thoughts.append(text)
        self._activity.tokens += len(text) / 4
        self._activity.phase("thinking")
        self._activity.thinking = plain((self._activity.thinking + text)[-600:])

    def _finish_thought(self) -> None:
        if not self._thoughts:
            return
        text = "".join(self._thoughts).strip()
        spent = time.monotonic() - self._thinking_since
        took = f" for {seconds(spent)}" if spent >= 1 else ""
        self._thoughts.clear()
        self._activity.thinking = ""
        if text:
            self.keep("thinking", text)
            self._screen.print(blocks.thought(text, took, self._screen.theme))

    def _recorded(self, event: AnswerRecorded) -> None:
        self._finish_thought()
        if not self._said and event.message.text.strip():
            self._print_blocks(self._stream.feed(event.message.text))
        self._finish_text()
        self._said = 0
        self.answer = event.message.text or self.answer
        if event.usage.input is not None:
            self.used = event.usage.input + (event.usage.output or 0)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _tool(self, event: ToolStarted | ToolProgress | ToolFinished | TaskEvent) -> None:
        running = self._activity.running
        match event:
            case ToolStarted(call, _, title):
                self._titles[call.id] = one_line(title or self.title(call), 160)
                running[call.id] = Running(self._titles[call.id], time.monotonic(), call=call)
                self._activity.phase("running")
            case ToolProgress(call, text):
                if call.id in running:
                    running[call.id].output = (running[call.id].output + text)[-PROGRESS:]
            case TaskEvent(call):
                if call.id in running:
                    running[call.id].doing = event.doing
            case ToolFinished(call, result):
                running.pop(call.id, None)
                title = self._titles.pop(call.id, "") or one_line(self.title(call), 160)
                self.keep_result(title, result)
                if self._asked and call.name == "ask_user" and result.status == "ok":
                    self._asked = False  # the question and the answer are there to be read
                    return
                self._screen.print(blocks.tool(title, call, result, self._screen.theme), short=True)

    def _cut_short(self) -> None:
        """Prints the calls that were stopped while they ran, with what they had said by then."""
        now = time.monotonic()
        for run in [r for r in self._activity.running.values() if r.call is not None]:
            assert run.call is not None
            meta = {"seconds": round(now - run.since, 3)}
            self.keep(run.title, run.output)
            result = ToolResult(run.call.id, run.call.name, run.output or run.doing, "interrupted", meta=meta)
            self._screen.print(blocks.tool(run.title, run.call, result, self._screen.theme), short=True)
        self._activity.running.clear()

    def forget_running(self) -> None:
        """Calls that are known to have begun leave no line: what became of them is drawn by who knows it."""
        self._activity.running.clear()

    def asked(self, question: str) -> None:
        """Prints what the model wants to know, whole."""
        self._finish_text()
        self._asked = True
        self._screen.print(Text.assemble(("? ", "accent"), (plain(question), "bold")), prose=True)

    def told(self, words: str) -> None:
        """Prints what the person said to the model in an answer to a question."""
        if words:
            theme = self._screen.theme
            self._screen.print(blocks.user(words, theme, theme.sign("↳ ", "> ")))

    def not_run(self, title: str) -> None:
        """Prints the heading of a call that was asked about and given up with its turn."""
        head = blocks.heading(one_line(title, 160), "not_run", self._screen.theme)
        self._screen.print(blocks.hanging(Text.assemble(head, ("  not run", "warn"))), short=True)

    def follow_command(self, command: str) -> Callable[[str], None]:
        """The live lines follow a command of the person's; returns what takes its output."""
        running = Running(one_line(command, 160), time.monotonic())
        self._activity.running[command] = running

        def take(text: str) -> None:
            running.output = (running.output + text)[-PROGRESS:]

        return take

    def show_command(self, ran: Ran) -> None:
        """Prints a command of the person's that has ended."""
        status = "interrupted" if ran.stopped else "error" if ran.code else "ok"
        meta = {"seconds": ran.seconds} if ran.stopped else {"exit_code": ran.code, "seconds": ran.seconds}
        result = ToolResult("", "bash", ran.output, status, meta=meta)
        self.keep(ran.command, ran.output)
        self._screen.print(blocks.command(result, self._screen.theme))

    def title(self, call: ToolCall) -> str:
        """The heading of a call."""
        try:
            return self._title_of(call)
        except (ValueError, KeyError, TypeError):
            return call_title(call)

    def _ended(self, event: TurnEnded) -> None:
        self._finish_thought()
        self._finish_text()
        self._cut_short()
        if line := self.evidence.line():
            self.note(line, "ok" if self.evidence.holds() else "warn")
        role, words = end_line(event)
        if words:
            self.note(words, role)
