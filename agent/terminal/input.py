"""What comes from the terminal, as keys: answers taken out, pastes whole, and nothing of what is neither.

A sequence that nobody knows (focus, mouse, a key of some other protocol) is no text: typed into the line it would read
as the Esc key and letters, and two Esc clear the line.
"""

from __future__ import annotations

import re
from typing import TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from agent.terminal.background import Answers

START, END = "\x1b[200~", "\x1b[201~"

_SEQUENCE = re.compile(
    r"\x1b\[M[\x20-\uffff]{3}"  # the old way to tell of the mouse
    r"|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\)"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?\Z")
_KITTY = re.compile(r"\x1b\[(\d+)(?::(\d*))?[\d:]*(?:;(\d*)(?::(\d))?)?(?:;[\d:]*)?u")
_XTERM = re.compile(r"\x1b\[27;(\d+);(\d+)~")
_BYTES = re.compile("[\udc80-\udcff]")
_SHIFT, _CAPS, _NUM = 1, 64, 128
_KEYPAD = dict(zip(range(57399, 57416), "0123456789./*-+\r=", strict=True))


def known(sequence: str) -> str:
    """A sequence as the toolkit knows it; what a key writes, where it writes something; "" where it means nothing."""
    if sequence in ANSI_SEQUENCES:
        return sequence
    if kitty := _KITTY.fullmatch(sequence):
        code, shifted, modifiers, event = kitty.groups()
        if event == "3":  # a key that is let go
            return ""
        plain = f"\x1b[{code};{modifiers or 1}u"
        return plain if plain in ANSI_SEQUENCES else _letter(int(code), int(modifiers or 1), int(shifted or 0))
    if xterm := _XTERM.fullmatch(sequence):
        return _letter(int(xterm[2]), int(xterm[1]), 0)
    return ""


def _letter(code: int, modifiers: int, shifted: int) -> str:
    """What a key with this code writes; nothing where Ctrl, Alt or their like are held."""
    held = max(0, modifiers - 1)
    if held & ~(_SHIFT | _CAPS | _NUM) or code > 0x10FFFF:
        return ""
    if 57344 <= code <= 63743:
        return _KEYPAD.get(code, "")
    letter = chr(code)
    upper = bool(held & _SHIFT) != (bool(held & _CAPS) and letter.isalpha())
    if upper:
        letter = chr(shifted) if 0 < shifted <= 0x10FFFF else letter.upper()
    return letter if letter.isprintable() else ""


class TerminalInput(Vt100Input):
    """The keys of a terminal whose answers go elsewhere. A paste is one key, however long, and its end is looked for
    once."""

    def __init__(self, stdin: TextIO, answers: Answers) -> None:
        super().__init__(stdin)
        self._answers = answers
        self._paste: list[str] | None = None
        self._held = self._tail = ""

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come."""
        data = self.stdin_reader.read(1 << 16)
        # Bytes that are no UTF-8 (a paste in an old encoding) could not be sent on.
        self._take(self._answers.take(data if data.isascii() else _BYTES.sub("\ufffd", data)))
        return self._taken()

    def flush_keys(self) -> list[KeyPress]:
        """The keys that are certain now that nothing more has come for a moment: the Esc key among them."""
        self._take(self._answers.give_up())
        held, self._held = self._held, ""
        if len(held) <= 2:  # the Esc key, or a key with Alt
            self.vt100_parser.feed(held)
        self.vt100_parser.flush()
        return self._taken()

    def _take(self, data: str) -> None:
        while data:
            data = self._keys(data) if self._paste is None else self._pasted(data)

    def _keys(self, data: str) -> str:
        """Takes keys up to where a paste begins; returns what follows."""
        data, self._held = self._held + data, ""
        keys, mark, rest = data.partition(START)
        if mark:
            self._paste, self._tail = [], ""
        elif begun := _BEGUN.search(keys):
            keys, self._held = keys[: begun.start()], begun[0]
        self.vt100_parser.feed(_SEQUENCE.sub(lambda m: known(m[0]), keys))
        if mark:
            self.vt100_parser.flush()
        return rest

    def _pasted(self, data: str) -> str:
        """Takes a piece of a paste; returns what follows its end."""
        assert self._paste is not None
        self._paste.append(data)
        tail = self._tail + data
        self._tail = tail[-len(END) :]
        if END not in tail:
            return ""
        text, _, rest = "".join(self._paste).partition(END)
        self._paste = None
        self._buffer.append(KeyPress(Keys.BracketedPaste, text))
        return rest

    def _taken(self) -> list[KeyPress]:
        taken, self._buffer = self._buffer, []
        return taken
