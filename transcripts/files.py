"""Opening files that may be anything: what lies where a file should be must not hold anybody up."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def open_file(path: str | Path, mode: int = os.O_RDONLY) -> int:
    """A descriptor of an ordinary file. A folder, a pipe, a device or a socket in its place is refused at once, where
    it would be waited for, or read for ever. One that is made has mode 0600. Raises OSError."""
    fd = os.open(path, mode | _FLAGS, 0o600)
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    except BaseException:
        os.close(fd)
        raise
    return fd


def private_folder(path: Path | str) -> None:
    """A folder that its owner alone may look into, and so is each one above it that had to be made: what `mode` of
    mkdir(parents=True) means for the last one only. Raises OSError."""
    path = Path(path)
    if os.path.isdir(path):
        return
    if not os.path.isdir(path.parent) and path.parent != path:
        private_folder(path.parent)
    path.mkdir(0o700, exist_ok=True)


def opened(path: str | Path, flags: int = 0) -> BinaryIO:
    """An ordinary file, open for reading, with these flags as well. Raises OSError."""
    return os.fdopen(open_file(path, os.O_RDONLY | flags), "rb")


def read_file(path: Path) -> bytes:
    """All bytes of an ordinary file. Raises OSError."""
    with opened(path) as file:
        return file.read()
