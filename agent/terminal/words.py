"""What events are called in words: the same for the chat, for plain terminals and for screen readers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.clean import one_line, plain
from agent.terminal.numbers import seconds
from runtime.events import Retrying, TurnEnded
from transcripts.records import ToolCall, ToolResult

STATUS = {
    "ok": "", "error": "failed", "denied": "denied", "interrupted": "stopped", "not_run": "not run",
    "unknown": "unknown whether it ran",
}  # fmt: skip

_EXIT = re.compile(r"\[exit codes? (in the pipe: )?-?\d+[^\]]*\]")


def lines_of(result: ToolResult) -> list[str]:
    """The output as harmless lines, without empty ones at both ends and without the exit code, which the title has."""
    lines = plain(result.text).expandtabs(4).strip("\n").split("\n") if result.text.strip() else []
    while lines and _EXIT.fullmatch(lines[-1]):
        lines.pop()
    return lines


def facts(result: ToolResult) -> str:
    """What became of a call, in one phrase: "exit 1, 3.2 s", "120 lines", "denied"."""
    meta: Mapping[str, Any] = result.meta
    parts = [STATUS.get(result.status, result.status)]
    code = meta.get("exit_code")
    if code is not None and (code or result.name == "bash") and result.status != "interrupted":
        parts[0] = parts[0] if result.status not in ("ok", "error") else ""
        parts.append(f"exit {' | '.join(map(str, meta['pipe']))}" if meta.get("pipe") else f"exit {code}")
    if isinstance(meta.get("seconds"), (int, float)) and meta["seconds"] >= 0.1:
        parts.append(seconds(meta["seconds"]))
    if meta.get("task"):
        n = meta.get("steps", 0)
        parts.append(f"{n} request{'s' if n != 1 else ''}, {meta.get('tokens', 0):,} tokens")
    elif result.status == "ok" and code is None and not meta.get("diff"):
        n = len(lines_of(result))
        parts.append(f"{n} line{'s' if n != 1 else ''}" if n else "nothing")
    return ", ".join(p for p in parts if p)


def retry_line(event: Retrying) -> str:
    return f"{one_line(event.reason, 200)}; trying again in {seconds(event.wait)} ({event.attempt} of {event.attempts})"


def end_line(event: TurnEnded) -> tuple[str, str]:
    """(role, words) for the end of a turn; no words where all went well."""
    message = plain(event.message).strip()
    if event.reason == "done":
        return "dim", ""
    if event.reason == "interrupted":
        return "warn", "Stopped. Everything so far is kept; type to go on."
    if event.reason == "error":
        if event.kind in ("log", "config") and message:  # no fault of the model's
            return "error", f"Nothing was done: {message}" if event.kind == "log" else message
        return "error", f"The model failed: {message}" if message else "The model failed."
    if event.reason == "limit":
        return "warn", f"Stopped at a limit: {message}" if message else "Stopped at a limit."
    if event.reason == "stuck" and message:
        return "warn", f"Stopped, it goes in circles: {message}. Tell it what to do differently."
    return "warn", message or f"Ended: {event.reason}."


def call_title(call: ToolCall) -> str:
    """A heading for a call nobody gave a title: its name and its first argument."""
    try:
        first = next((str(v) for v in call.args.values() if isinstance(v, (str, int))), "")
    except ValueError:
        first = ""
    return one_line(f"{call.name} {first}", 100)
