"""The hash of a file: the one way in which all of the engine says what a file is now."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

UNREADABLE = "?"
"""In the place of a hash: a file that is there and cannot be read, so that nothing can be told from it."""


def file_hash(path: Path, most: int | None = None) -> str:
    """SHA-256 (hex) of a file's bytes; "" where there is none, "?" where it cannot be told: it is no file, may not be
    read, or has more than `most` bytes."""
    try:
        known = os.stat(path)
        if not stat.S_ISREG(known.st_mode) or (most is not None and known.st_size > most):
            return UNREADABLE
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError):
        return UNREADABLE


def bytes_hash(data: bytes | None) -> str:
    """The hash that a file of these bytes has; "" for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()
