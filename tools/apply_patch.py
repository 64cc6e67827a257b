"""apply_patch: several files in one step, in the format some models were trained on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tools._changed import Fates, new_bytes, preview_of, text_of
from tools._diagnostics import new_problems
from tools._diff import counts, unified
from tools._edits import check_borders, elision, spliced
from tools._files import digest, load, locate, remove, replace, shown
from tools._notebook import is_notebook
from tools._patch import Step, named, parse, place
from tools._seen import forget, remember, remember_whole, state, what_changed
from tools._text import NotText, decode, endings
from tools.base import ToolContext, ToolFailure, ToolOutput, describe_error, tool


@dataclass
class Fate:
    """What becomes of one file: bytes on disk now and afterwards (None: no file). `like` is where it was moved from."""

    before: bytes | None
    after: bytes | None
    like: Path | None = None
    created: bool = False


def _writes(ctx: ToolContext, args: Mapping[str, Any]) -> list[Path]:
    """All files that are named, also by a patch that is wrong elsewhere."""
    return list(dict.fromkeys(locate(ctx, path) for path in named(str(args.get("patch", "")))))


def _after(ctx: ToolContext, args: Mapping[str, Any]) -> Fates:
    return {where: fate.after for where, fate in _fates(ctx, str(args.get("patch", ""))).items()}


@tool(effect="write", writes=_writes, after=_after, preview=preview_of(_after), title=lambda args: _title(args))
async def apply_patch(ctx: ToolContext, patch: Annotated[str, "From *** Begin Patch to *** End Patch"]) -> ToolOutput:
    """Adds, updates, moves and deletes files; all of the patch or nothing."""
    fates = _fates(ctx, patch)
    _commit(fates)
    for where, fate in fates.items():
        if fate.after is None:
            forget(ctx, where)
        else:
            (remember_whole if fate.created else remember)(ctx, where, fate.after)
    return await _report(ctx, fates)


TOOL = apply_patch


def _title(args: Mapping[str, Any]) -> str:
    files = named(str(args.get("patch", "")))
    return f"apply_patch {', '.join(files[:3])}{', …' if len(files) > 3 else ''}".rstrip()


def _fates(ctx: ToolContext, patch: str) -> dict[Path, Fate]:
    """What the patch makes of each file. Raises ToolFailure for the first step that cannot be made."""
    fates: dict[Path, Fate] = {}
    for step in parse(patch):
        where = locate(ctx, step.path)
        fate = fates.get(where) or _present(ctx, where, step)
        fates[where] = fate
        if step.kind == "add":
            fate.after = new_bytes(fate.after, "".join(f"{line}\n" for line in step.added), step.path)
            fate.created = True
        elif step.kind == "delete":
            fate.after = None
        else:
            _update(ctx, fates, where, fate, step)
    return fates


def _present(ctx: ToolContext, where: Path, step: Step) -> Fate:
    if step.kind == "add" and not os.path.lexists(where):
        return Fate(None, None)
    data = load(ctx, where, step.path)
    if state(ctx, where, data) == "stale":
        raise ToolFailure(what_changed(ctx, where, step.path, data))
    return Fate(data, data)


def _update(ctx: ToolContext, fates: dict[Path, Fate], where: Path, fate: Fate, step: Step) -> None:
    if fate.after is None:
        raise ToolFailure(f"{step.path} was deleted earlier in the patch.")
    after = _patched(fate.after, step)
    if not step.move or locate(ctx, step.move) == where:
        fate.after = after
        return
    target = locate(ctx, step.move)
    there = fates.get(target) or _present(ctx, target, Step("add", step.move))
    fates[target] = Fate(there.before, after, like=where, created=fate.created)
    fate.after = None


def _patched(data: bytes, step: Step) -> bytes:
    try:
        old = decode(data)
        seen = endings(old.text).text
        added = "\n".join(text for c in step.chunks for sign, text in c.lines if sign == "+")
        why = old.refuses(added)
        left_out = elision(added, seen)
        if why or left_out:
            raise ToolFailure(
                f"{step.path}: {why or f'the patch leaves code out ({left_out!r})'}. Nothing was changed."
            )
        splices = place(seen, step.chunks, step.path)
        if not old.sure:
            check_borders(seen, splices, step.path)
        after = old.encode(spliced(old.text, splices))
        if step.path.endswith(".ipynb") and is_notebook(data) and not is_notebook(after):
            raise ToolFailure(f"{step.path} would no longer be a notebook. Nothing was changed.")
        return after
    except NotText as error:
        raise ToolFailure(f"{step.path}: {error}. Nothing was changed.") from None


def _commit(fates: dict[Path, Fate]) -> None:
    """Writes all files, then removes those that go; puts everything back where one cannot be written."""
    done: list[Path] = []
    try:
        for where, fate in sorted(fates.items(), key=lambda item: item[1].after is None):
            _settle(where, fate)
            done.append(where)
    except BaseException as error:
        for where in reversed(done):
            _undo(where, fates[where])
        if isinstance(error, OSError):
            raise ToolFailure(f"{describe_error(error)}. Nothing was changed.") from None
        raise


def _settle(where: Path, fate: Fate) -> None:
    if fate.after is None:
        if fate.before is not None:
            remove(where)
        return
    mode = os.stat(fate.like).st_mode & 0o7777 if fate.like and fate.before is None else None
    replace(where, fate.after, fate.before)
    if mode is not None:
        os.chmod(where, mode)


def _undo(where: Path, fate: Fate) -> None:
    with contextlib.suppress(OSError, ToolFailure):
        if fate.before is None:
            remove(where)
            return
        now = where.read_bytes() if where.exists() else None
        if now != fate.before:
            replace(where, fate.before, now)


def _diff(ctx: ToolContext, fates: Mapping[Path, Fate]) -> str:
    return "".join(unified(shown(ctx, p), text_of(f.before), text_of(f.after)) for p, f in fates.items())


async def _report(ctx: ToolContext, fates: Mapping[Path, Fate]) -> ToolOutput:
    lines, files = [], []
    added = removed = 0
    for where, fate in fates.items():
        sign = "A" if fate.before is None else "D" if fate.after is None else "M"
        if fate.before is None and fate.after is None:
            continue
        how = f" (from {shown(ctx, fate.like)})" if fate.like else ""
        over = " (it existed; replaced)" if fate.created and fate.before else ""
        lines.append(f"{sign} {shown(ctx, where)}{how}{over}")
        more, less = counts(unified("", text_of(fate.before), text_of(fate.after)))
        added, removed = added + more, removed + less
        sha = {"sha": digest(fate.after) if fate.after is not None else ""}
        files.append({"path": str(where), "before_sha": digest(fate.before) if fate.before is not None else "", **sha})
        if fate.after is not None:
            problems = await new_problems(ctx, where, text_of(fate.before), text_of(fate.after))
            lines += [problems] if problems else []
    meta: dict[str, Any] = {"files": files, "diff": _diff(ctx, fates), "added": added, "removed": removed}
    if len(files) == 1:
        meta |= files[0]
    return ToolOutput("\n".join(["Done.", *lines]), meta=meta)
