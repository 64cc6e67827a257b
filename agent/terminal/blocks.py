"""Events as things to print: the person's words, finished pieces of an answer, calls with a few lines of output."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.clean import one_line, plain
from agent.terminal import diff
from agent.terminal.markdown import Page, code
from agent.terminal.paper import Line, Paper
from agent.terminal.screen import without_edges
from agent.terminal.stream import Block
from agent.terminal.theme import Theme
from agent.terminal.words import facts, lines_of
from transcripts.records import ToolCall, ToolResult

HEAD, TAIL = 2, 4
"""Lines of a long output that are printed: its first and its last; the rest is a key away."""

DIFF_LINES = 40
"""Lines of a diff that are printed after an edit."""

_MARK = {"ok": "ok", "error": "error", "denied": "warn", "interrupted": "warn", "not_run": "warn", "unknown": "warn"}


def user(text: str, theme: Theme, sign: str = "") -> Text:
    """What the person said, as it stands in the scrollback."""
    out = Text()
    for n, line in enumerate(plain(text).split("\n")):
        out.append("\n" if n else "")
        out.append((sign or theme.sign("› ", "> ")) if not n else "  ", style="accent")
        out.append(line, style="user")
    return out


def block_lines(block: Block, paper: Paper, width: int) -> list[Line]:
    """A piece of an answer as lines. Code is coloured in the light of what stands above it in its fence."""
    if not block.code:
        return without_edges(paper.lines(Page(block.text, paper.theme), width))
    above = plain(block.before)
    lines = paper.lines(code(above + plain(block.text), block.language, paper.theme.syntax), paper.width)
    if not above:
        return lines
    known = paper.lines(code(above.rstrip("\n"), block.language, paper.theme.syntax), paper.width)
    return lines[len(known) :]


def heading(title: str, status: str, theme: Theme) -> Text:
    """The line of a call."""
    return Text.assemble((theme.sign("● ", "* "), _MARK.get(status, "dim")), (plain(title), "bold"))


def hanging(line: Text) -> Table:
    """A line that begins with a sign of two columns; what does not fit stands below its words, not below its sign."""
    grid = Table.grid()
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    grid.add_row(line[:2], line[2:])
    return grid


def tool(title: str, call: ToolCall, result: ToolResult, theme: Theme) -> Group:
    """A finished call: title, facts, then the diff or a few lines of output."""
    head = heading(title, result.status, theme)
    body: list[Any] = []
    changed = str(result.meta.get("diff") or "")
    if changed:
        added, removed = diff.counts(changed)
        head.append(" ")
        for count, sign, style in ((added, "+", "ok"), (removed, theme.sign("−", "-"), "error")):
            head.append(f" {sign}{count}" if count else "", style)
        body = diff.render(changed, DIFF_LINES, theme.more)
    elif result.meta.get("todo"):
        body = todo(result.meta["todo"], theme)
    elif _tells(result):
        body = output(lines_of(result), theme.more, result.chars if result.blob else 0)
    said = facts(result)
    if said:
        head.append(f"  {said}", "dim" if result.status == "ok" else "error" if result.status == "error" else "warn")
    return Group(hanging(head), *(Padding(b, (0, 0, 0, 2)) for b in body))


def command(result: ToolResult, theme: Theme) -> Group:
    """What a command of the person's said, below the line they typed."""
    said = Text(facts(result), style="error" if result.status == "error" else "dim")
    return Group(*(Padding(line, (0, 0, 0, 2)) for line in (*output(lines_of(result), theme.more), said)))


def _tells(result: ToolResult) -> bool:
    """Whether the output itself is worth a few lines: a command's, what a tool from elsewhere said, what went wrong."""
    if result.status in ("error", "unknown", "interrupted") or result.name.startswith("mcp__"):
        return True
    return not {"exit_code", "command", "task"}.isdisjoint(result.meta)


def output(lines: list[str], more: str, chars: int = 0) -> list[Text]:
    """The first and the last lines of an output, cut at the width; how many are between them, and the key that shows
    them. Where these lines are not all of it, `chars` is its length in characters."""
    if len(lines) <= HEAD + TAIL + 1:
        return [_output_line(line) for line in lines]
    rest = f"{chars:,} characters in all" if chars else f"{len(lines) - HEAD - TAIL:,} more lines"
    return [
        *map(_output_line, lines[:HEAD]),
        Text(f"… {rest} ({more})", style="aside"),
        *map(_output_line, lines[-TAIL:]),
    ]


def _output_line(line: str) -> Text:
    return Text(line.rstrip()[:400], style="dim", no_wrap=True, overflow="ellipsis")


def todo(items: Any, theme: Theme) -> list[Text]:
    """The list of what is to be done, with marks."""
    marks = {"done": ("✓", "x", "ok"), "completed": ("✓", "x", "ok"), "in_progress": ("▸", ">", "accent")}
    out: list[Text] = []
    for item in items if isinstance(items, (list, tuple)) else ():
        state = str(item.get("status", "")) if isinstance(item, dict) else ""
        words = item.get("text") or item.get("content") or item.get("task") or "" if isinstance(item, dict) else item
        good, simple, style = marks.get(state, ("○", "o", "dim"))
        out.append(
            Text.assemble(
                (theme.sign(good, simple) + " ", style),
                (one_line(str(words)), "dim" if state in ("done", "completed") else ""),
            )
        )
    return out


def thought(text: str, took: str, theme: Theme) -> Text:
    """What is left of the model's thinking: one line."""
    return Text(f"{theme.sign('∴', '~')} Thought{took} ({theme.more} shows it)", style="aside")


def note(text: str, role: str, theme: Theme) -> Table:
    """One line of refold's own: what was folded, what went wrong, what to know."""
    marks = {"error": ("✗", "!"), "warn": ("!", "!"), "ok": ("✓", "+"), "fold": ("◇", "~")}
    good, simple = marks.get(role, ("·", "-"))
    style = "dim" if role in ("fold", "info") else role
    return hanging(Text.assemble((theme.sign(good, simple) + " ", style), (plain(text).strip(), style)))
