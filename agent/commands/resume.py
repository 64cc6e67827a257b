"""Goes on with an earlier session.

With an id, the beginning of one, or a name; alone, choose from a list.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agent.commands.base import Choice, Face
from agent.session import SessionError
from runtime.model import ModelError
from transcripts.catalog import SessionInfo, list_sessions

ALIASES = ("continue",)
TAKES = "[id or name]"


async def run(face: Face, words: str) -> None:
    ref = words or await choose(face)
    if not ref:
        return
    try:
        await face.open(resume=ref)
    except (SessionError, ModelError) as error:
        face.say(str(error), "error")


async def choose(face: Face) -> str:
    """The id of a session of this folder (of all folders, where this one has none); "" where nothing is chosen."""
    others = [c for c in choices(face.settings.home, face.session.cwd) if c.value != face.session.id]
    if not others:
        face.say("There is no other session yet.")
        return ""
    return await face.choose("Go on with", others, search=True) or ""


def choices(home: Path, cwd: Path) -> list[Choice]:
    """The sessions of a folder, or of all folders where it has none; those in which nothing was said are left out."""
    found = list_sessions(home, cwd) or list_sessions(home)
    return [Choice(s.id, s.name or s.first or "(no words)", note(s)) for s in found]


def note(info: SessionInfo, now: datetime | None = None) -> str:
    """How long ago a session was used, its id, how much was said, its size, model and branch, and what is wrong."""
    said = f"{info.messages} message{'' if info.messages == 1 else 's'}" if info.messages else ""
    size = f"{max(1, info.size // 1024):,} KB"
    parts = [ago(info.updated, now), info.id, said, size, info.model, info.branch, info.problem]
    return " · ".join(p for p in parts if p)


def ago(moment: str, now: datetime | None = None) -> str:
    """An ISO 8601 time (UTC) as a distance from now; "" where it is none."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    passed = ((now or datetime.now(UTC)) - then).total_seconds()
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if passed >= size:
            n = int(passed // size)
            return f"{n} {unit}{'s' if n > 1 else ''} ago"
    return "just now"
