"""Bringing files back to a snapshot, byte for byte."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.faults import reason
from agent.undo.difference import Change
from agent.undo.store import Entry, Snapshot, SnapshotError
from tools._held import folder_of
from tools._paths import real
from tools.base import ToolFailure

_SWAPPED = "a link was put in the place of a folder meanwhile"


@dataclass(frozen=True)
class RestoreReport:
    """What a restore did. `before` is the id of the state before it; `failed` path -> why it could not be done;
    `left_out` what the snapshot never covered."""

    before: str
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def apply(
    root: str, found: Sequence[Change], target: Snapshot, get: Callable[[str], bytes], before: str
) -> RestoreReport:
    """Undoes changes: each path gets its old state. Contents are read before anything is touched, so a damaged store
    changes nothing (SnapshotError)."""
    contents = {c.path: _content(c.old, get) for c in found if c.old is not None}
    work = _Work(root)
    gone = [c for c in found if c.new is not None and (c.old is None or c.old[0] != c.new[0])]
    for change in sorted(gone, key=lambda c: c.path, reverse=True):
        work.delete(change.path, change.new)
    folders = sorted((c for c in found if c.old and c.old[0] == "d"), key=lambda c: c.path)
    for change in folders:
        work.make_folder(change.path)
    for change in found:
        if change.old is not None and change.old[0] != "d":
            work.write(change.path, change.old, contents[change.path])
    for change in reversed(folders):
        work.set_mode(change.path, change.old)
    work.close_opened()
    deleted = tuple(c.path for c in found if c.old is None and c.path not in work.failed)
    written = tuple(c.path for c in found if c.old is not None and c.path not in work.failed)
    return RestoreReport(before, written, deleted, work.failed, dict(target.left_out))


def _content(entry: Entry | None, get: Callable[[str], bytes]) -> bytes:
    return get(entry[2]) if entry and entry[0] == "f" else b""


@dataclass
class _Work:
    root: str
    failed: dict[str, str] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)

    def delete(self, path: str, entry: Entry | None) -> None:
        where = self._where(path)
        try:
            self._open_folder(where)
            with self._held(path) as held:
                if entry and entry[0] == "d":
                    os.rmdir(held)
                else:
                    os.unlink(held)
        except FileNotFoundError:
            return
        except ToolFailure:
            self.failed[path] = _SWAPPED
        except OSError as error:
            if entry and entry[0] == "d" and _holds_something(where):
                self.failed[path] = "it holds files that the snapshot does not cover"
            else:
                self.failed[path] = reason(error, error.filename or "")

    def make_folder(self, path: str) -> None:
        where = self._where(path)
        try:
            self._open_folder(where)
            with self._held(path) as held:
                if not os.path.isdir(held) or os.path.islink(held):
                    os.mkdir(held)
        except ToolFailure:
            self.failed[path] = _SWAPPED
        except OSError as error:
            self.failed[path] = reason(error, error.filename or "")

    def write(self, path: str, entry: Entry, content: bytes) -> None:
        where = self._where(path)
        try:
            self._open_folder(where)
            with self._held(path) as held:
                if entry[0] == "l":
                    _replace(held, lambda new: os.symlink(entry[2], new))
                elif _linked(held):
                    _overwrite(held, content, entry[1])
                else:
                    _replace(held, lambda new: _create(new, content, entry[1]))
        except ToolFailure:
            self.failed[path] = _SWAPPED
        except OSError as error:
            self.failed[path] = reason(error, error.filename or "")

    def set_mode(self, path: str, entry: Entry | None) -> None:
        where = self._where(path)
        try:
            if entry and os.path.isdir(where):
                os.chmod(where, entry[1])
                self.opened.pop(where, None)
        except OSError as error:
            self.failed[path] = reason(error, error.filename or "")

    @contextlib.contextmanager
    def _held(self, path: str) -> Iterator[str]:
        """A name for a path that no link leads out of the workspace, not even one that is put there meanwhile. Raises
        ToolFailure, OSError."""
        where = self._where(path)
        folder = real(os.path.dirname(where)) if os.path.isabs(path) else os.path.dirname(where)
        with folder_of(Path(folder, os.path.basename(where))) as held:
            yield str(held)

    def _where(self, path: str) -> str:
        return os.path.join(self.root, path)

    def _open_folder(self, where: str) -> None:
        """Lets us write into the folder of a path where its mode forbids it; `close_opened` sets the mode back."""
        folder = os.path.dirname(where)
        os.makedirs(folder, exist_ok=True)
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if not mode & stat.S_IWUSR or not mode & stat.S_IXUSR:
            os.chmod(folder, mode | stat.S_IRWXU)
            self.opened.setdefault(folder, mode)

    def close_opened(self) -> None:
        """Gives folders that were opened for writing their modes back."""
        for folder, mode in self.opened.items():
            with contextlib.suppress(OSError):
                os.chmod(folder, mode)


def _holds_something(where: str) -> bool:
    try:
        return bool(os.listdir(where))
    except OSError:
        return False


def _linked(where: str) -> bool:
    """Whether other names share this file; then it is written in place, or they would part."""
    try:
        info = os.lstat(where)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def _overwrite(where: str, content: bytes, mode: int) -> None:
    os.chmod(where, mode | stat.S_IWUSR)
    descriptor = os.open(where, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, mode)


def _create(where: str, content: bytes, mode: int) -> None:
    descriptor = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, mode)


def _replace(where: str, make: Callable[[str], None]) -> None:
    """Makes the new one beside the old one, then takes its place at once: there is never half a file."""
    beside = os.path.join(os.path.dirname(where), f".refold-{secrets.token_hex(6)}")
    make(beside)
    try:
        os.replace(beside, where)
    except OSError:
        os.unlink(beside)
        raise


__all__ = ["RestoreReport", "SnapshotError", "apply"]
