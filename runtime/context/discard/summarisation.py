"""Last: the model's own words for what left the view. A refinement, never the rescue: without it the fold stands."""

from __future__ import annotations

from runtime.context.draft import Draft, SummaryFailed


class Summarisation:
    """Has the model write notes about the steps that the cheaper strategies left out.

    Once there are notes, losing more of what they cover costs less: then all of the agent's steps older than the last
    `min_retain_rounds` rounds and the newest `keep_turns` steps leave too.
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
        newest = draft.left_out_upto
        try:
            draft.notes = await draft.summarise(instruction(draft, newest))
        except SummaryFailed as error:
            draft.notes_status = f"no notes: {error}"
            return
        draft.notes_upto, draft.notes_status = newest, "ok"
        _let_go(draft, newest)


def instruction(draft: Draft, newest: int) -> str:
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


def _let_go(draft: Draft, newest: int) -> None:
    """What the notes cover now and lies far back may leave."""
    rounds = draft.rounds()
    recent = rounds[-draft.settings.min_retain_rounds :] if draft.settings.min_retain_rounds > 0 else rounds[-1:]
    border = recent[0].first if recent else 0
    own = [s for s in draft.visible() if not s.is_person]
    for step in own[: max(0, len(own) - max(1, draft.settings.keep_turns))]:
        if step.last <= newest and step.first < border and not draft.is_pinned(step):
            draft.hide(step, Summarisation.name)


STRATEGY = Summarisation()
