"""One record, one line: how a record becomes bytes, and how bytes that may be damaged become records again."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transcripts.records import FORMAT_VERSION, Record, from_json, to_json

_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')
_HEAD = re.compile(rb'\{"v":(\d+),"seq":(\d+),"at":"([^"]*)","kind":"(\w+)"')
_BOM = b"\xef\xbb\xbf"


class LineError(ValueError):
    """These bytes are not one whole record; the message says why."""


class VersionError(Exception):
    """The file was written by a newer format than this program reads."""


@dataclass(frozen=True)
class Head:
    """What can be told of a line without decoding it."""

    version: int
    seq: int
    at: str
    kind: str


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
    line = line.strip(b"\0 \t\r\n")
    return line[3:].lstrip(b"\0 \t\r\n") if line.startswith(_BOM) else line


def head(line: bytes) -> Head:
    """Checks a stripped line and reads its head. Raises LineError where it is damaged, VersionError where it is newer."""
    start = _HEAD.match(line)
    if start is None:
        raise LineError("it does not begin like a record")
    end = _CRC.search(line, len(line) - 18)
    if end is None:
        raise LineError("its end is missing")
    if zlib.crc32(line[: end.start()]) != int(end.group(1), 16):
        raise LineError("its checksum does not match")
    version, seq, at, kind = start.groups()
    if int(version) > FORMAT_VERSION:
        raise VersionError(f"format version {int(version)}; this program reads up to {FORMAT_VERSION}: update refold")
    return Head(int(version), int(seq), at.decode(), kind.decode())


def decode(line: bytes) -> Record:
    """The record in a stripped line whose head was checked. Raises LineError where its shape is wrong."""
    try:
        data: Mapping[str, Any] = json.loads(line)
        return from_json(data)
    except (ValueError, TypeError) as error:
        raise LineError(str(error)) from error
