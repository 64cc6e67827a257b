"""edit: exact text replaced in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from tools._changed import changed, previewed
from tools._edits import Change, Outcome, apply
from tools._files import load, locate, replace, shown
from tools._seen import remember, remember_whole, state, what_changed
from tools.base import ToolContext, ToolFailure, ToolOutput, tool


class Edit(TypedDict):
    """One replacement of several."""

    old: str
    new: str
    replace_all: NotRequired[bool]


def _writes(ctx: ToolContext, args: Mapping[str, Any]) -> list[Path]:
    return [locate(ctx, str(args.get("path", "")))]


def _preview(ctx: ToolContext, args: Mapping[str, Any]) -> str:
    where, before, after = _planned(ctx, args)
    return previewed(ctx, where, before, after)


def _after(ctx: ToolContext, args: Mapping[str, Any]) -> Mapping[Path, bytes | None]:
    where, _, after = _planned(ctx, args)
    return {where: after}


def _planned(ctx: ToolContext, args: Mapping[str, Any]) -> tuple[Path, bytes | None, bytes]:
    where = locate(ctx, str(args.get("path", "")))
    old, new, every = str(args.get("old", "")), str(args.get("new", "")), bool(args.get("replace_all"))
    changes = _changes(old, new, every, args.get("edits") or [])
    before = where.read_bytes() if where.is_file() else None
    return where, before, _outcome(before, changes, shown(ctx, where)).data


@tool(effect="write", writes=_writes, preview=_preview, after=_after)
async def edit(
    ctx: ToolContext,
    path: Annotated[str, "File"],
    old: Annotated[str, "Text to replace, exactly as in the file; must be there once"] = "",
    new: Annotated[str, "Text in its place"] = "",
    replace_all: Annotated[bool, "Replace every occurrence"] = False,
    edits: Annotated[Sequence[Edit], "Instead of old and new: several edits, made in order, all or none"] = (),
) -> ToolOutput:
    """Replaces text in a file. Everything else in it stays as it is."""
    where = locate(ctx, path)
    name = shown(ctx, where)
    changes = _changes(old, new, replace_all, edits)
    creates = len(changes) == 1 and not changes[0].old and not where.exists()
    before = None if creates and not where.is_symlink() else load(ctx, where, path)
    if before is not None and state(ctx, where, before) == "stale":
        raise ToolFailure(what_changed(ctx, where, name, before))
    outcome = _outcome(before, changes, name)
    links = replace(where, outcome.data, before)
    (remember if before else remember_whole)(ctx, where, outcome.data)
    notes = "".join(f" ({note})" for note in outcome.notes)
    verb = "Edited" if before is not None else "Created"
    return await changed(ctx, where, before, outcome.data, f"{verb} {name}.{notes} {links}".rstrip(), show=True)


TOOL = edit


def _changes(old: str, new: str, every: bool, edits: Sequence[Edit]) -> list[Change]:
    if edits and (old or new):
        raise ToolFailure("Give either old and new, or edits, not both.")
    if edits:
        return [Change(e["old"], e["new"], bool(e.get("replace_all", every))) for e in edits]
    return [Change(old, new, every)]


def _outcome(before: bytes | None, changes: list[Change], name: str) -> Outcome:
    """The new bytes; an empty `old` makes a file that is missing or empty, and nothing else."""
    if any(not c.old for c in changes):
        if len(changes) > 1 or before:
            raise ToolFailure(f"old is empty, which only a new or empty file allows; {name} has text in it.")
        if not changes[0].new:
            raise ToolFailure("Nothing to change: old and new are both empty.")
        return Outcome(changes[0].new.encode("utf-8", "replace"), "", changes[0].new)
    return apply(before or b"", changes, name)
