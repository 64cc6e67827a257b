"""Where snapshots are kept: contents by their hash, and one small file a snapshot that says what had changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.faults import reason
from transcripts.files import private_folder

Entry = tuple[str, int, str]
"""kind (f, l, d), permission bits, and the content's hash or the symlink's target."""

Tree = dict[str, Entry]

_WHOLE_EVERY = 50
"""Snapshots of a chain after which one is written whole again, so that no chain grows long."""


class SnapshotError(Exception):
    """A snapshot that cannot be read; the text says which and why."""


class DamagedSnapshot(SnapshotError):
    """One that never can be read again."""


@dataclass(frozen=True)
class Snapshot:
    """One state of the workspace. `tree` is by path relative to it; `outside` are single files elsewhere by absolute
    path, None where there was none; `left_out` is what it does not cover, with the reason; `head` is the commit the
    person's repository was on."""

    id: str
    at: float
    label: str
    tree: Tree
    outside: Mapping[str, Entry | None] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    head: str = ""


class Store:
    """The folder of one workspace's snapshots; several sessions may use it at once. Everything in it is readable by
    its owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._depth: dict[str, int] = {}
        for name in ("objects", "snapshots"):
            private_folder(folder / name)

    def put(self, data: bytes) -> str:
        """Keeps bytes and gives their hash."""
        digest = hashlib.blake2b(data, digest_size=20).hexdigest()
        path = self._object(digest)
        if not os.path.exists(path):
            self._write(path, zlib.compress(data, 1))
        return digest

    def has(self, digest: str) -> bool:
        """Whether the bytes of a hash are kept."""
        return os.path.exists(self._object(digest))

    def get(self, digest: str) -> bytes:
        """The bytes of a hash. Raises SnapshotError where they are lost."""
        try:
            data = zlib.decompress(self._object(digest).read_bytes())
        except (OSError, zlib.error) as error:
            raise SnapshotError(f"a content of the snapshot is lost: {reason(error)}") from error
        if hashlib.blake2b(data, digest_size=20).hexdigest() != digest:
            raise SnapshotError("a content of the snapshot is damaged")
        return data

    def save(self, snapshot: Snapshot, before: Snapshot | None) -> None:
        """Keeps a snapshot, as the difference to the one before where that is short."""
        depth = self._depth.get(before.id, _WHOLE_EVERY) + 1 if before else _WHOLE_EVERY
        record: dict[str, Any] = {
            "id": snapshot.id, "at": snapshot.at, "label": snapshot.label, "outside": snapshot.outside,
            "left_out": snapshot.left_out, "head": snapshot.head,
        }  # fmt: skip
        if before is not None and depth < _WHOLE_EVERY:
            record["parent"], record["tree"] = before.id, _changes(before.tree, snapshot.tree)
        else:
            record["tree"], depth = snapshot.tree, 0
        self._depth[snapshot.id] = depth
        self._write(self._path(snapshot.id), zlib.compress(json.dumps(record).encode(), 1))

    def load(self, ident: str) -> Snapshot:
        """A snapshot by its id. Raises SnapshotError."""
        chain = [self._read(ident)]
        while parent := chain[-1].get("parent"):
            chain.append(self._read(parent))
        tree: Tree = {}
        for record in reversed(chain):
            for path, entry in record["tree"].items():
                if entry is None:
                    tree.pop(path, None)
                else:
                    tree[path] = tuple(entry)
        self._depth[ident] = len(chain) - 1
        record = chain[0]
        outside = {p: tuple(e) if e else None for p, e in record["outside"].items()}
        return Snapshot(record["id"], record["at"], record["label"], tree, outside, record["left_out"], record["head"])

    def ids(self) -> list[str]:
        """All snapshots, oldest first."""
        return sorted(p.stem for p in (self.folder / "snapshots").glob("*.z"))

    def prune(self, seconds: float) -> int:
        """Forgets snapshots older than this and contents that no snapshot needs; gives the bytes that were freed."""
        with self._locked(fcntl.LOCK_EX):
            limit = time.time() - seconds
            return self._sweep([i for i in self.ids() if self._path(i).stat().st_mtime >= limit], limit)

    def prune_daily(self, seconds: float) -> None:
        """Prunes where nobody has done so for a day."""
        mark = self.folder / "pruned"
        if not os.path.exists(mark) or time.time() - mark.stat().st_mtime > 24 * 3600:
            self.prune(seconds)
            mark.touch(mode=0o600)

    def forget(self, idents: Collection[str]) -> int:
        """Forgets these snapshots, except those that others build on, and contents that no snapshot needs; gives the
        bytes that were freed."""
        with self._locked(fcntl.LOCK_EX):
            return self._sweep([i for i in self.ids() if i not in idents], time.time())

    def _sweep(self, kept: Sequence[str], limit: float) -> int:
        # What is known of unchanged files may name contents that go now.
        (self.folder / "cache.z").unlink(missing_ok=True)
        # A chain is only as good as its beginning; nobody can go back to a snapshot whose chain is damaged.
        needed: set[str] = set()
        for ident in kept:
            with contextlib.suppress(DamagedSnapshot):
                needed.update([record["id"] for record in self._chain(ident)])
        freed = sum(self._remove(self._path(i)) for i in self.ids() if i not in needed)
        used = {e[2] for i in needed for e in _entries(self._read(i)) if e and e[0] == "f"}
        for path in (self.folder / "objects").glob("*/*"):
            if path.parent.name + path.name not in used and path.stat().st_mtime < limit:
                freed += self._remove(path)
        return freed

    def cache(self) -> dict[str, Any]:
        """What the last session knew about unchanged files; empty where nothing is known."""
        try:
            return json.loads(zlib.decompress((self.folder / "cache.z").read_bytes()))
        except (OSError, ValueError, zlib.error):
            return {}

    def save_cache(self, data: Mapping[str, Any]) -> None:
        """Keeps it for the next session."""
        self._write(self.folder / "cache.z", zlib.compress(json.dumps(data).encode(), 1))

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While contents are being added nobody prunes."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, how)
            yield

    def _chain(self, ident: str) -> Iterator[dict[str, Any]]:
        record: dict[str, Any] | None = self._read(ident)
        while record is not None:
            yield record
            parent = record.get("parent")
            record = self._read(parent) if parent else None

    def _read(self, ident: str) -> dict[str, Any]:
        try:
            return json.loads(zlib.decompress(self._path(ident).read_bytes()))
        except (OSError, ValueError, zlib.error) as error:
            lost = isinstance(error, FileNotFoundError) or not isinstance(error, OSError)
            kind = DamagedSnapshot if lost else SnapshotError
            raise kind(f"there is no readable snapshot {ident}: {reason(error)}") from error

    def _path(self, ident: str) -> Path:
        return self.folder / "snapshots" / f"{os.path.basename(ident)}.z"

    def _object(self, digest: str) -> Path:
        return self.folder / "objects" / digest[:2] / digest[2:]

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)

    def _remove(self, path: Path) -> int:
        size = path.stat().st_size
        path.unlink()
        return size


def _changes(old: Tree, new: Tree) -> dict[str, Entry | None]:
    changed: dict[str, Entry | None] = {p: e for p, e in new.items() if old.get(p) != e}
    changed.update((p, None) for p in old if p not in new)
    return changed


def _entries(record: Mapping[str, Any]) -> Iterator[Any]:
    yield from record["tree"].values()
    yield from record["outside"].values()


def new_id() -> str:
    """A name that sorts by time and never comes twice."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(seconds))}-{rest // 1000:06d}{secrets.token_hex(2)}"
