"""One record, one line: how a record becomes bytes, and how bytes that may be damaged become records again."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from transcripts.records import FORMAT_VERSION, Record, from_json, to_json

_END = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_START = re.compile(rb'\{"v":\d+,"seq":\d+,"at":"')
_HEAD = re.compile(rb'\{"v":(\d{1,9}),"seq":(\d{1,15}),"at":"([^"]{0,40})","kind":"(\w{1,40})"(?:,"key":"(\w{1,40})")?')
MOST_SEQ = 10**12
"""The numbers of records stay below: one that is not was never written, and what came after it could not be read."""
_END_SIZE = 18
"""Bytes of the checksum at the end of a line."""
_BOM = b"\xef\xbb\xbf"
AROUND = b"\0 \t\r\n"
"""What crashes, editors and file systems leave around a record."""

Data = dict[str, Any]
UPGRADES: Mapping[int, Callable[[Data], Data]] = {}
"""Format version -> what turns the fields of a record of that version into those of the next."""


class LineError(ValueError):
    """These bytes are not one whole record; the message says why."""


class VersionError(Exception):
    """The file was written by a newer format than this program reads."""


class Head(NamedTuple):
    """What can be told of a line without decoding it. `key` is the key of a note, else ""; `crc` the checksum as it
    stands at the end of the line."""

    version: int
    seq: int
    at: str
    kind: str
    key: str
    crc: bytes


def encode(record: Record, seq: int, at: str) -> bytes:
    """The record as one line, newline included. `at` is UTC, ISO 8601.

    Text stays readable UTF-8; a lone surrogate, which UTF-8 cannot carry, makes this one line pure ASCII instead.
    """
    data = to_json(record)
    body = {"v": FORMAT_VERSION, "seq": seq, "at": at, **data}
    try:
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raw = json.dumps(body, separators=(",", ":")).encode()
    return b'%s,"crc":"%08x"}\n' % (raw[:-1], zlib.crc32(raw[:-1]))


def strip(line: bytes) -> bytes:
    """A line without what editors, file systems and crashes put around it: line ends, NUL runs, a BOM, blanks."""
    line = line.strip(AROUND)
    return line[3:].lstrip(AROUND) if line.startswith(_BOM) else line


def head(line: bytes, start: int = 0, stop: int | None = None) -> Head:
    """Checks the record that fills `line[start:stop]` and reads its head. A 100 MB line is not copied for that.

    Raises LineError where it is damaged, VersionError where it is newer.
    """
    end = len(line) if stop is None else stop
    found = read_head(line, start, end)
    if zlib.crc32(memoryview(line)[start : end - _END_SIZE]) != int(found.crc, 16):
        raise LineError("its checksum does not match")
    if not 0 < found.seq < MOST_SEQ:
        raise LineError("its number is none that is ever given")
    if found.version > FORMAT_VERSION:
        raise VersionError(f"format version {found.version}; this program reads up to {FORMAT_VERSION}: update refold")
    return found


def read_head(line: bytes, start: int, end: int) -> Head:
    """The head as it stands there, its checksum not compared. Raises LineError where beginning or end is missing."""
    begin = _HEAD.match(line, start, end)
    if begin is None:
        raise LineError("it does not begin like a record")
    close = _END.match(line, end - _END_SIZE, end)
    if close is None:
        raise LineError("its end is missing")
    version, seq, at, kind, key = begin.groups()
    name = sys.intern(kind.decode())
    return Head(int(version), int(seq), at.decode("ascii", "replace"), name, (key or b"").decode(), close[1])


def whole_in(line: bytes) -> Iterator[tuple[int, int]]:
    """Where whole records lie inside a line that is not one: (start, stop) of each, its checksum tested.

    A crash or a bad sector can glue two lines together; what is whole in them is not lost. Quotes inside a record's
    strings are escaped, so a beginning or an end of a record cannot stand in its words.
    """
    starts = [m.start() for m in _START.finditer(line)]
    for start, limit in zip(starts, [*starts[1:], len(line)]):
        for end in _END.finditer(line, start, limit):
            if zlib.crc32(memoryview(line)[start : end.start()]) == int(end[1], 16):
                yield start, end.end()
                break


def decode(line: bytes, upgrades: Mapping[int, Callable[[Data], Data]] = UPGRADES) -> Record:
    """The record in a stripped line whose head was checked; one of an older format is brought up to date.

    Raises LineError where its shape is wrong.
    """
    try:
        data: Data = json.loads(line)
        for version in range(int(data.get("v", FORMAT_VERSION)), FORMAT_VERSION):
            data = upgrades[version](data)
        return from_json(data)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise LineError(str(error)) from error
