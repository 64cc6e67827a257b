"""The strategies, one file each, in order of what a loss costs. A new one is one new file with a `STRATEGY`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from runtime.context.draft import Draft


class Discard(Protocol):
    """A way to make a draft smaller. `loss` is its place in the order: what costs least to lose goes first.

    `wanted` says whether it has anything to do; `discard` changes the draft and stays within its own bounds.
    """

    name: str
    loss: int

    def wanted(self, draft: Draft) -> bool: ...

    async def discard(self, draft: Draft) -> None: ...


def all_strategies() -> list[Discard]:
    """Every strategy of this package, by rising loss."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return sorted((m.STRATEGY for m in modules if hasattr(m, "STRATEGY")), key=lambda s: s.loss)
