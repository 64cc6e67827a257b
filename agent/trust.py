"""Trust in a folder: what it brings along does nothing until the person has said so, and again after any change.

A folder may bring configuration, rules, hooks, MCP servers, skills and commands. All of these can run programs or
loosen permissions, so each file counts only while its content is the one that was trusted. The list is kept in the
person's home, never in the folder. A folder's .env is not on it: refold never reads one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.private import read_object, write_private
from transcripts.files import opened

_FILES = (
    (".refold/config.toml", "configuration"),
    (".refold/permissions.toml", "rules"),
    (".refold/hooks.json", "hooks"),
    (".refold/mcp.json", "MCP servers"),
    (".mcp.json", "MCP servers"),
    (".claude/settings.json", "hooks"),
    (".claude/settings.local.json", "hooks"),
)
_FOLDERS = (
    (".refold/hooks", "hooks"),
    (".refold/skills", "skill"),
    (".refold/commands", "command"),
    (".refold/agents", "agent"),
    (".agents/skills", "skill"),
    (".claude/hooks", "hooks"),
    (".claude/skills", "skill"),
    (".claude/commands", "command"),
    (".claude/agents", "agent"),
)
MAX_FILES = 2_000
"""Files and folders in a folder of skills or hooks that are looked at; a folder with more is not trusted."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the largest file that can be trusted, and of all files of one of these folders; a look at each is part of a
start."""


@dataclass(frozen=True)
class Brought:
    """One file that a folder brings along: its path relative to the folder, what it is, the SHA-256 of its bytes."""

    path: str
    what: str
    sha: str


@dataclass(frozen=True)
class TrustState:
    """`known` files count; `new` and `changed` ones do not until they are trusted; `gone` were trusted once."""

    known: tuple[Brought, ...] = ()
    new: tuple[Brought, ...] = ()
    changed: tuple[Brought, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether there is anything the person should be asked about."""
        return bool(self.new or self.changed)


class Trust:
    """What is trusted in one folder, kept in home/trust.json."""

    def __init__(self, home: Path, root: Path) -> None:
        self._file = home / "trust.json"
        self.root = os.path.realpath(root)

    def state(self) -> TrustState:
        """What the folder brings along now, and how it stands."""
        pinned = self._pinned()
        found = list(brought(self.root))
        return TrustState(
            known=tuple(b for b in found if pinned.get(b.path) == b.sha),
            new=tuple(b for b in found if b.path not in pinned),
            changed=tuple(b for b in found if b.path in pinned and pinned[b.path] != b.sha),
            gone=tuple(p for p in pinned if p not in {b.path for b in found}),
        )

    def allows(self, path: str | Path) -> bool:
        """Whether a file of the folder counts: it was trusted, and its content is still the same."""
        return self.read(path) is not None

    def read(self, path: str | Path) -> bytes | None:
        """The content of a file that counts, exactly the bytes that were trusted; None for any other. Use what this
        gives: a file read again may be another one."""
        relative = os.path.relpath(os.path.join(self.root, path), self.root)
        return self.read_all([relative]).get(relative)

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Of files of the folder, named relative to it, those that count, each with the bytes that were trusted."""
        pinned = self._pinned()
        found: dict[str, bytes] = {}
        for path in (p for p in paths if p in pinned):
            data = content(os.path.join(self.root, path))
            if data is not None and hashlib.sha256(data).hexdigest() == pinned[path]:
                found[path] = data
        return found

    def below(self, folder: str) -> list[str]:
        """The files below a folder of the workspace that were trusted as they once were, as paths relative to it, in
        order. Nothing of the folder is looked at."""
        start = f"{folder}/"
        return sorted(path[len(start) :] for path in self._pinned() if path.startswith(start))

    def stands(self, folders: Sequence[str]) -> bool:
        """Whether every file below these folders of the workspace is trusted as it is now. A link that leads out of the
        workspace is not, nor are more files than are looked at."""
        pinned = self._pinned()
        for folder in folders:
            paths = _files(self.root, folder)
            if paths is None:
                return False
            found = [next(_one(self.root, path, ""), None) for path in paths]
            if not all(b is not None and pinned.get(b.path) == b.sha for b in found):
                return False
        return True

    def grant(self, files: tuple[Brought, ...] | None = None) -> None:
        """Trusts files as they were shown (all that the folder brings, where none are named). Raises OSError."""
        pinned = {b.path: b.sha for b in (brought(self.root) if files is None else files)}
        self._save({**({} if files is None else self._pinned()), **pinned})

    def revoke(self) -> None:
        """Trusts nothing of the folder any more. Raises OSError."""
        self._save({})

    def _pinned(self) -> Mapping[str, str]:
        # A list that cannot be read trusts nothing.
        entry = read_object(self._file).get(self.root)
        files = entry.get("files") if isinstance(entry, dict) else None
        return {str(p): str(s) for p, s in files.items()} if isinstance(files, dict) else {}

    def _save(self, files: Mapping[str, str]) -> None:
        data = read_object(self._file)
        data.pop(self.root, None)
        if files:
            data[self.root] = {"files": dict(sorted(files.items()))}
        write_private(self._file, json.dumps(data, indent=1))


def brings(root: str | Path) -> bool:
    """Whether a folder has any of the places that could bring something along; a few looks, nothing is read."""
    return any(os.path.exists(os.path.join(root, path)) for path, _ in (*_FILES, *_FOLDERS))


def brought(root: str) -> Iterator[Brought]:
    """Everything in a folder that could run programs or loosen permissions. Symlinks count by what they lead to, and
    only inside the folder."""
    for path, what in _FILES:
        yield from _one(root, path, what)
    for folder, what in _FOLDERS:
        for path in _files(root, folder) or ():
            yield from _one(root, path, what)


def _files(root: str, folder: str) -> list[str] | None:
    """The files below a folder, as paths relative to the root, in order; None where they are too many. Folders that
    are links are not followed."""
    found: list[str] = []
    looked = size = 0
    for place, folders, names in os.walk(os.path.join(root, folder)):
        looked += len(names) + len(folders)
        if looked > MAX_FILES:
            return None
        files = [path for path in (os.path.join(place, name) for name in names) if os.path.isfile(path)]
        found += files
        size += sum(map(_size, files))
        if size > MAX_BYTES:
            return None
    return [os.path.relpath(path, root) for path in sorted(found)]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def content(path: str) -> bytes | None:
    """The bytes of a regular file; None for what is none, cannot be read or is over MAX_BYTES."""
    try:
        with opened(path) as file:
            return file.read() if os.fstat(file.fileno()).st_size <= MAX_BYTES else None
    except OSError:
        return None


def _one(root: str, path: str, what: str) -> Iterator[Brought]:
    where = os.path.realpath(os.path.join(root, path))
    if not where.startswith(root.rstrip("/") + "/"):
        return
    data = content(where)
    if data is not None:
        yield Brought(path, what, hashlib.sha256(data).hexdigest())
