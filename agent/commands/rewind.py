"""Goes back to before one of your messages: the files, the conversation, or both.

The difference is shown first. What is taken back from the files can be brought back with /redo; the conversation
stays in the log.
"""

from __future__ import annotations

from agent.commands.base import Choice, Face
from agent.commands.undo import show
from agent.faults import reason
from agent.rewinding import Turn, go, outcome, rewind_conversation, step_to, turns
from agent.undo import SnapshotError, Step

_BOTH, _FILES, _TALK = "both", "files", "conversation"


async def run(face: Face, words: str) -> None:
    found = turns(face.session)
    if not found:
        face.say("Nothing was said yet.")
        return
    choices = [Choice(t, " ".join(t.text.split())[:100], f"#{t.seq}") for t in found]
    turn = await face.choose("Go back to before which message?", choices, search=True)
    if turn is None:
        return
    try:
        await _rewind(face, turn)
    except (SnapshotError, OSError) as error:
        face.say(f"It cannot be done: {reason(error)}", "error")


async def _rewind(face: Face, turn: Turn) -> None:
    step = await step_to(face.session, turn)
    changes = step is not None and bool(step.changes)
    if step is not None and changes:
        show(face, step)
    else:
        face.say("No file was changed since.")
    options = [Choice(_BOTH, "The files and the conversation"), Choice(_FILES, "Only the files")] if changes else []
    chosen = await face.choose("Take back what?", [*options, Choice(_TALK, "Only the conversation")])
    if chosen in (_BOTH, _FILES) and step is not None:
        await _restore(face, step)
    if chosen in (_BOTH, _TALK):
        rewind_conversation(face.session, turn)
        face.say("The conversation goes on from before that message.", "ok")
        face.put(turn.text)


async def _restore(face: Face, step: Step) -> None:
    for line, role in outcome(await go(face.session, step)):
        face.say(line, role)
