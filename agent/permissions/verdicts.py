"""What a permission question is made of: the judgement, the question put to the person, and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.review import Contents, Review
from tools.base import ToolContext
from transcripts.records import ToolCall

Decision = Literal["allow", "ask", "deny"]
Scope = Literal["once", "session", "project", "user"]
Mode = Literal["plan", "ask", "edits", "auto", "yolo"]
Confinement = Literal["", "read-only", "workspace", "network", "off"]

MODES: tuple[Mode, ...] = ("plan", "ask", "edits", "auto", "yolo")
"""In the order in which Shift+Tab walks through them; each allows more than the one before."""


@dataclass(frozen=True)
class Judgement:
    """What may happen to one call.

    `reason` is one sentence for the person. `rule` is the rule that decided or, where the decision is "ask", the rules
    that would allow it from now on, one a line ("" where no rule can). `missing` is the part of the call that nobody
    has allowed yet. `danger` names what could not be taken back, and why it is named. `sandbox` is the confinement in
    which the call has to run: read-only, workspace (no network), network (workspace and network), off, or "" for a
    call that starts no process. `effects` False: it is known to change nothing. `mode` is the mode that would do, where
    it is only for the mode that the call is denied.
    """

    decision: Decision
    reason: str
    rule: str = ""
    missing: str = ""
    danger: str = ""
    sandbox: Confinement = ""
    effects: bool = True
    mode: Mode | Literal[""] = ""

    def why(self, chat: bool) -> str:
        """The reason, and of a call that the mode denies the way to another mode: the command of the chat, or, where
        nobody is there (`chat` False), the option of the command line."""
        if not self.mode:
            return self.reason
        if chat:
            return f"{self.reason}; /mode ask lets me ask for it"
        rule = "" if self.mode == "edits" else " with --allow RULE"
        return f"{self.reason}; --permission-mode {self.mode}{rule} would allow it"


def strictest(judgements: Sequence[Judgement]) -> Judgement:
    """The strictest of several judgements of one thing; the first of those that are equally strict."""
    return min(judgements, key=lambda judgement: ("deny", "ask", "allow").index(judgement.decision))


@dataclass(frozen=True)
class Approval:
    """The question put to the person: what will happen (`preview`: a unified diff or the whole command). `contents`:
    what each file holds before and after, for a change that can be reviewed hunk by hunk, with the `ctx` it is made in;
    empty for any other. `by`: whose call it is ("sub-agent: find the callers"); "" for the session's own."""

    call: ToolCall
    title: str
    effect: str
    preview: str
    judgement: Judgement
    contents: Contents = field(default_factory=dict)
    ctx: ToolContext | None = None
    by: str = ""


@dataclass(frozen=True)
class Verdict:
    """The person's answer. `scope` says for how long the rule of the judgement is remembered; `message` is a word to
    the model; `review` is the change as they left it, where they looked at its hunks."""

    allow: bool
    scope: Scope = "once"
    message: str = ""
    review: Review | None = None


Approver = Callable[[Approval], Awaitable[Verdict]]
"""Asks the person. Without one (no terminal) whatever has to be asked is denied."""
