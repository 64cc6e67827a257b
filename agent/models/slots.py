"""Puts the fragments of tool calls together, whatever a server does with index, id and name."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.models.arguments import is_complete, read_arguments
from transcripts.records import ToolCall, clean

_ID = re.compile(r"[\w.:-]{1,64}")
"""Ids every provider takes back, Kimi's functions.name:0 among them."""


def new_id() -> str:
    """An id for a call that came without one."""
    return f"call_{secrets.token_hex(8)}"


@dataclass
class _Slot:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


@dataclass
class CallSlots:
    """The calls of one answer in the order in which they began. `taken` are ids that are in use in the conversation."""

    taken: set[str] = field(default_factory=set)
    slots: list[_Slot] = field(default_factory=list)

    def feed(self, fragment: Mapping[str, Any]) -> tuple[str, int]:
        """Adds one fragment; returns the name of its call and how many characters of arguments it has now."""
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else fragment
        given, name = fragment.get("id"), function.get("name")
        index = fragment.get("index")
        piece = function.get("arguments")
        slot = self._slot(
            index if isinstance(index, int) else None,
            given if isinstance(given, str) else "",
            name if isinstance(name, str) else "",
            _text(piece),
        )
        return slot.name, sum(map(len, slot.pieces))

    def calls(self) -> Iterator[ToolCall]:
        """The finished calls, ids unique, arguments read. A call without a name has that as its problem."""
        for slot in self.slots:
            arguments, problem = read_arguments(slot.raw)
            if not slot.name:
                problem = "The call has no name."
            yield ToolCall(
                id=self._unique(slot.id),
                name=clean(slot.name) or "unnamed",
                arguments=arguments,
                raw=clean(slot.raw) if problem else "",
                problem=problem,
            )

    def _unique(self, given: str) -> str:
        wanted = given if _ID.fullmatch(given) and given not in self.taken else new_id()
        self.taken.add(wanted)
        return wanted

    def _slot(self, index: int | None, given: str, name: str, piece: str) -> _Slot:
        slot = self._open(index, given, name)
        if slot is None or _begins(slot, given, name, piece):
            slot = _Slot(index, given, name, [piece])
            self.slots.append(slot)
            return slot
        if slot.raw and slot.raw == piece and name:
            return slot  # the whole call once more, as some servers send it at the end
        if name and slot.name != name and not slot.raw:
            slot.name += name
        slot.id = slot.id or given
        slot.pieces.append(piece)
        return slot

    def _open(self, index: int | None, given: str, name: str) -> _Slot | None:
        """The call a fragment may go on with: by index, else by id, else the last one."""
        if index is not None:
            return next((s for s in reversed(self.slots) if s.index == index), None)
        if given:
            found = next((s for s in reversed(self.slots) if s.id == given), None)
            return found or (self.slots[-1] if self.slots and not name else None)
        return self.slots[-1] if self.slots else None


def _begins(slot: _Slot, given: str, name: str, piece: str) -> bool:
    """Whether a fragment that could go on with `slot` is the begin of another call.

    Servers that give every call index 0 tell them apart by id and name only; servers that repeat the name (or make up a
    new id) with each fragment go on in the middle of an object, so the text decides.
    """
    if not name:
        return False
    raw = slot.raw
    if given and slot.id and given != slot.id:
        return not raw or is_complete(raw) or piece.lstrip().startswith("{")
    if not raw:
        return False
    return is_complete(raw) and bool(piece.strip()) and raw != piece


def _text(piece: Any) -> str:
    if piece is None:
        return ""
    return piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
