"""Trusts what this folder brings along: its configuration, rules, hooks, MCP servers, skills and commands.

Each file is shown and counts as long as it stays as it is; a changed one has to be trusted again. /trust revoke takes
it back.
"""

from __future__ import annotations

from agent.commands.base import Choice, Face
from agent.faults import reason
from agent.trust import Brought, TrustState

TAKES = "[revoke]"


async def run(face: Face, words: str) -> None:
    trust = face.session.safety.trust
    try:
        if words.strip() == "revoke":
            trust.revoke()
            face.say("Nothing of this folder is trusted any more; that holds from the next session on.", "ok")
            return
        state = trust.state()
        rows = [(_shown(b.path), b.what, how) for how, part in _parts(state) for b in part]
        if not rows:
            face.say("This folder brings nothing along that would have to be trusted.")
            return
        face.table(rows, ("file", "what it is", "trust"))
        if state.asks and await face.choose("Trust all of these files as they are?", _ANSWERS):
            trust.grant((*state.known, *state.new, *state.changed))
            face.say("Trusted. It counts from the next session on; a change asks again.", "ok")
    except OSError as error:
        face.say(f"It cannot be kept: {reason(error)}", "error")


_ANSWERS = [Choice(False, "No"), Choice(True, "Yes, I have looked at them")]


def _shown(path: str) -> str:
    """On one line, whatever the name of a file holds."""
    return path if path.isprintable() else ascii(path)


def _parts(state: TrustState) -> tuple[tuple[str, tuple[Brought, ...]], ...]:
    return (("trusted", state.known), ("new", state.new), ("changed", state.changed))
