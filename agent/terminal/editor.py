"""The input: a buffer with chips for big pastes, letters deleted whole, and text that is kept while something asks."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from agent.clean import pasted
from agent.terminal.graphemes import left_of, right_of

CHIP_CHARS = 1_000
CHIP_LINES = 10
"""A paste beyond either becomes a chip: one short word in the input that stands for the whole text."""

KEPT = 50
"""Pastes that are kept; the oldest have long been sent."""

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

_CHIP = re.compile(r"\[(?:Pasted text|Image) #(\d+)[^\]\n]*\]")


class Editor:
    """The buffer and what its chips stand for."""

    def __init__(self, history: History, changed: Callable[[Buffer], None]) -> None:
        self.buffer = Buffer(
            history=history, multiline=True, on_text_changed=changed, on_cursor_position_changed=changed
        )
        self._pastes: dict[str, str] = {}
        self._images: dict[str, Path] = {}
        self._count = 0
        self._begun = ""
        self.aside: list[str] = []

    @property
    def text(self) -> str:
        return self.buffer.text

    @property
    def runs(self) -> bool:
        """Whether the text is a command of the person's, after `!`. Lines that were pasted are not: they may be CSS."""
        return self.text.lstrip().startswith("!") and not (self._begun and self.text.startswith(self._begun))

    def insert(self, text: str) -> None:
        """Inserts what was typed."""
        self.buffer.insert_text(text)

    def paste(self, data: str) -> None:
        """Inserts a pasted text, a big one and the path of a picture as a chip."""
        text = pasted(data)
        if picture := picture_path(text):
            self.attach(picture)
            return
        lines = text.count("\n") + 1
        if len(text) <= CHIP_CHARS and lines <= CHIP_LINES:
            if lines > 1 and not self.buffer.document.text_before_cursor.strip():
                self._begun = text.partition("\n")[0]
            self.buffer.insert_text(text)
            return
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        chip = self._chip(f"Pasted text #{{}}, {size}")
        self._pastes[chip] = text
        while len(self._pastes) > KEPT:
            del self._pastes[next(iter(self._pastes))]
        self.buffer.insert_text(chip)

    def attach(self, path: Path) -> None:
        """Inserts a chip that stands for a picture."""
        chip = self._chip(f"Image #{{}} {path.name}".replace("[", "(").replace("]", ")"))
        self._images[chip] = path
        self.buffer.insert_text(f"{chip} ")

    def expanded(self, text: str) -> str:
        """The text with each paste in the place of its chip."""
        return _CHIP.sub(lambda m: self._pastes.get(m[0], m[0]), text)

    def pictures(self, text: str) -> list[Path]:
        """The pictures whose chips are in the text."""
        return [self._images[m[0]] for m in _CHIP.finditer(text) if m[0] in self._images]

    def stash(self) -> bool:
        """Puts the text aside (it goes to the history too, so that it outlives the chat); False where there is none."""
        if not self.text.strip():
            return False
        self.aside.append(self.text)
        self.take()
        return True

    def unstash(self) -> bool:
        """Brings back what was put aside last; False where there is nothing, or where it would be in the way."""
        if not self.aside or self.text.strip():
            return False
        self.put(self.aside.pop())
        return True

    def take(self) -> str:
        """The text as typed (chips not expanded); it goes to the history, and the input is empty."""
        text = self.buffer.text
        if text.strip():
            self.buffer.history.append_string(self.expanded(text))
        self.buffer.reset()
        return text

    def put(self, text: str) -> None:
        """Puts a text into the input, in front of what is there."""
        rest = self.buffer.text
        both = f"{text}\n{rest}" if rest.strip() else text
        self.buffer.set_document(Document(both, len(text)), bypass_readonly=True)

    def clear(self) -> None:
        self.buffer.set_document(Document(""), bypass_readonly=True)

    def delete_left(self) -> None:
        """Deletes the letter (or the chip) before the cursor, whole."""
        position = self.buffer.cursor_position
        chip = next((m for m in _CHIP.finditer(self.buffer.text) if m.end() == position and self._known(m[0])), None)
        count = len(chip[0]) if chip else left_of(self.buffer.text, position)
        if count:
            self.buffer.delete_before_cursor(count)

    def delete_right(self) -> None:
        count = right_of(self.buffer.text, self.buffer.cursor_position)
        if count:
            self.buffer.delete(count)

    def move_left(self) -> None:
        self.buffer.cursor_position -= left_of(self.buffer.text, self.buffer.cursor_position)

    def move_right(self) -> None:
        self.buffer.cursor_position += right_of(self.buffer.text, self.buffer.cursor_position)

    def continues(self) -> bool:
        """Whether the line asks for one more: a backslash before the cursor, which becomes a newline."""
        if not self.buffer.document.text_before_cursor.endswith("\\"):
            return False
        self.buffer.delete_before_cursor(1)
        self.buffer.insert_text("\n")
        return True

    def _known(self, chip: str) -> bool:
        return chip in self._pastes or chip in self._images

    def _chip(self, words: str) -> str:
        self._count += 1
        return f"[{words.format(self._count)}]"


def picture_path(text: str) -> Path | None:
    """The picture a pasted text names, as terminals write a file that is dropped on them: quoted, escaped, or a URL."""
    words = text.strip()
    if "\n" in words or len(words) > 4096 or Path(words.strip("'\"")).suffix.lower() not in PICTURES:
        return None
    name = unquote(words.removeprefix("file://")) if words.startswith("file://") else words
    try:
        (name,) = shlex.split(name)
        path = Path(os.path.expanduser(name))
        return path if os.path.isfile(path) else None
    except (ValueError, OSError):
        return None


class ChipColours(Processor):
    """Chips in their own colour, so that they are seen as things and not as text."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = "".join(f[1] for f in fragments)
        if "[" not in text or not _CHIP.search(text) or len(fragments) > 1:
            return Transformation(fragments)
        out: list[tuple[str, str]] = []
        last = 0
        for m in _CHIP.finditer(text):
            out += [("", text[last : m.start()]), ("class:chip", m[0])]
            last = m.end()
        return Transformation([*out, ("", text[last:])])
