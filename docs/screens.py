"""Draws the pictures of docs/screens from the real program on a pseudo-terminal: python docs/screens.py

The model is scripted, everything else is as it is. Needs the `test` extra.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.screen import Terminal  # noqa: E402

FOLDER = ROOT / "docs" / "screens"
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.43, 18, 14
COLUMNS, ROWS = 84, 26

DARK = {"default": "#c8ccd8", "ground": "#16181f"}
LIGHT = {"default": "#2b2e36", "ground": "#fbfaf7"}
PALETTE = {
    "black": "#3a3d48", "red": "#e06c75", "green": "#98c379", "brown": "#d9a55a", "blue": "#6ba6e8",
    "magenta": "#c586d8", "cyan": "#5fb8c9", "white": "#c8ccd8", "brightblack": "#7f8596", "brightred": "#f07f88",
    "brightgreen": "#a9d68a", "brightbrown": "#e8b86d", "brightyellow": "#e8b86d", "brightblue": "#82b8f2",
    "brightmagenta": "#d79ae6", "brightcyan": "#76cbdb", "brightwhite": "#ffffff",
}  # fmt: skip

CODE = '''"""Leap years."""


def is_leap(year: int) -> bool:
    return year % 4 == 0
'''
EDIT = {
    "path": "leap.py",
    "old": "    return year % 4 == 0",
    "new": "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
}
CHECK = "python -c 'from leap import is_leap; assert not is_leap(1900); print(\"ok\")'"
ANSWER = """The rule was only half there: a century is a leap year **only if 400 divides it**.

| year | before | now |
|------|--------|-----|
| 1900 | leap   | common |
| 2000 | leap   | leap |

```python
return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
```
"""
STORY: list[Any] = [
    {
        "reasoning": "Centuries.",
        "text": "I look at the module first.",
        "calls": [{"name": "read", "arguments": {"path": "leap.py"}}],
    },
    {"text": "", "calls": [{"name": "edit", "arguments": EDIT}]},
    {"text": "Now the check.", "calls": [{"name": "bash", "arguments": {"command": CHECK}}]},
    {"text": ANSWER},
    {"text": "You are welcome."},
]


@contextmanager
def chat(theme: str) -> Iterator[Terminal]:
    """The chat in a small project, with the story above."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "calendar")
        project.mkdir()
        (project / "leap.py").write_text(CODE)
        script = Path(folder, "demo.jsonl")
        script.write_text("\n".join(map(json.dumps, STORY)))
        env = {
            **os.environ,
            "HOME": folder,
            "REFOLD_HOME": f"{folder}/home",
            "REFOLD_ENV_FILE": "",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "REFOLD_THEME": theme,
            "REFOLD_PERMISSION_MODE": "ask",
            "LC_ALL": "C.UTF-8",
        }
        words = [sys.executable, str(ROOT / "main.py"), "--model", f"scripted:{script}"]
        with Terminal(words, columns=COLUMNS, rows=ROWS, env=env, cwd=project) as terminal:
            terminal.wait("^ask")
            yield terminal


def draw(name: str, terminal: Terminal, theme: str) -> None:
    terminal.settle(0.4)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(svg(terminal, LIGHT if theme == "light" else DARK))
    print(f"docs/screens/{name}.svg")


def svg(terminal: Terminal, colours: dict[str, str]) -> str:
    """The screen as a picture: one text element a run of letters of one look."""
    screen = terminal.screen
    lines = max((y for y, row in enumerate(screen.display) if row.strip()), default=0) + 1
    width, height = screen.columns * CELL_WIDTH + 2 * MARGIN, lines * CELL_HEIGHT + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-size="14" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">',
        f'<rect width="100%" height="100%" rx="8" fill="{colours["ground"]}"/>',
    ]
    for y in range(lines):
        cells = [(x, screen.buffer[y][x]) for x in range(screen.columns)]
        for look, run in groupby(cells, key=lambda cell: cell[1]._replace(data="")):
            letters = list(run)
            text = "".join(char.data for _, char in letters)
            out += _run(text, letters[0][0], y, len(letters), look, colours)
    return "\n".join([*out, "</svg>", ""])


def _run(text: str, x: int, y: int, length: int, look: Any, colours: dict[str, str]) -> Iterator[str]:
    front, back = _colour(look.fg, colours, "default"), _colour(look.bg, colours, "ground")
    if look.reverse:
        front, back = back, front
    left, top = MARGIN + x * CELL_WIDTH, MARGIN + y * CELL_HEIGHT
    if back != colours["ground"]:
        yield f'<rect x="{left:.1f}" y="{top}" width="{length * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" fill="{back}"/>'
    if text.strip():
        style = ' font-weight="bold"' if look.bold else ""
        style += ' font-style="italic"' if look.italics else ""
        style += ' text-decoration="underline"' if look.underscore else ""
        yield (
            f'<text x="{left:.1f}" y="{top + 14}" fill="{front}" textLength="{length * CELL_WIDTH:.1f}" '
            f'xml:space="preserve"{style}>{escape(text)}</text>'
        )


def _colour(name: str, colours: dict[str, str], default: str) -> str:
    if name == "default":
        return colours[default]
    return PALETTE.get(name) or f"#{name}"


def tell(theme: str, suffix: str = "") -> None:
    """The whole story once, drawn at each station."""
    with chat(theme) as terminal:
        station: Callable[[str], None] = lambda name: draw(name + suffix, terminal, theme)  # noqa: E731
        terminal.type("1900 is said to be a leap year, which it is not. Fix it in @lea")
        terminal.wait("› leap.py")
        station("completion")
        terminal.type("\t\r")
        terminal.wait("Make this change")
        station("question")
        terminal.type("y")
        terminal.wait("Run this command")
        station("diff")
        terminal.type("y")
        terminal.wait("exit 0, just now")
        station("chat")
        terminal.type("/context\r")
        terminal.wait("Folding begins")
        station("context")
        terminal.type("thanks\r")
        terminal.wait("You are welcome")
        terminal.type("/clear\r")
        terminal.wait("A new session")
        terminal.type("/resume\r")
        terminal.wait("type to search")
        station("picker")


if __name__ == "__main__":
    tell("dark")
    tell("light", "-light")
