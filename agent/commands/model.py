"""Shows or changes the model.

With provider:model, goes on with that one; the conversation stays.
"""

from __future__ import annotations

from agent.commands.base import Choice, Face
from runtime.model import Model, ModelError

TAKES = "[provider:model]"


async def run(face: Face, words: str) -> None:
    session = face.session
    if not words:
        face.say(f"The model is {_described(session.model)}.")
        chosen = await face.choose("Go on with", _choices(face))
        words = await face.ask("provider:model › ") or "" if chosen == "" else chosen or ""
    if not words or words in (session.spec, session.model.name):
        return
    try:
        session.use_model(words)
    except ModelError as error:
        face.say(error.message, "error")
        return
    face.say(f"From now on {_described(session.model)}.", "ok")


def _described(model: Model) -> str:
    return f"{model.name}, with a window of {model.window:,} tokens ({model.window_source})"


def _choices(face: Face) -> list[Choice]:
    names = dict.fromkeys(n for n in (face.session.spec, face.settings.model, "local") if n)
    notes = {"local": "built in, runs on this machine", face.session.spec: "in use"}
    return [*(Choice(n, n, notes.get(n, "configured")) for n in names), Choice("", "another one", "type its name")]
