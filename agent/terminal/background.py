"""Whether the terminal is light or dark: asked once, and answered whenever the terminal pleases.

OSC 11 asks for the colour of the background. Behind it goes the question every terminal answers (DA1): its answer says
that none to the first will come. Nobody waits for either, and neither is ever taken for keys.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

ASK = "\x1b]11;?\x1b\\\x1b[c"

PATIENCE = 10.0
"""Seconds in which an answer may come in pieces. A whole one is known later too."""

_COLOUR = re.compile(r"\x1b\]11;([^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)")
_FENCE = re.compile(r"\x1b\[\?[\d;]*c")
_BEGUN = re.compile(r"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?|\[(?:\?[\d;]*)?)?\Z")
"""What may become an answer; the shortest of these are the Esc key and keys with Alt."""

_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")
_HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")

_FAMILIES = (
    "xterm", "tmux", "rxvt", "alacritty", "foot", "kitty", "wezterm", "ghostty", "konsole", "gnome", "vte", "iterm",
    "contour", "mintty", "st-", "putty", "nsterm",
)  # fmt: skip


def answers(env: Mapping[str, str]) -> bool:
    """Whether the terminal is of a kind that answers, or at least prints nothing of the question."""
    term = env.get("TERM", "")
    if env.get("INSIDE_EMACS") or env.get("STY"):
        return False
    return term.startswith(_FAMILIES) or term == "st" or (term.startswith("screen") and bool(env.get("TMUX")))


def is_light(colour: str) -> bool | None:
    """Whether black stands out better than white on a colour as X11 writes it ("rgb:ffff/f0f0/e0e0", "#fff0e0"); None
    where it is no colour."""
    digits = _RGB.fullmatch(colour) or _HEX.fullmatch(colour)
    if digits is None:
        return None
    red, green, blue = (_linear(int(d, 16) / (16 ** len(d) - 1)) for d in digits.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


class Answers:
    """Takes answers out of what comes from a terminal. `heard` gets the colour."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard
        self._asked = float("-inf")
        self._open = False
        self._held = ""
        self._given = ""

    def ask(self) -> None:
        """The question is on its way."""
        self._asked, self._open = time.monotonic(), True

    def waits(self, seconds: float) -> bool:
        """Whether there is no answer yet to a question that is younger than this."""
        return self._open and time.monotonic() - self._asked < seconds

    def take(self, data: str) -> str:
        """What of it is keys. The beginning of what may be an answer is held back until more comes."""
        if not self._open and "\x1b]11;" not in data:
            return data
        if self._given and data.startswith((("]11;"), "[?")):  # it came in two pieces, with a long pause between them
            data = self._given + data
        data, self._held, self._given = self._held + data, "", ""
        for colour in _COLOUR.findall(data):
            self._heard(colour)
        data = _COLOUR.sub("", data)
        if self._open:
            data, fences = _FENCE.subn("", data)
            self._open = not fences
        if self.waits(PATIENCE) and (begun := _BEGUN.search(data)):
            data, self._held = data[: begun.start()], begun[0]
        return data

    def give_up(self) -> str:
        """Nothing more has come for a moment: what was held back, where it may be keys."""
        if len(self._held) > 2:
            return ""
        self._given, self._held = self._held, ""
        return self._given
