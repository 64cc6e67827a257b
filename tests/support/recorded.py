"""Plays a workload through the real loop, with real tools, and keeps what the person would have seen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.models.scripted import Scripted
from agent.session import Session
from agent.settings import Settings
from runtime.context.facts import told_paths
from runtime.context.retention import text_of
from runtime.events import AnswerRecorded, Compacted, CompactFailed, TurnEnded
from tests.support.workload import Fact, Workload


@dataclass
class Played:
    """A session that is over (and still open), its folds, and how its turns ended."""

    session: Session
    work: Path
    model: Scripted
    answers: int = 0
    folds: list[Compacted] = field(default_factory=list)
    futile: list[CompactFailed] = field(default_factory=list)
    ends: list[TurnEnded] = field(default_factory=list)

    def shown(self) -> list[str]:
        """The lines of the view as it stands."""
        return shown_lines(self.session, self.work)


def play(
    workload: Workload,
    folder: Path,
    *,
    window: int,
    notes: Any = "",
    at_fold: Callable[[Played], None] = lambda played: None,
    **settings: Any,
) -> Played:
    """Runs the whole workload in `folder`. `notes`: what the model answers when it is asked for notes. `at_fold` is
    called after each fold."""
    work = folder / "work"
    workload.lay_out(work)
    flags = {"model": "scripted:workload", "permission_mode": "yolo", "context_window": window, **settings}
    loaded = Settings.load(flags, {"REFOLD_HOME": str(folder / "home")}, folder)
    model = Scripted(workload.answers(), window=window, head={"notes": notes})
    played = Played(Session.start(loaded, cwd=work, model=model), work.resolve(), model)

    async def turns() -> None:
        for round_ in workload.rounds:
            async for event in played.session.send(round_.words):
                _note(played, event, at_fold)

    asyncio.run(turns())
    return played


def _note(played: Played, event: object, at_fold: Callable[[Played], None]) -> None:
    match event:
        case AnswerRecorded():
            played.answers += 1
        case Compacted():
            played.folds.append(event)
            at_fold(played)
        case CompactFailed():
            played.futile.append(event)
        case TurnEnded():
            played.ends.append(event)


def shown_lines(session: Session, work: Path) -> list[str]:
    """The lines of the view as it stands; what it tells in two places or together with others also on a line of its
    own: paths of the state, commands with their exit codes."""
    active = session.engine.store.active_checkpoint
    paths = (Path(p) for p in (told_paths(active.state) if active else ()))
    named = [str(path.relative_to(work)) for path in paths if path.is_relative_to(work)]
    messages = session.engine.build_model_view().messages
    return [*text_of(messages).splitlines(), *named, *runs(messages)]


def runs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each command of a view with the exit code that its result shows, as one line."""
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    for call in (c for m in messages for c in m.get("tool_calls") or ()):
        command = json.loads(call["function"]["arguments"]).get("command")
        if command:
            code = re.search(r"exit (?:code )?(-?\d+)", results.get(call["id"], ""))
            yield f"{command} exit {code[1] if code else 0}"


def in_view(fact: Fact, lines: list[str]) -> bool:
    """Whether one line tells the fact."""
    return any(all(word in line for word in fact.words) for line in lines)


def by_recall(fact: Fact, session: Session) -> bool:
    """Whether the model gets the fact back with the tool, asking for its words."""
    found = session.engine.recall(query=" ".join(fact.words))
    ids = [line.split()[0] for line in found.splitlines()[1:] if line.startswith("#")]
    whole = [f"{line}\n{session.engine.recall(id=i)}" for i, line in zip(ids, found.splitlines()[1:], strict=False)]
    return any(all(word in text for word in fact.words) for text in whole)
