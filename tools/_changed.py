"""What write, edit and apply_patch share: guards before a change, and the report after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools._diagnostics import new_problems
from tools._diff import counts, unified
from tools._edits import elision
from tools._files import digest, shown
from tools._seen import gaps, state, what_changed
from tools._text import NotText, decode, endings, plain
from tools.base import ToolContext, ToolFailure, ToolOutput, describe_error

_MAX_SHOWN = 3_000
"""Characters of the diff that the model sees; the person gets all of it (meta `diff`)."""


def guard_overwrite(ctx: ToolContext, where: Path, name: str, before: bytes, content: str) -> None:
    """Raises ToolFailure where content would be lost that the model does not know."""
    known = state(ctx, where, before)
    if known == "stale":
        raise ToolFailure(what_changed(ctx, where, name, before))
    if before and known == "unread":
        raise ToolFailure(f"{name} exists ({len(before):,} bytes) and you have not read it. Read it, or use edit.")
    if before and known == "earlier":
        raise ToolFailure(f"You have not read {name} since this session was resumed. Read it, or use edit.")
    if known == "part":
        raise ToolFailure(
            f"You have not seen all of {name} (not lines {gaps(ctx, where)}). Read the rest first, or use edit."
        )
    left_out = elision(content, text_of(before))
    if left_out:
        raise ToolFailure(f"The content leaves code out ({left_out!r}). Write the whole file, or use edit.")


def new_bytes(before: bytes | None, content: str, name: str) -> bytes:
    """`content` as bytes: in the encoding, with the mark and line endings of the file it replaces; else UTF-8 as it is.

    Line endings of the old file are taken where all of them were \r\n and `content` has none."""
    if any("\ud800" <= c <= "\udfff" for c in content):
        raise ToolFailure("The content has half of a character pair in it (a lone surrogate). Nothing was written.")
    if not before:
        return content.encode()
    try:
        old = decode(before)
    except NotText:
        return content.encode()
    if old.text and "\r" not in content and endings(old.text).text.count("\n") == old.text.count("\r\n") > 0:
        content = content.replace("\n", "\r\n")
    why = old.refuses(content)
    if why:
        raise ToolFailure(f"{name}: {why}. Nothing was written.")
    try:
        return old.encode(content.removeprefix("\ufeff") if old.bom else content)
    except NotText as error:
        raise ToolFailure(f"{name}: {error}. Nothing was written.") from None


def text_of(data: bytes | None) -> str:
    """The text for a diff; "" for none and for what is no text."""
    try:
        return plain(endings(decode(data).text).text) if data else ""
    except NotText:
        return ""


Fates = Mapping[Path, bytes | None]
"""What each file will hold after a call; None: it will be gone."""


def preview_of(
    after: Callable[[ToolContext, Mapping[str, Any]], Fates],
) -> Callable[[ToolContext, Mapping[str, Any]], str]:
    """A tool's `preview` made of its `after`: the diff the person sees before approving. It never raises: a call that
    would be refused says so."""

    def preview(ctx: ToolContext, args: Mapping[str, Any]) -> str:
        try:
            fates = after(ctx, args)
            return "".join(_difference(ctx, path, data) for path, data in fates.items())
        except (ToolFailure, OSError, ValueError, KeyError, TypeError) as error:
            return f"(it would be refused: {describe_error(error)})"

    return preview


def _difference(ctx: ToolContext, path: Path, after: bytes | None) -> str:
    before = path.read_bytes() if path.is_file() else None
    return unified(shown(ctx, path), text_of(before), text_of(after))


async def changed(
    ctx: ToolContext, where: Path, before: bytes | None, after: bytes, words: str, show: bool = False
) -> ToolOutput:
    """The answer after a change that is already on disk: what was done, the diff, and problems that are new."""
    diff = unified(shown(ctx, where), text_of(before), text_of(after))
    added, removed = counts(diff)
    meta = {
        "path": str(where),
        "sha": digest(after),
        "before_sha": digest(before) if before is not None else "",
        "diff": diff,
        "added": added,
        "removed": removed,
    }
    body = diff.split("\n", 2)[-1].rstrip("\n") if show else ""
    if len(body) > _MAX_SHOWN:
        body = f"{body[:_MAX_SHOWN]}\n… (+{added} -{removed} lines in all)"
    problems = await new_problems(ctx, where, text_of(before), text_of(after))
    return ToolOutput("\n".join(part for part in (words, body, problems) if part), meta=meta)
