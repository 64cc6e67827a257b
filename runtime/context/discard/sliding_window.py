"""Second: the agent's own old steps, whole steps only. The person's words stay."""

from __future__ import annotations

from runtime.context.draft import Draft


class SlidingWindow:
    """Leaves out the agent's oldest steps until the goal is reached; the newest `keep_turns` steps stay, and so do
    pinned ones and everything the person said. An answer leaves with all its results or not at all."""

    name = "sliding_window"
    loss = 20

    def wanted(self, draft: Draft) -> bool:
        """Whether the goal is not reached yet."""
        return not draft.fits

    async def discard(self, draft: Draft) -> None:
        """Hides steps, oldest first."""
        own = [s for s in draft.visible() if not s.is_person]
        for step in own[: max(0, len(own) - max(1, draft.settings.keep_turns))]:
            if draft.fits:
                return
            if not draft.is_pinned(step) and not draft.is_open(step):
                draft.hide(step, self.name)


STRATEGY = SlidingWindow()
