"""The parts of one line, with quick answers to how they belong together.

A line may have thousands of parts, and each of them asks what feeds it. So every answer comes from an index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agent.permissions.shell.model import Part


@dataclass(frozen=True)
class Line:
    """Every simple command of a line, also those that other programs run."""

    parts: tuple[Part, ...]

    def inside(self, part: Part) -> list[Part]:
        """What stands in the substitutions of a part."""
        return self._owned.get(part.number, [])

    def feeding(self, part: Part) -> Iterator[Part]:
        """The parts whose output goes into a part, directly or through others."""
        for stage in part.stages:
            yield from (other for index, other in self._pipes[stage.pipe] if index < stage.index)

    def fed(self, part: Part) -> Iterator[Part]:
        """The parts that the output of a part goes into."""
        for stage in part.stages:
            yield from (other for index, other in self._pipes[stage.pipe] if index > stage.index)

    def before(self, part: Part) -> list[tuple[int, Part]]:
        """The parts before a part in its innermost pipeline, each with its place there, in order."""
        if not part.stages:
            return []
        last = part.stages[-1]
        return sorted(
            ((i, o) for i, o in self._pipes[last.pipe] if i < last.index), key=lambda found: (found[0], found[1].number)
        )

    def index(self, key: str, names: Callable[[Part], Iterable[str]]) -> dict[str, Part]:
        """The first part, by its number, that has each of the names a function gives; made once for each key."""
        if key not in self._indexes:
            made: dict[str, Part] = {}
            for part in sorted(self.parts, key=lambda p: p.number, reverse=True):
                made.update(dict.fromkeys(names(part), part))
            self._indexes[key] = made
        return self._indexes[key]

    @cached_property
    def _owned(self) -> dict[int, list[Part]]:
        found: defaultdict[int, list[Part]] = defaultdict(list)
        for part in self.parts:
            found[part.owner].append(part)
        return dict(found)

    @cached_property
    def _pipes(self) -> defaultdict[int, list[tuple[int, Part]]]:
        found: defaultdict[int, list[tuple[int, Part]]] = defaultdict(list)
        for part in self.parts:
            for stage in part.stages:
                found[stage.pipe].append((stage.index, part))
        return found

    @cached_property
    def _indexes(self) -> dict[str, dict[str, Part]]:
        return {}
