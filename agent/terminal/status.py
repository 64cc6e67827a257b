"""The status line: mode, model, how full the window is, money, branch."""

from __future__ import annotations

from dataclasses import dataclass

from agent.clean import one_line
from agent.terminal.activity import bar
from agent.terminal.fragments import Fragments
from agent.terminal.numbers import count, money

MODE_ROLES = {"plan": "ok", "ask": "accent", "edits": "warn", "auto": "warn", "yolo": "error"}


@dataclass
class Status:
    """What the line shows. A `hint` takes its place for as long as it is set."""

    mode: str = ""
    model: str = ""
    used: int = 0
    window: int = 0
    cost: float | None = None
    branch: str = ""
    sandbox: str = ""
    unicode: bool = True
    hint: str = ""
    name: str = ""

    def fragments(self, width: int) -> Fragments:
        """The line; at narrow widths the last parts are left out."""
        if self.hint:
            return [("class:warn", one_line(self.hint, width - 1))]
        parts: list[tuple[str, str]] = []
        if self.mode:
            parts.append((f"class:{MODE_ROLES.get(self.mode, 'accent')}", self.mode))
        parts.append(("class:dim", self.model.rpartition(":")[2] if len(self.model) > 24 else self.model))
        if self.window:
            share = self.used / self.window
            style = "class:warn" if share > 0.7 else "class:dim"
            small = bar(share, 6, self.unicode) + " " if width >= 60 else ""
            parts.append((style, f"{small}{share:.0%} of {count(self.window)}" if width >= 60 else f"{share:.0%}"))
        if self.cost is not None:
            parts.append(("class:dim", money(self.cost)))
        parts += [("class:dim", word) for word in (self.branch, self.sandbox, self.name) if word]
        return _fitting(parts, width - 1)


def _fitting(parts: list[tuple[str, str]], width: int) -> Fragments:
    out: Fragments = []
    left = width
    for style, text in parts:
        between = 3 if out else 0
        if len(text) + between > left:
            break
        out += [*([("class:dim", " · ")] if out else []), (style, text)]
        left -= len(text) + between
    return out or [(parts[0][0], one_line(parts[0][1], max(1, width)))] if parts else []
