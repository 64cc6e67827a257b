"""What the keys do. Each binding is one line that calls a method; the meaning is in the method."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.filters import Always, Condition, Filter, emacs_insert_mode, vi_insert_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from agent.terminal.deck import Deck
from agent.terminal.keymap import Chord

TAB, ENTER = ("c-i",), ("c-m",)


def bindings(deck: Deck) -> KeyBindings:
    """All bindings of the chat beside those of the questions."""
    keys = KeyBindings()
    typing = Condition(lambda: not deck.asking)
    plain = typing & Condition(lambda: not deck.suggest.items)
    keys.add("tab", filter=plain)(lambda e: None)
    keys.add("up", filter=plain)(lambda e: deck.hands.up())
    keys.add("down", filter=plain)(lambda e: deck.editor.buffer.auto_down())
    for name in ("c-c", "<sigint>"):
        keys.add(name, filter=typing)(lambda e: deck.hands.control_c())
    keys.add(Keys.BracketedPaste, filter=typing)(lambda e: deck.editor.paste(e.data))
    _actions(keys, deck)
    _menu(keys, deck)
    _letters(keys, deck)
    _field(keys, deck)
    return keys


def _actions(keys: KeyBindings, deck: Deck) -> None:
    """What can be given other keys."""
    typing = Condition(lambda: not deck.asking)
    hands: tuple[tuple[str, Callable[[], None]], ...] = (
        ("send", lambda: deck.hands.enter()), ("newline", lambda: deck.hands.newline()),
        ("queue", lambda: deck.hands.queue()), ("stop", lambda: deck.hands.escape()),
        ("quit", lambda: deck.hands.control_d()), ("mode", lambda: deck.hands.next_mode()),
        ("output", lambda: deck.hands.expand()), ("history", lambda: deck.hands.search_history()),
        ("editor", lambda: deck.hands.edit_outside()), ("stash", lambda: deck.hands.stash()),
        ("picture", lambda: deck.hands.paste_picture()), ("redraw", lambda: deck.hands.redraw()),
    )  # fmt: skip
    for name, act in hands:
        for chord in deck.keymap.chords(name):
            keys.add(*chord, filter=typing & _when(deck, name, chord))(lambda e, act=act: act())
    for chord in deck.keymap.chords("suspend"):
        keys.add(*chord)(lambda e: e.app.create_background_task(deck.screen.suspend()))


def _when(deck: Deck, name: str, chord: Chord) -> Filter:
    """When a key of an action is its own."""
    working = Condition(lambda: deck.hands.busy)
    if name == "queue":
        return working & Condition(lambda: chord != TAB or not deck.suggest.items)
    if name == "newline":
        # The lone Ctrl+J of a terminal that is not ours yet is Enter: see Entrance.
        return (emacs_insert_mode | vi_insert_mode) & (~working if chord in deck.keymap.chords("queue") else Always())
    if name == "stop" and chord == ("escape",):
        # In vi's insert mode Esc ends it, as it always does there; on an empty input it stops what runs.
        return ~vi_insert_mode | Condition(lambda: not deck.editor.text or bool(deck.suggest.items))
    return Always()


def _menu(keys: KeyBindings, deck: Deck) -> None:
    open_ = Condition(lambda: bool(deck.suggest.items) and not deck.asking)
    for key, by in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
        keys.add(key, filter=open_)(lambda e, by=by: deck.suggest.move(by))
    keys.add("tab", filter=open_)(lambda e: accept(deck))
    if ENTER not in deck.keymap.chords("send"):
        keys.add("enter", filter=open_)(lambda e: accept(deck))


def accept(deck: Deck) -> bool:
    """Puts the chosen suggestion into the input; whether it is one that runs at once."""
    chosen = deck.suggest.current
    if chosen is None:
        return False
    buffer = deck.editor.buffer
    buffer.delete_before_cursor(buffer.cursor_position - chosen.start)
    buffer.insert_text(chosen.text)
    deck.suggest.close(buffer.document.text_before_cursor)
    return chosen.run


def _letters(keys: KeyBindings, deck: Deck) -> None:
    editor = deck.editor
    typing = Condition(lambda: not deck.asking)
    insert = typing & (emacs_insert_mode | vi_insert_mode)
    unselected = insert & Condition(lambda: editor.buffer.selection_state is None)
    keys.add("backspace", filter=unselected)(lambda e: editor.delete_left())
    keys.add("delete", filter=unselected)(lambda e: editor.delete_right())
    keys.add("left", filter=insert)(lambda e: editor.move_left())
    keys.add("right", filter=insert)(lambda e: editor.move_right())


def _field(keys: KeyBindings, deck: Deck) -> None:
    filling = Condition(lambda: deck.filling)
    keys.add("enter", filter=filling)(lambda e: deck.filled(deck.region.field.text))
    keys.add("escape", filter=filling)(lambda e: deck.filled(None))
    keys.add("c-c", filter=filling, eager=True)(lambda e: deck.filled(None))
    keys.add("tab", filter=filling)(lambda e: None)
