"""Large bodies beside the log, named by their content, so that one is stored once however often it is said."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from transcripts.files import open_file, private_folder, read_file


class LogWriteError(Exception):
    """Something could not be made durable; carries the real reason. Nothing may be done that cannot be recorded."""


class Blobs:
    """A folder of bodies. An id is the first 32 hex digits of the body's SHA-256."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._memory: dict[str, bytes] = {}

    def put(self, body: bytes) -> str:
        """Stores a body durably (body, name and folder are on the disk when this returns) and gives its id: a record
        that names it can be written next. Raises LogWriteError; nothing is left behind then."""
        name = hashlib.sha256(body).hexdigest()[:32]
        if self.folder is None:
            self._memory[name] = body
            return name
        if _size(self.folder / name) != len(body):
            try:
                self._store(self.folder, name, body)
            except OSError as error:
                words = error.strerror or error
                raise LogWriteError(f"a part of the log could not be written: {words}") from error
        return name

    def _store(self, folder: Path, name: str, body: bytes) -> None:
        if not os.path.isdir(folder):
            private_folder(folder)
            sync_folder(folder.parent)
        part = folder / f"{name}.{os.getpid()}.part"
        try:
            write_durably(part, body)
            part.replace(folder / name)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        sync_folder(folder)

    def get(self, name: str) -> bytes:
        """The body with this id. Raises KeyError where it is not there or no longer what its name says."""
        if self.folder is None:
            return self._memory[name]
        try:
            body = read_file(self.folder / Path(name).name)
        except (OSError, ValueError, TypeError) as error:  # a name that is none of ours is a body that is not there
            raise KeyError(name) from error
        if hashlib.sha256(body).hexdigest()[:32] != name:
            raise KeyError(name)
        return body

    def names(self) -> list[str]:
        """The ids of all bodies, sorted."""
        if self.folder is None:
            return sorted(self._memory)
        return sorted(p.name for p in self.folder.iterdir() if len(p.name) == 32) if os.path.isdir(self.folder) else []

    def take(self, other: Blobs, names: Iterable[str]) -> None:
        """Copies those of the named bodies that another store has, durably. Raises OSError."""
        for name in names:
            try:
                body = other.get(name)
            except KeyError:
                continue
            if self.folder is None:
                self._memory[name] = body
            else:
                private_folder(self.folder)
                write_durably(self.folder / name, body)
        if self.folder is not None and os.path.isdir(self.folder):
            sync_folder(self.folder)
            sync_folder(self.folder.parent)


def write_durably(path: Path, body: bytes, flags: int = os.O_TRUNC) -> None:
    """Writes an ordinary file of mode 0600 and has it on the disk when this returns. Raises OSError."""
    fd = open_file(path, os.O_WRONLY | os.O_CREAT | flags)
    with os.fdopen(fd, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable (new files, renamed ones), where the system can."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
