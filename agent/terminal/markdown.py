"""Markdown as a terminal reads best: headings as words, code without a frame, links with their address.

Code is printed flush left without padding or background, so that what is selected is what was written.
"""

from __future__ import annotations

from typing import Any, ClassVar

from markdown_it import MarkdownIt
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from agent.clean import plain
from agent.terminal.theme import Theme

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
"""Without HTML: `List<String>` in a sentence is text, not a tag to be dropped."""


class _Title(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("heading" if self.tag in ("h1", "h2") else "bold")
        if self.tag == "h1":
            self.text.stylize("underline")
        yield self.text


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield code(str(self.text).rstrip("\n"), self.lexer_name, self.theme)


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 40), style="dim")


class _Item(ListItem):
    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _hanging(self, console, options, "• ", "markdown.item.bullet")

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        yield from _hanging(self, console, options, f"{number}. ", "markdown.item.number")


def _hanging(item: ListItem, console: Console, options: ConsoleOptions, mark: str, style: str) -> RenderResult:
    """The item's lines beside its mark, at the left margin of the list."""
    inner = options.update(width=max(4, options.max_width - len(mark)))
    lines = console.render_lines(item.elements, inner, style=item.style, pad=False)
    for n, line in enumerate(lines):
        yield Segment(mark if n == 0 else " " * len(mark), console.get_style(style))
        yield from line
        yield Segment("\n")


class _Grid(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, border_style="dim", header_style="bold", show_edge=False)
        if self.header is not None and self.header.row is not None:
            for cell in self.header.row.cells:
                table.add_column(cell.content, overflow="fold")
        for row in self.body.rows if self.body is not None else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class Page(Markdown):
    """A piece of Markdown; what it says is made harmless first."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Title,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "list_item_open": _Item,
        "table_open": _Grid,
    }

    def __init__(self, text: str, theme: Theme) -> None:
        super().__init__("", code_theme=theme.syntax, hyperlinks=False)
        self.markup = plain(text)
        self.parsed = _PARSER.parse(self.markup)


def code(text: str, lexer: str, theme: Any) -> Syntax:
    """Highlighted code without background; long lines wrap."""
    return Syntax(text, lexer or "text", theme=theme, background_color="default", word_wrap=True, padding=0)
