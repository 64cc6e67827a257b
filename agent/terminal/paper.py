"""From a rich renderable to lines: for the scrollback (escape codes) and for the live region (fragments).

Lines are trimmed on the right, so that what is copied from the screen has no trailing spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme as RichTheme

from agent.terminal.fragments import Fragments
from agent.terminal.theme import Theme

_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}

Line = list[Segment]


class Paper:
    """Renders at a width (columns) in a theme. One is made whenever the width changes."""

    def __init__(self, width: int, theme: Theme, level: str) -> None:
        self.width = width
        self.theme = theme
        self.level = level
        self.console = Console(
            file=StringIO(),
            width=max(width, 4),
            force_terminal=True,
            color_system=level if theme.color else "standard",  # type: ignore[arg-type]
            no_color=not theme.color,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            theme=RichTheme(_styles(theme.styles)),
            _environ={},
        )

    def lines(self, renderable: Any, width: int = 0) -> list[Line]:
        """The renderable as lines of segments, trimmed on the right; `width` narrows the paper."""
        options = self.console.options.update(width=width) if width else self.console.options
        rendered = self.console.render_lines(renderable, options, pad=False)
        return [_trimmed(line) for line in rendered]

    def ansi(self, lines: list[Line]) -> str:
        """The lines with escape codes, each ended by a newline."""
        system = ColorSystem.STANDARD
        if self.theme.color:
            system = _SYSTEMS[self.level]
        out: list[str] = []
        for line in lines:
            for segment in line:
                style = segment.style
                if style and not self.theme.color:
                    style = style.without_color
                out.append(style.render(segment.text, color_system=system) if style else segment.text)
            out.append("\n")
        return "".join(out)

    def fragments(self, lines: list[Line]) -> Fragments:
        """The lines as prompt_toolkit fragments, with a newline between them."""
        out: Fragments = []
        for n, line in enumerate(lines):
            if n:
                out.append(("", "\n"))
            out.extend((fragment_style(s.style, self.theme.color), s.text) for s in line)
        return out


def _styles(styles: Mapping[str, str]) -> dict[str, str]:
    out = {**styles, "aside": f"italic {styles['dim']}"}
    out |= {
        "markdown.code": styles["code"], "markdown.link_url": styles["link"], "markdown.link": styles["link"],
        "markdown.item.bullet": styles["accent"], "markdown.item.number": styles["accent"],
        "markdown.hr": styles["dim"], "markdown.block_quote": styles["quote"], "table.border": styles["dim"],
        "markdown.table.border": styles["dim"], "markdown.table.header": "bold", "markdown.em": "italic",
        "markdown.strong": "bold", "markdown.s": "strike",
    }  # fmt: skip
    return out


def _trimmed(line: Line) -> Line:
    out = [s for s in line if s.text and not s.control]
    while out and not _visible_space(out[-1].style):
        text = out[-1].text.rstrip(" ")
        if text:
            out[-1] = Segment(text, out[-1].style)
            break
        out.pop()
    return out


def _visible_space(style: Style | None) -> bool:
    return bool(
        style and (style.bgcolor is not None and not style.bgcolor.is_default or style.reverse or style.underline)
    )


_CACHE: dict[tuple[Style, bool], str] = {}


def fragment_style(style: Style | None, color: bool) -> str:
    """A rich style as prompt_toolkit writes it."""
    if style is None:
        return ""
    found = _CACHE.get((style, color))
    if found is None:
        found = _CACHE[style, color] = _fragment_style(style, color)
    return found


def _fragment_style(style: Style, color: bool) -> str:
    names = ("bold", "italic", "underline", "reverse", "strike", "dim")
    out = [name for name in names if getattr(style, name)]
    if color:
        out += [
            f"{side}:{_color(c)}" for side, c in (("fg", style.color), ("bg", style.bgcolor)) if c and not c.is_default
        ]
    return " ".join(out)


def _color(color: Any) -> str:
    if color.number is not None and color.number < 16:
        return _NAMES[color.number]
    triplet = color.get_truecolor()
    return triplet.hex


_NAMES = (
    "ansiblack", "ansired", "ansigreen", "ansiyellow", "ansiblue", "ansimagenta", "ansicyan", "ansigray",
    "ansibrightblack", "ansibrightred", "ansibrightgreen", "ansibrightyellow", "ansibrightblue", "ansibrightmagenta",
    "ansibrightcyan", "ansiwhite",
)  # fmt: skip
