"""What a crash in the middle of a copy, an import or a write leaves beside the sessions: found, and removed where it is
certain that nobody comes back to it."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tools._processes import runs
from transcripts.catalog import sessions_folder

try:
    import fcntl
except ImportError:  # Windows has no flock; age alone decides there
    fcntl = None

OLD_ENOUGH = 3600.0
"""Seconds in which nothing of it was written."""


def hold(file: IO[bytes]) -> bool:
    """Locks an open file as long as it stays open; False where somebody else holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def abandoned(home: Path, age: float = OLD_ENOUGH) -> Iterator[Path]:
    """What nobody can come back to: all of a copy or an import that was never finished, and bodies of which only a part
    was written."""
    for part in sorted(sessions_folder(home).glob("*/*.part")):
        beside = sorted(part.parent.glob(f"{glob.escape(part.stem)}.*"))
        finished = part.with_suffix(".jsonl") in beside
        if not finished and not _is_held(part) and all(_is_old(path, age) for path in beside):
            yield from beside
    for part in sorted(sessions_folder(home).glob("*/*.blobs/*.part")):
        if _is_old(part, age) and not _is_written(part):
            yield part


def without_log(home: Path) -> list[Path]:
    """Folders beside a session's file that is not there any more: somebody may have taken it away and bring it back, so
    they are only told."""
    folders = (p for suffix in ("blobs", "tasks") for p in sessions_folder(home).glob(f"*/*.{suffix}"))
    return sorted(p for p in folders if not any(os.path.exists(p.with_suffix(s)) for s in (".jsonl", ".part")))


def clear(home: Path, age: float = OLD_ENOUGH) -> list[Path]:
    """Removes it; gives what was removed. What cannot be removed stays."""
    gone: list[Path] = []
    for path in list(abandoned(home, age)):
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if os.path.isdir(path) else path.unlink()
            gone.append(path)
    return gone


def _is_old(path: Path, age: float) -> bool:
    """Whether nothing of it was written for so long."""
    try:
        newest = max(p.stat().st_mtime for p in (path, *(path.rglob("*") if os.path.isdir(path) else ())))
    except OSError:
        return False
    return time.time() - newest > age


def _is_written(part: Path) -> bool:
    """Whether the process that was writing a body still runs; its number stands in the name."""
    number = part.name.split(".")[-2]
    return number.isdigit() and runs(int(number))


def _is_held(part: Path) -> bool:
    try:
        with part.open("rb") as file:
            return not hold(file)
    except OSError:
        return True
