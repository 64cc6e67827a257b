"""Keys that plain terminals cannot tell apart (Shift+Enter), where the terminal can: asked for, and understood.

Two ways exist. xterm's modifyOtherKeys sends `CSI 27;modifier;code ~`, kitty's protocol `CSI code;modifier u`; both are
asked for only where the terminal is known to have them, for others would take the question for something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import Keys

KITTY = ("\x1b[>1u", "\x1b[<u")
XTERM = ("\x1b[>4;1m", "\x1b[>4;0m")
"""(on, off)."""

SHIFT, ALT, CTRL = 1, 2, 4
_LOCKS = (0, 64, 128, 192)
"""Caps lock and num lock, which kitty's protocol adds to the modifiers."""

Meaning = Keys | str | tuple[Keys | str, ...]


def protocol(env: Mapping[str, str]) -> tuple[str, str]:
    """What to send at the start and at the end; nothing where the terminal is not known to understand it."""
    program, term = env.get("TERM_PROGRAM", ""), env.get("TERM", "")
    if env.get("TMUX") or program == "tmux":
        return XTERM
    if (
        env.get("KITTY_WINDOW_ID")
        or program in ("ghostty", "WezTerm")
        or term in ("foot", "xterm-ghostty", "alacritty")
    ):
        return KITTY
    return XTERM if env.get("XTERM_VERSION") or program == "iTerm.app" else ("", "")


def know_more_keys() -> None:
    """Teaches the toolkit both ways; to be called once."""
    known: dict[str, Meaning] = {}
    for code, modifiers, meaning in _keys():
        for locks in _LOCKS:
            known[f"\x1b[{code};{1 + modifiers + locks}u"] = meaning
        known[f"\x1b[27;{1 + modifiers};{code}~"] = meaning
    known["\x1b[27u"] = Keys.Escape
    known.update(_with_locks())
    ANSI_SEQUENCES.update(known)  # type: ignore[arg-type]


def _keys() -> list[tuple[int, int, Meaning]]:
    """(code, modifiers, meaning) of what the terminal will say differently."""
    out: list[tuple[int, int, Meaning]] = [(27, m, Keys.Escape) for m in (0, SHIFT, ALT, CTRL)]
    out += [
        (13, 0, Keys.ControlM), (13, SHIFT, Keys.ControlJ), (13, CTRL, Keys.ControlJ),
        (13, ALT, (Keys.Escape, Keys.ControlM)), (9, 0, Keys.ControlI), (9, SHIFT, Keys.BackTab),
        (127, 0, Keys.ControlH), (127, SHIFT, Keys.ControlH), (127, CTRL, Keys.ControlW),
        (127, ALT, (Keys.Escape, Keys.ControlH)), (32, CTRL, Keys.ControlAt), (32, SHIFT, " "),
        (47, CTRL, Keys.ControlUnderscore), (92, CTRL, Keys.ControlBackslash), (93, CTRL, Keys.ControlSquareClose),
    ]  # fmt: skip
    for letter in "abcdefghijklmnopqrstuvwxyz":
        code = ord(letter)
        control = Keys(f"c-{letter}")
        out += [(code, CTRL, control), (code, CTRL | SHIFT, control), (code, CTRL | ALT, (Keys.Escape, control))]
        out += [(code, ALT, (Keys.Escape, letter)), (code, ALT | SHIFT, (Keys.Escape, letter.upper()))]
    return out + [(ord(sign), ALT, (Keys.Escape, sign)) for sign in "0123456789.,-_/<>!?*#"]


def _with_locks() -> dict[str, Meaning]:
    """Arrows and their like, as they are sent while caps lock or num lock is on."""
    out: dict[str, Meaning] = {}
    for sequence, meaning in list(ANSI_SEQUENCES.items()):
        plain = re.fullmatch(r"\x1b\[([A-DHF])", sequence)
        modified = re.fullmatch(r"\x1b\[(\d+);(\d)([A-DFH~])", sequence)
        numbered = re.fullmatch(r"\x1b\[(\d+)~", sequence)
        for locks in _LOCKS[1:]:
            if plain:
                out[f"\x1b[1;{1 + locks}{plain[1]}"] = meaning
            elif modified:
                out[f"\x1b[{modified[1]};{int(modified[2]) + locks}{modified[3]}"] = meaning
            elif numbered:
                out[f"\x1b[{numbered[1]};{1 + locks}~"] = meaning
    return out
