"""What the keys do. Each binding is one line that calls a method; the meaning is in the method."""

from __future__ import annotations

from prompt_toolkit.filters import Condition, emacs_insert_mode, vi_insert_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from agent.terminal.deck import Deck


def bindings(deck: Deck) -> KeyBindings:
    """All bindings of the chat beside those of the questions."""
    keys = KeyBindings()
    _sending(keys, deck)
    _menu(keys, deck)
    _letters(keys, deck)
    _field(keys, deck)
    _always(keys, deck)
    return keys


def _sending(keys: KeyBindings, deck: Deck) -> None:
    typing = Condition(lambda: not deck.asking)
    insert = typing & (emacs_insert_mode | vi_insert_mode)
    plain = typing & Condition(lambda: not deck.suggest.items)
    working = Condition(lambda: deck.hands.busy)
    newline = lambda e: deck.editor.buffer.insert_text("\n")  # noqa: E731
    keys.add("enter", filter=typing)(lambda e: deck.hands.enter())
    keys.add("c-j", filter=insert)(lambda e: deck.hands.newline())
    keys.add("escape", "enter", filter=insert & ~working)(newline)
    keys.add("escape", "enter", filter=typing & working)(lambda e: deck.hands.queue())
    keys.add("tab", filter=plain & working)(lambda e: deck.hands.queue())
    keys.add("tab", filter=plain & ~working)(lambda e: None)
    keys.add("up", filter=plain)(lambda e: deck.hands.up())
    keys.add("down", filter=plain)(lambda e: deck.editor.buffer.auto_down())
    # In vi's insert mode Esc ends it, as it always does there; on an empty input it stops what runs.
    stops = ~vi_insert_mode | Condition(lambda: not deck.editor.text or bool(deck.suggest.items))
    keys.add("escape", filter=typing & stops)(lambda e: deck.hands.escape())
    keys.add("s-tab", filter=typing)(lambda e: deck.hands.next_mode())
    keys.add(Keys.BracketedPaste, filter=typing)(lambda e: deck.editor.paste(e.data))


def _menu(keys: KeyBindings, deck: Deck) -> None:
    open_ = Condition(lambda: bool(deck.suggest.items) and not deck.asking)
    for key, by in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
        keys.add(key, filter=open_)(lambda e, by=by: deck.suggest.move(by))
    keys.add("tab", filter=open_)(lambda e: accept(deck))


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


def _always(keys: KeyBindings, deck: Deck) -> None:
    idle = Condition(lambda: not deck.asking)

    def on(name: str, act: str) -> None:
        def handler(event: KeyPressEvent) -> None:
            getattr(deck.hands, act)()

        keys.add(name, filter=idle)(handler)

    for name, act in (
        ("c-c", "control_c"), ("<sigint>", "control_c"), ("c-d", "control_d"), ("c-o", "expand"),
        ("c-r", "search_history"), ("c-g", "edit_outside"), ("c-v", "paste_picture"), ("c-l", "redraw"),
    ):  # fmt: skip
        on(name, act)
    keys.add("c-z")(lambda e: e.app.create_background_task(deck.screen.suspend()))
