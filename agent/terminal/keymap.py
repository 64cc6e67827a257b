"""Which keys do what: the table of actions, and the person's own in the `[keys]` table of ~/.refold/config.toml.

[keys]
editor = ["ctrl-g", "ctrl-x ctrl-e"]
mode = "f2"
picture = []
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompt_toolkit.keys import ALL_KEYS

Chord = tuple[str, ...]
"""A key as the toolkit names it, or several that are pressed one after the other."""


@dataclass(frozen=True)
class Action:
    """Something a key does: its name in `[keys]`, the keys it has by itself, and what it does, in words."""

    name: str
    keys: tuple[str, ...]
    words: str


ACTIONS = (
    Action("send", ("enter",), "send; while it works: tell it at its next step"),
    Action("newline", ("ctrl-j", "alt-enter"), "a new line (also Shift+Enter, and \\ Enter)"),
    Action("queue", ("tab", "alt-enter"), "while it works: send after this turn"),
    Action("stop", ("esc",), "stop, everything is kept; twice: clear the input, or go back to an earlier message"),
    Action("quit", ("ctrl-d",), "quit, on an empty line"),
    Action("mode", ("shift-tab",), "what runs unasked: plan, ask, edits, auto, yolo"),
    Action("output", ("ctrl-o",), "the last output in full"),
    Action("history", ("ctrl-r",), "search what was typed before"),
    Action("editor", ("ctrl-g",), "write in your editor ($VISUAL, $EDITOR)"),
    Action("stash", ("ctrl-s",), "put the input aside; on an empty line: bring it back"),
    Action("picture", ("ctrl-v",), "paste a picture"),
    Action("redraw", ("ctrl-l",), "a clear screen"),
    Action("suspend", ("ctrl-z",), "suspend; fg comes back"),
)

FIXED = (
    ("Ctrl-C", "clear the input, then stop, then quit"),
    ("Up", "earlier input; while it works: take a waiting line back"),
    ("@path", "name a file"),
    ("! command", "run a command of yours; !! keeps it from the model"),
)
"""What no table changes."""

SHARED = {"newline", "queue"}
"""Actions that may have the same key: one holds while it works, the other while it does not."""

_NAMES = {
    "enter": "c-m", "return": "c-m", "esc": "escape", "tab": "c-i", "space": "c-@", "pgup": "pageup",
    "pgdn": "pagedown", "backspace": "c-h", "shift-tab": "s-tab", "ctrl-space": "c-@",
}  # fmt: skip
_NEEDED = ("ctrl-c", "up", "down", "left", "right", "backspace", "space")
"""Keys that stay as they are: without them the input cannot be used."""


class KeysError(ValueError):
    """A table of keys that cannot be used; the message names the place and what would do."""


@dataclass(frozen=True)
class Keymap:
    """The keys of each action, as they are written and as the toolkit has them."""

    written: Mapping[str, tuple[str, ...]]

    def chords(self, action: str) -> list[Chord]:
        """The keys of an action for the toolkit."""
        return [parse(key) for key in self.written[action]]

    def rows(self) -> list[tuple[str, str, str]]:
        """(keys as people write them, name of the action or "", what it does), for help."""
        own = [(", ".join(map(shown, self.written[a.name])) or "-", a.name, a.words) for a in ACTIONS]
        return [*own, *((key, "", words) for key, words in FIXED)]

    def name(self, action: str) -> str:
        """The first key of an action as a hint names it."""
        return shown(self.written[action][0]) if self.written[action] else "/keys"


DEFAULT = Keymap({a.name: a.keys for a in ACTIONS})


def read_keys(home: Path) -> Keymap:
    """The keys, with the person's own from config.toml. Raises KeysError."""
    path = home / "config.toml"
    try:
        data = path.read_bytes()
    except OSError:
        return DEFAULT
    if b"keys" not in data:
        return DEFAULT
    try:
        table = tomllib.loads(data.decode("utf-8-sig")).get("keys", {})
    except ValueError as error:
        raise KeysError(f"{path} cannot be read: {error}") from error
    return of_table(table, str(path))


def of_table(table: Any, where: str) -> Keymap:
    """The keys with those of a table in the place of the usual ones. Raises KeysError."""
    if not isinstance(table, dict):
        raise KeysError(f"keys in {where} must be a table: [keys], then ACTION = KEY")
    written = dict(DEFAULT.written)
    for name, value in table.items():
        if name not in written:
            near = importlib.import_module("difflib").get_close_matches(name, written, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise KeysError(f"[keys] in {where}: there is no action {name!r}; {hint}they are {', '.join(written)}")
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys):
            raise KeysError(f"[keys] in {where}: {name} takes a key or a list of keys, not {value!r}")
        try:
            written[name] = tuple(" ".join(k.lower().split()) for k in keys if k.strip() and parse(k))
        except KeysError as error:
            raise KeysError(f"[keys] in {where}: {name}: {error}") from None
    if not written["send"]:
        raise KeysError(f"[keys] in {where}: send needs a key")
    _no_key_twice(written, set(table), where)
    return Keymap(written)


def _no_key_twice(written: dict[str, tuple[str, ...]], own: set[str], where: str) -> None:
    """A usual key gives way to one of the person's; two of theirs must not be the same."""
    taken: dict[Chord, str] = {}
    for name in sorted(written, key=lambda name: name not in own):
        kept = []
        for key in written[name]:
            other = taken.setdefault(parse(key), name)
            if other == name or {other, name} == SHARED:
                kept.append(key)
            elif name in own:
                raise KeysError(f"[keys] in {where}: {key} is given to {other} and to {name}")
        written[name] = tuple(kept)
    if not written["send"]:
        raise KeysError(f"[keys] in {where}: send has lost its key to another action; give it one")


def parse(text: str) -> Chord:
    """A key as it is written ("ctrl-x ctrl-e", "alt-q", "f5") for the toolkit. Raises KeysError."""
    chord: list[str] = []
    for word in text.lower().split():
        if word in _NEEDED:
            raise KeysError(f"{word} stays as it is")
        chord += _one(word, text)
    return tuple(chord)


def _one(word: str, text: str) -> Chord:
    rest, alt = word, False
    if word.startswith("alt-"):
        rest, alt = word[4:], True
    name = _NAMES.get(rest) or rest.replace("ctrl-", "c-").replace("shift-", "s-")
    if not (name in ALL_KEYS and not name.startswith("<")) and not (len(name) == 1 and name.isprintable()):
        raise KeysError(
            f"there is no key {word!r}; keys are written ctrl-x, alt-x, shift-tab, f5, pageup, ctrl-x ctrl-e"
        )
    if len(name) == 1 and not alt and text.lower().split()[0] == word:
        raise KeysError(f"{word!r} is a letter that is typed; take ctrl-{word}, alt-{word} or a key such as f5")
    return ("escape", name) if alt else (name,)


def shown(key: str) -> str:
    """A key as help writes it: Ctrl-G, Shift-Tab, Esc."""
    return " ".join("-".join(part.capitalize() for part in word.split("-")) for word in key.split(" "))
