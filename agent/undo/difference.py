"""What lies between two snapshots."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.undo.store import Entry, Snapshot

MAX_DIFF_BYTES = 1_000_000
"""Bytes of a file beyond which its lines are not compared."""


@dataclass(frozen=True)
class Change:
    """One path that differs: `old` in the earlier state, `new` in the later one; None where there is nothing."""

    path: str
    old: Entry | None
    new: Entry | None

    def reversed(self) -> Change:
        """The change that takes this one back."""
        return Change(self.path, self.new, self.old)

    @property
    def what(self) -> str:
        """created, deleted, changed, or mode (only the permission bits)."""
        if self.old is None:
            return "created"
        if self.new is None:
            return "deleted"
        return "mode" if (self.old[0], self.old[2]) == (self.new[0], self.new[2]) else "changed"


def changes(old: Snapshot, new: Snapshot) -> list[Change]:
    """The differences by path. What either of the two does not cover is no difference."""
    paths = {p for p in (*old.tree, *new.tree) if old.tree.get(p) != new.tree.get(p)}
    found = [
        Change(p, old.tree.get(p), new.tree.get(p))
        for p in paths
        if not (p not in old.tree and _left_out(p, old)) and not (p not in new.tree and _left_out(p, new))
    ]
    found += [Change(p, e, new.outside.get(p)) for p, e in old.outside.items() if new.outside.get(p) != e]
    return sorted(found, key=lambda c: c.path)


def _left_out(path: str, snapshot: Snapshot) -> bool:
    """Whether a path, or a folder it lies in, is among what a snapshot does not cover."""
    if not snapshot.left_out:
        return False
    if "." in snapshot.left_out:
        return True
    parts = path.split("/")
    return any("/".join(parts[:n]) in snapshot.left_out for n in range(1, len(parts) + 1))


def unified(found: Sequence[Change], get: Callable[[str], bytes]) -> str:
    """The changes of files as one unified diff, with git's words for modes and binary files."""
    return "".join(text for change in found for text in _of_change(change, get))


def _of_change(change: Change, get: Callable[[str], bytes]) -> Iterator[str]:
    if "d" in ((change.old or "-")[0], (change.new or "-")[0]) and (change.old is None or change.new is None):
        return  # a folder alone is no line of a diff
    yield f"diff a/{change.path} b/{change.path}\n"
    yield from _modes(change)
    if change.what == "mode":
        return
    before, after = _text(change.old, get), _text(change.new, get)
    if before is None or after is None:
        yield f"Binary files a/{change.path} and b/{change.path} differ\n"
        return
    old_name = "/dev/null" if change.old is None else f"a/{change.path}"
    new_name = "/dev/null" if change.new is None else f"b/{change.path}"
    for line in difflib.unified_diff(before, after, old_name, new_name):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _modes(change: Change) -> Iterator[str]:
    if change.old is None:
        yield f"new file mode {_mode(change.new)}\n"
    elif change.new is None:
        yield f"deleted file mode {_mode(change.old)}\n"
    elif change.old[:2] != change.new[:2]:
        yield f"old mode {_mode(change.old)}\nnew mode {_mode(change.new)}\n"


def _mode(entry: Entry | None) -> str:
    kinds = {"f": 0o100000, "l": 0o120000, "d": 0o040000}
    return f"{kinds[entry[0]] | entry[1]:06o}" if entry else "000000"


def _text(entry: Entry | None, get: Callable[[str], bytes]) -> list[str] | None:
    """The lines of an entry; None for what is no text."""
    if entry is None or entry[0] == "d":
        return []
    if entry[0] == "l":
        return [entry[2]]
    data = get(entry[2])
    if b"\0" in data[:8000] or len(data) > MAX_DIFF_BYTES:
        return None
    return data.decode("utf-8", "replace").splitlines(keepends=True) if b"\r" not in data else _lines(data)


def _lines(data: bytes) -> list[str]:
    # Only \n ends a line here: a file whose line endings changed has to show it.
    return [line.decode("utf-8", "replace") for line in data.splitlines(keepends=True)]
