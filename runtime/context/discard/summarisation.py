"""Last: the model's own words for what left the view. A refinement, never the rescue: without it the fold stands."""

from __future__ import annotations

from runtime.context.draft import Draft, SummaryFailed
from runtime.context.rounds import Step


class Summarisation:
    """Has the model write notes about the steps that the cheaper strategies left out.

    Where there are notes, losing more costs less: then the agent's steps older than the last `min_retain_rounds` rounds
    and the newest `keep_turns` steps leave too. The model has them before it when it writes.
    """

    name = "summarisation"
    loss = 40

    def wanted(self, draft: Draft) -> bool:
        """Whether whole steps left the view that no notes cover yet."""
        return draft.settings.summarise and draft.left_out_upto > draft.notes_upto

    async def discard(self, draft: Draft) -> None:
        """Asks for notes; where none can be had, only `notes_status` says so."""
        if draft.summarise is None:
            draft.notes_status = "no notes: no model at hand"
            return
        covered = _replaceable(draft)
        try:
            draft.notes = await draft.summarise(instruction(draft))
        except SummaryFailed as error:
            draft.notes_status = f"no notes: {error}"
            return
        for step in covered:
            draft.hide(step, self.name)
        draft.notes_upto, draft.notes_status = draft.left_out_upto, "ok"


def instruction(draft: Draft) -> str:
    """What the model is asked, appended to the very request it has just seen."""
    focus = f" Give most room to: {draft.focus}." if draft.focus else ""
    update = " Take over what still holds from the <notes> above and correct what changed." if draft.notes else ""
    words = max(120, draft.policy.window // 40)
    return (
        "[refold: part of this conversation is about to leave your view. Do not go on with the task and call no tool. "
        "Write notes to yourself, in plain text, at most "
        f"{words} words: what was found out, decided and why, what was tried and failed, what is unfinished and the "
        "exact next step; names, paths, numbers and error messages exactly as they were. Facts only, no praise, no "
        f"plan that was not agreed. Do not speak in the person's name.{update}{focus}]"
    )


def _replaceable(draft: Draft) -> list[Step]:
    """The agent's steps of rounds that lie so far back that notes may stand for them."""
    recent = draft.rounds()[-max(1, draft.settings.min_retain_rounds) :]
    border = recent[0].first if recent else 0
    own = [s for s in draft.visible() if not s.is_person]
    old = own[: max(0, len(own) - max(1, draft.settings.keep_turns))]
    return [s for s in old if s.first < border and not draft.is_pinned(s) and not draft.is_open(s)]


STRATEGY = Summarisation()
