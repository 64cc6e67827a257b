"""edit: exact text replaced in one file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from tools._cells import edit_cells
from tools._changed import Fates, changed, new_bytes, preview_of
from tools._edits import Change, Outcome, apply
from tools._files import load, locate, replace, shown
from tools._notebook import is_notebook
from tools._seen import remember, remember_whole, state, what_changed
from tools.base import ToolContext, ToolFailure, ToolOutput, tool


class Edit(TypedDict):
    """One replacement of several."""

    old: str
    new: str
    replace_all: NotRequired[bool]


def _writes(ctx: ToolContext, args: Mapping[str, Any]) -> list[Path]:
    return [locate(ctx, str(args.get("path", "")))]


def _after(ctx: ToolContext, args: Mapping[str, Any]) -> Fates:
    old, new, every = str(args.get("old", "")), str(args.get("new", "")), bool(args.get("replace_all"))
    changes = _changes(old, new, every, args.get("edits") or [])
    where = locate(ctx, str(args["path"]))
    return {where: _outcome(ctx, where, str(args["path"]), changes)[1].data}


@tool(effect="write", writes=_writes, after=_after, preview=preview_of(_after))
async def edit(
    ctx: ToolContext,
    path: Annotated[str, "File"],
    old: Annotated[str, "Text to replace, exactly as in the file; must be there once"] = "",
    new: Annotated[str, "Text in its place"] = "",
    replace_all: Annotated[bool, "Replace every occurrence"] = False,
    edits: Annotated[Sequence[Edit], "Instead of old and new: several edits, made in order, all or none"] = (),
) -> ToolOutput:
    """Replaces text in a file that you have read; everything else in it stays. Quote it without the line numbers."""
    where = locate(ctx, path)
    name = shown(ctx, where)
    before, outcome = _outcome(ctx, where, path, _changes(old, new, replace_all, edits))
    links = replace(where, outcome.data, before)
    (remember if before else remember_whole)(ctx, where, outcome.data)
    notes = "".join(f" ({note})" for note in outcome.notes)
    verb = "Edited" if before is not None else "Created"
    words = f"{verb} {name}.{notes} {links}".rstrip()
    return await changed(ctx, where, before, outcome.data, words, show=True)


TOOL = edit


def _changes(old: str, new: str, every: bool, edits: Sequence[Edit]) -> list[Change]:
    if edits and (old or new):
        raise ToolFailure("Give either old and new, or edits, not both.")
    if edits:
        return [Change(e["old"], e["new"], bool(e.get("replace_all", every))) for e in edits]
    return [Change(old, new, every)]


def _outcome(ctx: ToolContext, where: Path, path: str, changes: Sequence[Change]) -> tuple[bytes | None, Outcome]:
    """(bytes on disk, what becomes of them). An empty `old` makes a file that is missing or empty, and nothing else."""
    name = shown(ctx, where)
    creates = len(changes) == 1 and not changes[0].old and not os.path.lexists(where)
    before = None if creates else load(ctx, where, path)
    if before is not None and state(ctx, where, before) == "stale":
        raise ToolFailure(what_changed(ctx, where, name, before))
    if all(c.old for c in changes):
        return before, _applied(where, before or b"", changes, name)
    if len(changes) > 1 or before:
        raise ToolFailure(f"old is empty, which only a new or empty file allows; {name} has text in it.")
    if not changes[0].new:
        raise ToolFailure("Nothing to change: old and new are both empty.")
    return before, Outcome(new_bytes(None, changes[0].new, name), "", changes[0].new)


def _applied(where: Path, before: bytes, changes: Sequence[Change], name: str) -> Outcome:
    if where.suffix != ".ipynb":
        return apply(before, changes, name)
    outcome = edit_cells(before, changes, name) or apply(before, changes, name)
    if is_notebook(before) and not is_notebook(outcome.data):
        raise ToolFailure(f"{name} would no longer be a notebook. Quote the text of a cell; nothing was changed.")
    return outcome
