"""Why a file, a server or anything else of this machine could not be used, as a person says it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of its path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "its permissions do not allow it",
    errno.EPERM: "the system does not allow it",
    errno.EMFILE: "this process has as many files open as it may (ulimit -n)",
    errno.ENFILE: "this machine has as many files open as it can",
    errno.EFBIG: "a file may not grow that large (ulimit -f)",
    errno.ENOMEM: "there is too little memory",
    errno.EAGAIN: "no more processes can be started now (ulimit -u)",
    errno.EIO: "the device under it failed (input/output error)",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.EROFS: "it lies on a disk that is only for reading",
    errno.ELOOP: "it is a link that leads back to itself",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EEXIST: "it is there already",
    errno.ECONNREFUSED: "nothing listens there (connection refused)",
    errno.ECONNRESET: "the connection was reset",
    errno.ENETUNREACH: "that network cannot be reached",
    errno.EHOSTUNREACH: "that host cannot be reached",
    errno.ETIMEDOUT: "no answer came in time",
}

_OF_A_CONNECTION = (errno.ECONNREFUSED, errno.ECONNRESET, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT)
"""What others say of these says less (asyncio: "Connect call failed")."""


def reason(error: BaseException, about: Path | str = "") -> str:
    """Why something failed, in words without the system's numbers. The file that the error names stands in front,
    unless it is `about`, of which the sentence around it speaks anyhow."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {error.start + 1})"
    if isinstance(error, MemoryError):
        return _WORDS[errno.ENOMEM]
    if isinstance(error, RuntimeError) and refused(error):
        return _WORDS[errno.EAGAIN]
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    number = error.errno or 0
    plain = error.filename or number in _OF_A_CONNECTION or error.strerror == os.strerror(number)
    ours = _WORDS.get(number) if plain else None
    words = ours or error.strerror[:1].lower() + error.strerror[1:]
    named = "" if error.filename is None else str(error.filename)
    return f"{named}: {words}" if named and named != str(about) else words


def refused(error: BaseException) -> bool:
    """Whether this machine refused something, by its files, its memory or its limits: no fault of refold's own."""
    return isinstance(error, OSError | MemoryError) or str(error) == "can't start new thread"
