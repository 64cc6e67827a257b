"""Files that stay what they were judged to be: between the judgement of a call and its work another program may put a
link in the place of a folder, and lead the call elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools._paths import real
from tools.base import TARGETS, ToolFailure

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def targets_of(paths: Iterable[Path]) -> frozenset[str]:
    """Where these paths lead now, and where they lie themselves: what has to be judged, and what is held to."""
    found: set[str] = set()
    for path in paths:
        found |= {real(path), os.path.join(real(path.parent), path.name)}
    return frozenset(found)


@contextmanager
def folder_of(target: Path) -> Iterator[Path]:
    """A name for `target` (its path without links) that leads into the very folder that was judged, whatever becomes of
    that path meanwhile. Raises ToolFailure where it is another one already, OSError."""
    _check(str(target), target)
    descriptor = os.open(target.parent, _FOLDER)
    try:
        now = path_of(descriptor)
        if now is not None and now != str(target.parent):
            raise _moved(target)
        yield target if now is None else Path(f"/proc/self/fd/{descriptor}", target.name)
    finally:
        os.close(descriptor)


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A name for the very file or folder that was judged, to be read from. Raises ToolFailure where another one is
    there by now, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        now = path_of(descriptor)
        if now is not None:
            _check(now, path)
        yield path if now is None else Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _check(found: str, asked: Path) -> None:
    allowed = TARGETS.get()
    if allowed is not None and found not in allowed:
        raise _moved(asked)


def _moved(path: Path) -> ToolFailure:
    return ToolFailure(f"{path} leads elsewhere now than when this call was judged; nothing was done. Try it again.")


def path_of(descriptor: int) -> str | None:
    """Where a file or folder that is open lies; None where the system does not say (no /proc)."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
