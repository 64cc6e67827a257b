"""This session: where it is, what it uses, what it has cost."""

from __future__ import annotations

from agent.commands.base import Face

WHILE_BUSY = True


async def run(face: Face, words: str) -> None:
    session, usage = face.session, face.session.usage
    tokens = f"{usage.input:,} in, {usage.output or 0:,} out" if usage.input is not None else "none reported yet"
    rows = [
        ("session", f"{session.id}{f' ({session.name})' if session.name else ''}"),
        ("log", str(session.path) if session.path else "kept nowhere"),
        ("folder", str(session.cwd)),
        ("model", f"{session.model.name} ({face.settings.source('model')})"),
        ("window", f"{session.model.window:,} tokens ({session.model.window_source})"),
        ("mode", session.permissions.mode),
        ("tokens", tokens),
        ("cost", f"${usage.cost:.4f}" if usage.cost is not None else "n/a"),
    ]
    face.table(rows)
    for notice in session.notices:
        face.say(notice, "warn")
