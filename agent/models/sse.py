"""Server-sent events as servers really send them: any line ending, any split, with or without the space, or no events
at all but one JSON object."""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runtime.errors import classify_model_error
from runtime.model import ModelError, ModelErrorKind

_LINE_END = re.compile("\r\n|\n|\r")
DONE = "[DONE]"


class EventReader:
    """Turns bytes into the data of events. `feed` as they come, `close` at the end of the stream.

    A multi-byte character or a line may be split anywhere. `event` is the name of the last event ("" where it had
    none).
    """

    def __init__(self) -> None:
        self.event = ""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._data: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of each event that is complete now."""
        text = self._rest + self._decoder.decode(data)
        held = text.endswith("\r")
        lines = _LINE_END.split(text[:-1] if held else text)
        self._rest = lines.pop() + ("\r" if held else "")
        for line in lines:
            yield from self._line(line)

    def close(self) -> Iterator[str]:
        """The data of a last event that no empty line ended."""
        yield from self._line(self._rest.rstrip("\r"))
        yield from self._line("")

    def _line(self, line: str) -> Iterator[str]:
        if not line:
            if self._data:
                self.event, data = self._name, "\n".join(self._data)
                self._data, self._name = [], ""
                yield data
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value.strip()


class ChunkReader:
    """Turns the bytes of one response into JSON objects: the chunks of a stream, or the one object of a server that
    does not stream. `done` is set once [DONE] has come; `last` is the time.monotonic() of the last chunk or the begin.
    Raises ModelError for what is neither."""

    def __init__(self) -> None:
        self.done = False
        self.last = time.monotonic()
        self._events = EventReader()
        self._whole: bytearray | None = None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[Mapping[str, Any]]:
        """The chunks that are complete now."""
        if not self._begun and data.strip():
            self._begun = True
            if data.lstrip()[:1] in b"{<":
                self._whole = bytearray()
        if self._whole is not None:
            self._whole += data
            return
        for text in self._events.feed(data):
            yield from self._chunk(text)

    def close(self) -> Iterator[Mapping[str, Any]]:
        """The last chunk, at the end of the stream."""
        if self._whole is not None:
            yield _one(bytes(self._whole))
            self.done = True
            return
        for text in self._events.close():
            yield from self._chunk(text)

    def _chunk(self, text: str) -> Iterator[Mapping[str, Any]]:
        if self.done or not text.strip():
            return
        if text.strip() == DONE:
            self.done = True
            return
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            raise ModelError(ModelErrorKind.NETWORK, "The server sent a chunk that is not JSON.") from error
        if self._events.event == "error" and isinstance(value, dict):
            value = {"error": value.get("error") or value}
        if isinstance(value, dict):
            self.last = time.monotonic()
            yield value


def _one(data: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    raise classify_model_error(502, body=data)
