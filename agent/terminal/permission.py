"""The permission question: what would happen, why it is asked, and for how long an answer holds."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group
from rich.text import Text

from agent.clean import one_line, plain
from agent.permissions import Approval, Verdict
from agent.terminal import diff
from agent.terminal.dialogs import Option, Picker
from agent.terminal.fragments import Fragments
from agent.terminal.markdown import code
from agent.terminal.paper import Paper
from agent.terminal.theme import Theme

YES = Verdict(True)
NO = Verdict(False)
WORD = "word"
REVIEW = "review"


def question(approval: Approval, paper: Callable[[], Paper], full: Callable[[], None]) -> Picker:
    """The picker whose answer is a Verdict, REVIEW, WORD (deny, with a word to the model) or None (Esc)."""
    options = [Option(YES, "Yes, this once", "y")]
    if approval.contents:
        options.append(Option(REVIEW, "Look at it hunk by hunk", "h"))
    if approval.judgement.rule:
        options += [
            Option(Verdict(True, "session"), "Yes, by this rule, in this session", "s", also="a"),
            Option(Verdict(True, "project"), "Yes, by this rule, in this project", "p", "Enter takes it", careful=True),
            Option(Verdict(True, "user"), "Yes, by this rule, everywhere", "u", "Enter takes it", careful=True),
        ]
    options += [Option(NO, "No", "n"), Option(WORD, "No, and tell it why", "d")]

    def head(width: int, height: int) -> Fragments:
        return head_rows(approval, paper(), width, height)

    return Picker(title(approval), options, head=head, full=full, escape="no, and stop")


def title(approval: Approval) -> str:
    """The question in one line."""
    if approval.effect == "execute" and approval.preview and not approval.call.name.startswith("mcp__"):
        return f"Run this command?  {one_line(approval.by, 120)}".rstrip()
    verb = "Make this change?" if approval.effect == "write" else "Allow this?"
    by = f"{approval.by}: " if approval.by else ""
    return f"{verb}  {one_line(by + approval.title, 120)}"


def head_rows(approval: Approval, paper: Paper, width: int, height: int) -> Fragments:
    """The preview, the reason and the rule, in at most `height` rows; what does not fit is said to be more."""
    about = [line for text in _about(approval) for line in paper.lines(text, width)]
    room = max(1, height - len(about))
    lines = paper.lines(_preview(approval, paper.theme), width)
    if len(lines) > room:
        more = Text(f"… {len(lines) - room + 1} more lines (Ctrl-E shows all)", style="aside")
        lines = [*lines[: room - 1], *paper.lines(more, width)]
    both = [*lines, *about][: max(1, height)]
    return [*paper.fragments(both), ("", "\n")]


def _about(approval: Approval) -> list[Text]:
    """What cannot be taken back, why it is asked, and the rule that would be kept."""
    judgement = approval.judgement
    rules = ", ".join(plain(rule) for rule in judgement.rule.splitlines())
    texts = [Text(f"! {plain(judgement.danger)}", style="error")] if judgement.danger else []
    if judgement.reason and judgement.reason != judgement.danger:
        texts.append(Text(plain(judgement.reason), style="dim"))
    return [*texts, *([Text.assemble(("rule: ", "dim"), rules)] if rules else [])]


def _preview(approval: Approval, theme: Theme) -> Group | Text:
    words = approval.preview or approval.title
    if approval.effect == "write" or words.startswith(("--- ", "@@ ")):
        rows = diff.render(words)
        return Group(*rows) if rows else Text(plain(words))
    return Group(code(plain(words), "bash", theme.syntax))
