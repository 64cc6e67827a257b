"""Finding, checking and replacing files: what every tool that touches one shares."""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tools._held import folder_of, opened
from tools._paths import real
from tools.base import ToolContext, ToolFailure

MAX_EDIT = 64 * 1024 * 1024
"""Bytes of the largest file that is changed by reading it whole."""

_WALK = 20_000
"""Entries looked at for a "did you mean", which keeps it under a fifth of a second."""

_SKIP = {".git", "node_modules", "__pycache__", ".venv", "venv", ".hg", ".svn", "target", "dist", "build"}


def locate(ctx: ToolContext, path: str) -> Path:
    """The absolute path a model meant; permissions judge the same one (ToolContext.resolve)."""
    if "\0" in path:
        raise ToolFailure("A path cannot contain a NUL character.")
    return ctx.resolve(path)


def shown(ctx: ToolContext, path: str | Path) -> str:
    """A path as the model can give it back: relative to the working directory where it lies inside, else absolute."""
    try:
        return str(Path(path).relative_to(ctx.cwd)) or "."
    except ValueError:
        return str(path)


def missing(ctx: ToolContext, path: Path, asked: str) -> ToolFailure:
    """A missing path, with the nearest existing ones."""
    near = suggestions(ctx, path, asked)
    words = f"{asked} does not exist (looked at {path})." if str(path) != asked else f"{asked} does not exist."
    return ToolFailure(f"{words} Did you mean: {', '.join(near)}?" if near else words)


def suggestions(ctx: ToolContext, path: Path, asked: str) -> list[str]:
    """At most three existing paths that may have been meant, as the model can give them back."""
    found: list[Path] = []
    inside = ctx.root / asked.lstrip("/~")
    if asked.startswith("/") and inside.exists():
        found.append(inside)
    with contextlib.suppress(OSError):
        names = os.listdir(path.parent)
        close = [n for n in names if n.lower() == path.name.lower() or Path(n).stem == path.stem]
        close += difflib.get_close_matches(path.name, names, 3, 0.6)
        found += [path.parent / n for n in close]
    if not found:
        found = [p for p in _walk(ctx.root) if p.name.lower() == path.name.lower()]
    return list(dict.fromkeys(shown(ctx, p) for p in found))[:3]


def _walk(top: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if f not in _SKIP and not f.startswith(".")]
        for name in names + folders:
            yield Path(folder, name)
        seen += len(names) + len(folders)
        if seen > _WALK:
            return


def regular(ctx: ToolContext, path: Path, asked: str) -> os.stat_result:
    """The stat of a regular file. Raises ToolFailure for anything else; never opens what could block (pipes)."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if path.is_symlink():
            raise ToolFailure(f"{asked} is a symlink to {os.readlink(path)}, which does not exist.") from None
        raise missing(ctx, path, asked) from None
    except OSError as error:
        raise ToolFailure(f"{asked}: {error.strerror}.") from None
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailure(f"{asked} is a directory.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailure(f"{asked} is not a regular file (a pipe, socket or device).")
    return found


def load(ctx: ToolContext, path: Path, asked: str) -> bytes:
    """The bytes of a file that is to be changed. Raises ToolFailure for one too large to hold."""
    size = regular(ctx, path, asked).st_size
    if size > MAX_EDIT:
        raise ToolFailure(f"{asked} has {size:,} bytes, more than this tool changes; use bash (sed, python).")
    with opened(path) as source:
        return source.read_bytes()


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def replace(path: Path, data: bytes, before: bytes | None) -> str:
    """Writes a whole file in one step: a reader sees the old bytes or the new, never half of them.

    A symlink stays and its target is replaced; mode, owner and extended attributes stay. `before` is what the change
    was made from (None: there was no file); if the disk holds something else by now nothing is written. Raises
    ToolFailure for that, OSError for what the system refuses. Returns what the model should know of it, or "".
    """
    target = Path(real(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with folder_of(target) as held:
        return _replaced(held, data, before, path)


def remove(path: Path) -> None:
    """Removes a file, or the link that it is. Raises ToolFailure, OSError."""
    with folder_of(Path(real(path.parent), path.name)) as held:
        os.unlink(held)


def _replaced(target: Path, data: bytes, before: bytes | None, path: Path) -> str:
    now = _bytes_of(target)
    if now != before:
        raise ToolFailure(f"{path} was changed by something else just now; nothing was written. Read it again.")
    old = os.stat(target) if before is not None else None
    if old and not old.st_mode & 0o222:
        raise ToolFailure(f"{path} is write-protected; nothing was written.")
    try:
        _swap(target, data, existed=old is not None)
    except OSError as error:
        # A folder that takes no new files, or a file that is itself a mount.
        if not old or error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV):
            raise OSError(error.errno, error.strerror, str(path)) from None
        _in_place(target, data)
        return ""
    return _links(old.st_nlink) if old and old.st_nlink > 1 else ""


def _links(names: int) -> str:
    others = "one keeps" if names == 2 else "ones keep"
    return f"The file had {names} names (hard links); the other {others} the old text."


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _swap(target: Path, data: bytes, existed: bool) -> None:
    """Written beside it, synced, renamed. A new file gets the mode that any new file gets there."""
    beside = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if existed else 0o666)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if existed:
            _dress(beside, target)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _dress(new: Path, like: Path) -> None:
    """Gives a file the owner, mode and attributes of the one it is to replace."""
    old, own = os.stat(like), os.stat(new)
    if (old.st_uid, old.st_gid) != (own.st_uid, own.st_gid):
        with contextlib.suppress(OSError):
            os.chown(new, old.st_uid, old.st_gid)
    os.chmod(new, stat.S_IMODE(old.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for key in os.listxattr(like):
                os.setxattr(new, key, os.getxattr(like, key))


def _in_place(target: Path, data: bytes) -> None:
    """For a folder that takes no new files: not in one step, but on disk before it returns. If it fails half way the
    old bytes are put back."""
    with open(os.open(target, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as out:
        before = out.read()
        try:
            _overwrite(out, data)
        except OSError:
            _overwrite(out, before)
            raise


def _overwrite(out: BinaryIO, data: bytes) -> None:
    out.seek(0)
    out.write(data)
    out.truncate()
    out.flush()
    os.fsync(out.fileno())
