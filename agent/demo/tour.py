"""The recorded tour: a model's answers from a file, everything else real. A bug is repaired in a sample project, the
window is so small that the conversation is folded, and the process is killed with -9 in the middle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.demo.show import Show
from agent.settings import CHECKOUT
from transcripts.log import TranscriptLog

DATA = Path(__file__).parents[1] / "data" / "tour"
WINDOW = 6_000
"""Tokens; so small that three files fill it."""
TASK = "A test fails. Find the cause and repair it; keep to the rules in NOTES.md."
RECALLED = "belongs to the lighter band"
"""Words of NOTES.md, read at the beginning, that the model needs again after they were folded away."""
TEST = [sys.executable, "-m", "unittest"]


@dataclass
class Seen:
    """What the tour saw happen; at its end all of it has to be there."""

    folds: list[str] = field(default_factory=list)
    recalled: int = 0
    killed: int = 0
    finished: bool = False
    log: Path | None = None
    denied: list[str] = field(default_factory=list)


def lay_project(folder: Path) -> None:
    """Copies the sample project."""
    folder.mkdir(parents=True)
    for source in sorted(DATA.glob("*.txt")):
        shutil.copy(source, folder / source.name.removesuffix(".txt"))


def tests(folder: Path) -> tuple[bool, str]:
    """(whether the project's tests pass, the last line of what they print)."""
    done = subprocess.run(TEST, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode == 0, (done.stdout + done.stderr).strip().rpartition("\n")[2]


def tour(scratch: Path, show: Show) -> bool:
    """Runs it in `scratch`; True where everything that it is to show was seen."""
    started = time.monotonic()
    project = scratch / "postage"
    lay_project(project)
    show.heading("A tour with a recorded model: its answers come from a file; loop, tools, folding and log are real")
    show.fact("sample project", str(project))
    show.fact("window", f"{WINDOW:,} tokens, made small so that you see folding")
    before = tests(project)
    show.fact("its tests before", _verdict(before))
    show.line(f"you: {TASK}")
    seen = Seen()
    for event in _child(scratch, project, [TASK], seen, kill=True):
        show.event(event)
    kept = _records(seen.log)
    show.heading(f"kill -9 {seen.killed}: the process is gone in the middle of a command. {kept} records are on disk.")
    show.line("$ refold --continue -p 'Go on.'")
    for event in _child(scratch, project, ["--continue", "Go on."], seen, kill=False):
        show.event(event)
    after = tests(project)
    show.heading("What was seen")
    show.fact("tests before", _verdict(before))
    show.fact("tests after", _verdict(after))
    for line in seen.folds:
        show.fact("folded", line)
    show.fact("recalled", f"{seen.recalled} time{'' if seen.recalled == 1 else 's'}, from what had left the view")
    show.fact("resumed", f"with {kept} records kept, {_records(seen.log)} at the end; no command ran twice by itself")
    show.fact("transcript", str(seen.log))
    show.fact("took", f"{time.monotonic() - started:.1f} s")
    return not before[0] and after[0] and bool(seen.folds and seen.recalled and seen.killed and seen.finished)


def _verdict(result: tuple[bool, str]) -> str:
    return f"{'pass' if result[0] else 'FAIL'}: {result[1]}"


def _records(log: Path | None) -> int:
    if log is None:
        return 0
    opened = TranscriptLog.open(log, readonly=True)
    try:
        return len(opened.entries)
    finally:
        opened.close()


def _child(scratch: Path, project: Path, words: list[str], seen: Seen, kill: bool) -> Iterator[dict[str, Any]]:
    """The lines of one run of the real command; with `kill` it dies by -9 in the middle of the command that sleeps."""
    options = {"context_window": WINDOW, "summarise": "false", "output_reserve": 1000, "keep_last": 1}
    argv = [sys.executable, str(CHECKOUT / "main.py"), "-p", "--yolo", "-o", "stream-json", "--quiet"]
    argv += ["--model", f"scripted:{DATA / 'answers.jsonl'}", *(f"--set={k}={v}" for k, v in options.items()), *words]
    env = {**os.environ, "REFOLD_HOME": str(scratch / "home"), "REFOLD_ENV_FILE": ""}
    process = subprocess.Popen(argv, cwd=project, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    for text in process.stdout:
        event = json.loads(text)
        _note(event, seen)
        yield event
        if kill and any(c["input"].get("command", "").startswith("sleep") for c in calls(event)):
            time.sleep(0.7)
            process.kill()
            seen.killed = process.pid
    process.stdout.close()
    process.wait(timeout=30)


def _note(event: dict[str, Any], seen: Seen) -> None:
    match event:
        case {"type": "system", "subtype": "init"}:
            seen.log = Path(event["meta"]["log"])
        case {"subtype": "compact_boundary"}:
            seen.folds.append(event["meta"]["line"])
        case {"type": "user", "meta": {"tool": "recall"}, "message": {"content": [{"content": text}]}}:
            seen.recalled += RECALLED in text
        case {"type": "result"}:
            seen.finished = not event["is_error"]


def calls(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of an assistant line."""
    if event["type"] != "assistant":
        return []
    return [block for block in event["message"]["content"] if block["type"] == "tool_use"]
