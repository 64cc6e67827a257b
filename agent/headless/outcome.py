"""What became of a one-shot run: an exit code, a sentence, and the facts for the JSON result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent.exits import Exit
from runtime.events import TurnEnded
from runtime.model import RETRYABLE, ModelErrorKind


@dataclass(frozen=True)
class Outcome:
    """`why` is one sentence for a person; `cause` the same as one word for a program; `help` what can be done."""

    code: Exit
    cause: str = "done"
    why: str = ""
    text: str = ""
    structured: Any = None
    stop_reason: str = ""
    help: str = ""


def of_turn(ended: TurnEnded, denied: list[str]) -> Outcome:
    """The outcome of a turn that nothing of ours stopped. `denied`: each refused call, and what would allow it."""
    if ended.reason == "error":
        code, cause = of_error(ended.kind)
        return Outcome(code, cause, error_words(ended.kind, ended.message), ended.text)
    if denied or ended.denials or ended.reason == "denied":
        why = "; ".join(dict.fromkeys(denied)) or "; ".join(ended.denials) or ended.message
        return Outcome(Exit.DENIED, "permission_denied", f"a permission was needed and not given: {why}", ended.text)
    if ended.reason == "limit":
        return Outcome(Exit.LIMIT, "max_turns", ended.message or "the limit of requests was reached", ended.text)
    if ended.reason == "interrupted":
        return Outcome(Exit.INTERRUPTED, "interrupted", ended.message or "interrupted", ended.text)
    if ended.reason != "done":
        return Outcome(Exit.FAILED, ended.reason, ended.message or "the agent gave up", ended.text)
    return Outcome(Exit.OK, text=ended.text)


def error_words(kind: str, message: str) -> str:
    """What a model's error was, and what was said about it, in one line."""
    said = " ".join(message.split()) or "the model failed"
    return f"{kind.replace('_', ' ')}: {said}" if kind not in ("", "unknown", "config", "auth") else said


def of_error(kind: str) -> tuple[Exit, str]:
    """Exit code and cause of a model's error."""
    if kind in (ModelErrorKind.AUTH,):
        return Exit.NO_MODEL, "auth"
    if kind == ModelErrorKind.CONFIG:
        return Exit.CONFIG, "config"
    if kind in {str(k) for k in RETRYABLE}:
        return Exit.RETRYABLE, kind
    return Exit.FAILED, kind or "error"
