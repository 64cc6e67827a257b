"""Colours by role. The 16 colours of the terminal are the default, for they fit whatever background there is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ROLES = (
    "accent", "user", "dim", "ok", "warn", "error", "add", "remove", "add_word", "remove_word", "code", "heading",
    "link", "quote", "select", "chip", "shell",
)  # fmt: skip

_ANSI = {
    "accent": "cyan", "user": "bold", "dim": "bright_black", "ok": "green", "warn": "yellow", "error": "red",
    "add": "green", "remove": "red", "add_word": "bold underline green", "remove_word": "bold underline red",
    "code": "cyan", "heading": "bold", "link": "underline blue", "quote": "italic bright_black",
    "select": "bold cyan", "chip": "magenta", "shell": "magenta",
}  # fmt: skip

_DARK = {
    **_ANSI, "accent": "#7dcfff", "dim": "#8a8fa3", "ok": "#9ece6a", "warn": "#e0af68", "error": "#f7768e",
    "add": "#9ece6a on #1d2b1a", "remove": "#f7768e on #33191f", "add_word": "bold #d7ffaf on #35562a",
    "remove_word": "bold #ffd7df on #6b2737", "code": "#89ddff", "link": "underline #7aa2f7",
    "quote": "italic #8a8fa3", "select": "bold #7dcfff", "chip": "#bb9af7", "shell": "#ff9e64",
}  # fmt: skip

_LIGHT = {
    **_ANSI, "accent": "#00658f", "dim": "#6a6f80", "ok": "#2f7a1f", "warn": "#8a5a00", "error": "#b3163a",
    "add": "#1f5c14 on #e3f6dd", "remove": "#8f1230 on #fde7ea", "add_word": "bold #0f4206 on #b2e3a3",
    "remove_word": "bold #6d0820 on #f7b6c2", "code": "#00658f", "link": "underline #1f4fbf",
    "quote": "italic #6a6f80", "select": "bold #00658f", "chip": "#6b3fa0", "shell": "#a34700",
}  # fmt: skip

THEMES: Mapping[str, Mapping[str, str]] = {"ansi": _ANSI, "dark": _DARK, "light": _LIGHT}

_SYNTAX = {"ansi": "ansi_dark", "dark": "nord-darker", "light": "friendly"}
_SYNTAX_LIGHT = {**_SYNTAX, "ansi": "ansi_light"}


@dataclass(frozen=True)
class Theme:
    """Styles by role, in rich's words ("bold #rrggbb on #rrggbb"). `color` False: bold and underline only.
    `unicode` False where the terminal's encoding has no bullets and arrows. `more` is the key that shows an output in
    full, as hints name it. `light`: the background is known to be light."""

    name: str = "ansi"
    styles: Mapping[str, str] = field(default_factory=lambda: dict(_ANSI))
    color: bool = True
    unicode: bool = True
    more: str = "Ctrl-O"
    light: bool = False

    @property
    def syntax(self) -> str:
        """Name of the highlighting theme for code."""
        return (_SYNTAX_LIGHT if self.light else _SYNTAX)[self.name]

    def sign(self, good: str, ascii_: str) -> str:
        """The sign, or what stands for it where the terminal cannot show it."""
        return good if self.unicode else ascii_

    def toolkit(self) -> dict[str, str]:
        """The roles as prompt_toolkit style rules."""
        rules = {role: toolkit_style(style) if self.color else _mono(style) for role, style in self.styles.items()}
        return {**rules, "bottom-toolbar": "noreverse", "selected": "reverse"}


_STYLE = re.compile(
    r"((bold|italic|underline|dim|reverse|strike|on|none|default|#[0-9a-fA-F]{6}"
    r"|(bright_)?(black|red|green|yellow|blue|magenta|cyan|white))( |$))+"
)


def read_colors(words: str) -> dict[str, str]:
    """ROLE=STYLE pairs with commas, as the setting `colors` has them. Raises ValueError."""
    out: dict[str, str] = {}
    for pair in filter(None, (p.strip() for p in words.split(","))):
        role, equals, style = (part.strip() for part in pair.partition("="))
        if role not in ROLES or not equals:
            raise ValueError(f"colors takes ROLE=STYLE, not {pair!r}; the roles are {', '.join(ROLES)}")
        if not _STYLE.fullmatch(style):
            raise ValueError(
                f"{style!r} is no style: words such as bold, italic, cyan, bright_black, #ff8800, on #202020"
            )
        out[role] = style
    return out


def choose_theme(name: str, own: Mapping[str, str], env: Mapping[str, str], encoding: str) -> Theme:
    """The theme by name; "" looks at COLORFGBG (which some terminals set) and else takes the terminal's own colours.
    `own` colours by role come on top. Raises ValueError for a name that does not exist."""
    chosen = name or _by_background(env)
    if chosen not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, not {name!r}")
    fits = encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32", "gb18030")
    color = "NO_COLOR" not in env or env["NO_COLOR"] == ""
    light = not name and _ground(env) in (7, 15)
    return Theme(chosen, {**THEMES[chosen], **own}, color=color, unicode=fits, light=light)


def ground_known(env: Mapping[str, str]) -> bool:
    """Whether COLORFGBG says what the background is."""
    return _ground(env) >= 0


def for_background(light: bool, own: Mapping[str, str], env: Mapping[str, str], *, unicode: bool) -> Theme:
    """The theme for a background that the terminal has told. With 16 colours it is the terminal's own."""
    name = "ansi" if color_level(env) == "standard" else "light" if light else "dark"
    return replace(choose_theme(name, own, env, "utf-8" if unicode else "ascii"), light=light)


def _ground(env: Mapping[str, str]) -> int:
    """The number of the background's colour; -1 where COLORFGBG does not say it."""
    last = env.get("COLORFGBG", "").rpartition(";")[2]
    return int(last) if last.isdigit() else -1


def _by_background(env: Mapping[str, str]) -> str:
    rich_colors = env.get("COLORTERM", "") in ("truecolor", "24bit")
    if not ground_known(env) or not rich_colors:
        return "ansi"
    return "light" if _ground(env) in (7, 15) else "dark"


def toolkit_style(style: str) -> str:
    """A style in rich's words as prompt_toolkit writes it: "bold red on #112233" -> "bold fg:ansired bg:#112233"."""
    out: list[str] = []
    side = "fg"
    for word in style.split():
        if word == "on":
            side = "bg"
        elif word in ("bold", "italic", "underline", "dim", "reverse", "strike"):
            out.append(word)
        elif word not in ("none", "default"):
            out.append(f"{side}:{word if word.startswith('#') else 'ansi' + word.replace('_', '')}")
    return " ".join(out)


def _mono(style: str) -> str:
    return " ".join(word for word in style.split() if word in ("bold", "italic", "underline", "reverse"))


def color_level(env: Mapping[str, str]) -> str:
    """How many colours to send, as rich names it: truecolor, 256 or standard."""
    term = env.get("TERM", "")
    if env.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in term or term in ("xterm-kitty", "alacritty", "foot") else "standard"
