"""Makes a golden log whose requests show everything that a view can hold, to be frozen: run it as a module with the
file to write. The log tells the hash of each request; a program that words things as this one gives the same hashes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agent.logbook import opened
from agent.models.scripted import Scripted
from runtime.context.budget import ContextSettings
from runtime.context.engine import ContextEngine
from transcripts.log import TranscriptLog
from transcripts.records import (
    Assistant,
    Image,
    Note,
    Record,
    Rewind,
    SessionStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    Usage,
    User,
)

SYSTEM = "You are a careful assistant. Übermut tut selten gut."
SPECS = [
    {"type": "function", "function": {"name": name, "description": f"It can {name}.", "parameters": {"type": "object"}}}
    for name in ("read", "write", "bash", "recall")
]
NOTES = "The cart was mended; the next step is to look at tax.py, and pay.py is never touched."


class Maker:
    """Writes one log through the engine itself."""

    def __init__(self, path: Path, model: Scripted) -> None:
        self.log, self.model = TranscriptLog.create(path), model
        self.log.append(SessionStart("a1b2c3d4", "/home/ada/shop", "refold 0.1.0", "scripted:golden", "golden", "main"))
        self.log.append(opened("golden", "golden"))
        settings = ContextSettings()
        self.engine = ContextEngine(self.log, system=SYSTEM, specs=SPECS, settings=settings)
        self.engine.set_window(6_000, "set")
        self.number = 0

    def say(self, *records: Record) -> None:
        """Appends records, results as results are."""
        for record in records:
            is_result = isinstance(record, ToolResult)
            self.engine.append_result(record) if is_result else self.engine.append(record)

    def ask(self) -> None:
        """Notes the request that would be sent now."""
        self.engine.record_request(self.engine.build_model_view(), "golden")

    def picture(self, body: bytes) -> Image:
        """A picture whose bytes are kept."""
        return Image(self.log.blobs.put(body), "image/png", "shot.png")

    def step(self, size: int = 0, status: str = "ok") -> None:
        """An answer with a call, its result, and the request that showed it."""
        self.number += 1
        call = ToolCall(f"c{self.number}", "bash", json.dumps({"command": f"make part{self.number}"}))
        text = f"part {self.number} of the work\n" + f"line {self.number} of an output that is long\n" * size
        self.ask()
        self.say(Assistant(f"Step {self.number}.", (call,), finish="tool_calls", model="golden"), Usage(100, 10))
        self.say(ToolStarted(call.id, "bash", "execute"), ToolResult(call.id, "bash", text, status))

    def fold(self, cause: str) -> None:
        """Folds, with the model's notes where it gives some."""
        outcome = asyncio.run(self.engine.compact(self.model, cause=cause))
        assert outcome.checkpoint is not None, outcome.reason
        self.ask()


def odd_things(make: Maker) -> None:
    """What models, people, crashes and repairs leave behind."""
    make.say(User("", images=(make.picture(b"\x89PNG one"),)), User("half \ud83e and \u2028 and 🏷", "steered"))
    make.ask()
    wire = {"wire": {"reasoning_content": "It says café."}}
    make.say(
        Assistant("I look.", (ToolCall("x", "read", '{"path": "a.py"}'),), "It says café.", "tool_calls", extra=wire)
    )
    make.say(ToolResult("x", "read", "", images=(make.picture(b"\x89PNG two"),)), TurnEnd("done"))
    make.say(Assistant("", (ToolCall("x", "no such/tool", "{}"), ToolCall("y", "read", "{}")), finish="tool_calls"))
    make.say(ToolResult("x", "no such/tool", "There is no such tool.", "error"))
    make.say(User("go on without the other"), Assistant("Half of an answ", finish="interrupted"))
    make.say(Assistant("", finish="cut"), Assistant("Two in a row."), User("once more"))
    make.ask()
    make.say(User("$ make\nok", "shell"), User("[a hook says: main]", "hook"), Assistant(""), User("And now?"))
    make.ask()
    make.engine.drop_images()
    make.ask()
    make.engine.plain_down()
    make.ask()


def make(path: Path) -> None:
    """Writes the log and its blobs."""
    maker = Maker(path, Scripted([], head={"notes": NOTES}))
    maker.say(User("Mend the cart. Never touch pay.py. The port is 8443."))
    for size in (2, 200, 3, 40, 900, 5, 60, 7):
        maker.step(size)
    content = json.dumps({"path": "cart.py", "content": "total = total + tax\n" * 300})
    maker.say(
        Assistant("", (ToolCall("w", "write", content),), finish="tool_calls"), ToolResult("w", "write", "written")
    )
    maker.say(Assistant("The first part is done."), User("Go on with tax.py, café."))
    maker.fold("threshold")
    for size in (30, 2, 60, 4, 80):
        maker.step(size, "error" if size == 2 else "ok")
    maker.engine.pin(maker.engine.history.last("user"))
    maker.fold("asked")
    maker.engine.undo_fold()
    maker.ask()
    maker.say(Assistant("Done."), User("Forget that."), Rewind(maker.engine.history.last("user")))
    maker.say(User("Look at this instead."))
    maker.ask()
    odd_things(maker)
    for size in (10, 300, 5, 60):
        maker.step(size)
    maker.say(Note("window_cap", 5_000), Assistant("Nearly."), User("Finish it."))
    maker.fold("prompt_too_long")
    maker.say(Assistant("Finished."), TurnEnd("done", steps=20))
    maker.log.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
