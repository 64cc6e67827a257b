"""A real session in a process that is made to be killed: it streams, runs commands, writes files, folds and goes on.

    python killed.py FOLDER TURNS

Goes on with the newest session of FOLDER/work, or begins one, and plays turns until there are TURNS of them. Each event
is told on standard output as one line of JSON, after it happened; each command appends its number to FOLDER/ledger.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent.models.scripted import Scripted
from agent.session import Session
from runtime.model import ModelView
from tests.support.lived import call, settings
from transcripts.catalog import list_sessions

WINDOW = 9_000
NOTES = {"text": "It was found that all is well so far, and the next step is the next one. " * 3, "delay": 0.05}


class Player:
    """Answers by what the log holds already, so that the same answer is never given twice for two different numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session: Session | None = None

    def answer(self, view: ModelView) -> dict[str, Any]:
        """The next answer: every fourth time words alone, else calls."""
        assert self.session is not None
        n = 1 + sum(e.kind == "assistant" for e in self.session.log.entries)
        if n % 4 == 0:
            return {"text": f"Answer {n}, and that is it. " + "Words come one by one. " * 8, "stream_delay": 0.003}
        command = f"echo b{n} >> {self.folder}/ledger; for i in $(seq 90); do echo line $i of {n}; done; sleep 0.02"
        content = f"{n}\n" * 40
        calls = [call("bash", command=command), call("write", path=f"w{n % 3}.txt", content=content)]
        calls += [call("read", path=f"w{n % 3}.txt"), call("grep", pattern=str(n))] if n % 2 else []
        return {"text": f"Answer {n}.", "calls": calls, "stream_delay": 0.004}


async def play(folder: Path, turns: int) -> None:
    """Plays turns until the session has that many."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True, exist_ok=True)
    player = Player(folder)
    model = Scripted([player.answer] * 100_000, window=WINDOW, head={"notes": NOTES})
    resume = "latest" if list_sessions(home, work) else ""
    with Session.start(settings(home), cwd=work, model=model, resume=resume) as session:
        player.session = session
        tell({"event": "Open", "path": str(session.path)})
        while (n := sum(e.kind == "user" for e in session.log.entries)) < turns:
            async for event in session.send(f"Turn {n + 1}: go on, and never touch keep.txt."):
                tell({"event": type(event).__name__, "seq": getattr(event, "seq", 0)})
    tell({"event": "End"})


def tell(data: dict[str, Any]) -> None:
    """One line, at once: a pipe keeps what was written into it when the writer is killed."""
    os.write(1, json.dumps(data).encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), int(sys.argv[2])))
