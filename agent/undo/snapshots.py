"""Snapshots of a workspace: taken before every call with effects, so that whatever a command did can be taken back.

They need neither a repository nor git, and never touch one: the person's index, history and hooks are not looked at.
What is covered: files of up to 10 MB, symlinks and folders with their permission bits, tracked or not, ignored or not.
What is not: folders such as node_modules and .git, larger files, owners, times, extended attributes; `left_out` of a
snapshot lists it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.folders import text_of
from agent.undo.difference import Change, changes, unified
from agent.undo.restore import RestoreReport, apply
from agent.undo.scan import MAX_FILE_BYTES, Key, Scan, content_of, scan
from agent.undo.store import Entry, Snapshot, SnapshotError, Store, Tree, new_id

_SETTLED = 50_000_000
"""Nanoseconds a file has to have been left alone for its times to prove that it is unchanged: two writes within one
tick of the clock of the file system give it the same times."""

KEEP_SECONDS = 30 * 24 * 3600


class Snapshots:
    """The snapshots of one workspace. All methods are synchronous and may be called from any thread.

    `root` is the workspace, `store_dir` the folder that keeps them, `extra_dirs` further folders they cover. Raises
    OSError where the store cannot be written.
    """

    def __init__(self, root: Path, store_dir: Path, extra_dirs: Sequence[Path] = ()) -> None:
        self.root = os.path.realpath(root)
        self.store = Store(store_dir)
        self._more = [d for d in map(os.path.realpath, extra_dirs) if not _within(d, self.root) and os.path.isdir(d)]
        self._excluded = [os.path.realpath(store_dir)]
        self._known: dict[str, tuple[Key, Entry, int]] = {}
        self._last: Snapshot | None = None
        self._lock = threading.RLock()
        self._remember(self.store.cache())

    def take(self, label: str, also: Sequence[Path] = ()) -> str:
        """Keeps the state as it is now and gives its id; the same id as before where nothing has changed.

        `also` are files outside of the workspace that are about to be written.
        """
        with self._lock, self.store.shared():
            seen = scan(self.root, self._more, self._excluded)
            tree = self._tree(seen)
            outside = {str(p): self._single(str(p)) for p in also if not self._covers(str(p))}
            last = self._last
            self._refill(tree, last.tree if last else {})
            if last and (last.tree, last.outside, last.left_out) == (tree, outside, seen.left_out):
                return last.id
            made = Snapshot(new_id(), time.time(), label, tree, outside, seen.left_out, _head(self.root))
            self.store.save(made, last)
            self._last = made
            if last is None:
                self._save_known()
            return made.id

    def load(self, ident: str) -> Snapshot:
        """A snapshot by its id. Raises SnapshotError."""
        return self._last if self._last and self._last.id == ident else self.store.load(ident)

    def changes(self, ident: str, until: str = "") -> list[Change]:
        """What has changed since a snapshot, up to now or to a later one, by path. Raises SnapshotError."""
        with self._lock:
            return changes(self.load(ident), self.load(until) if until else self._now(self.load(ident)))

    def diff(self, ident: str, until: str = "") -> str:
        """The same as a unified diff. Binary and very large files are named only."""
        with self._lock, self.store.shared():
            return self.told(self.changes(ident, until))

    def told(self, found: Iterable[Change]) -> str:
        """Changes as a unified diff."""
        return unified(list(found), self.store.get)

    def restore(self, ident: str, only: Sequence[str] = ()) -> RestoreReport:
        """Brings the workspace back to a snapshot; `only` limits it to some paths.

        Before that the present state is kept: its id is in the report, so a restore can itself be taken back. Files
        that the snapshot does not cover are left alone. Raises SnapshotError; what could not be written is reported.
        """
        with self._lock, self.store.shared():
            target = self.load(ident)
            kept = self.take("before going back", [Path(p) for p in target.outside])
            found = changes(target, self.load(kept))
            chosen = [c for c in found if not only or c.path in only]
            return apply(self.root, chosen, target, self.store.get, kept)

    def left_out(self) -> Mapping[str, str]:
        """What the last snapshot does not cover, with the reasons."""
        return self._last.left_out if self._last else {}

    def prune(self, seconds: float = KEEP_SECONDS) -> int:
        """Forgets snapshots older than this; gives the bytes that were freed."""
        with self._lock:
            return self.store.prune(seconds)

    def close(self) -> None:
        """Keeps what is known about unchanged files, so that the next session's first snapshot is fast as well. Where
        that is not possible (a full disk, a damaged snapshot) nothing is lost but time, and nobody is told."""
        with self._lock:
            with contextlib.suppress(OSError, SnapshotError):
                self.store.prune_daily(KEEP_SECONDS)
            with contextlib.suppress(OSError):
                self._save_known()

    # -- the present state --------------------------------------------------------------------------------------------

    def _now(self, against: Snapshot) -> Snapshot:
        seen = scan(self.root, self._more, self._excluded)
        outside = {path: self._single(path) for path in against.outside}
        return Snapshot("", time.time(), "now", self._tree(seen), outside, seen.left_out)

    def _tree(self, seen: Scan) -> Tree:
        tree: Tree = {}
        known = self._known
        settled = time.time_ns() - _SETTLED
        for path, (kind, mode, key) in seen.found.items():
            if kind == "d":
                tree[path] = (kind, mode, "")
                continue
            before = known.get(path)
            if before is not None and before[0] == key and key[0] < before[2] and key[1] < before[2]:
                tree[path] = before[1]
                continue
            content = self._content(path, kind)
            if content is None:
                seen.left_out[path] = "cannot be read"
            else:
                tree[path] = (kind, mode, content)
                known[path] = (key, tree[path], settled)
        if len(known) > 2 * len(tree) + 100:
            self._known = {p: k for p, k in known.items() if p in tree}
        return tree

    def _refill(self, tree: Tree, before: Tree) -> None:
        """Keeps contents again that somebody else's clearing up may have taken since they were last seen."""
        for path, entry in tree.items():
            if entry[0] == "f" and before.get(path) != entry and not self.store.has(entry[2]):
                content = self._content(path, "f")
                if content is not None:
                    tree[path] = ("f", entry[1], content)

    def _content(self, path: str, kind: str) -> str | None:
        where = os.path.join(self.root, path)
        try:
            if kind == "l":
                return os.readlink(where)
            data = content_of(where, here=True)
            return None if data is None else self.store.put(data)
        except OSError:
            return None

    def _single(self, path: str) -> Entry | None:
        try:
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                return ("l", 0, os.readlink(path))
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE_BYTES:
                return None
            data = content_of(path, here=False)
            return None if data is None else ("f", info.st_mode & 0o7777, self.store.put(data))
        except OSError:
            return None

    def _covers(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(_within(real, folder) for folder in (self.root, *self._more))

    def _remember(self, data: Mapping[str, Any]) -> None:
        for path, (key, entry, settled) in data.items():
            if len(key) == 5 and len(entry) == 3:
                self._known[path] = (tuple(key), tuple(entry), settled)

    def _save_known(self) -> None:
        self.store.save_cache(self._known)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _head(root: str) -> str:
    """The commit of the repository in a folder, "" where there is none; read without git."""
    git = os.path.join(root, ".git")
    head = text_of(os.path.join(git, "HEAD"), 1000).strip()
    return text_of(os.path.join(git, head[5:]), 100).strip() if head.startswith("ref: ") else head
