"""Letters as people count them: a flag or a family is one, though it is several code points."""

from __future__ import annotations

from collections.abc import Iterator

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.utils import (
    _CHAR_SIZES_CACHE as _WIDTHS,  # pyright: ignore[reportPrivateUsage]  # the toolkit sums code points otherwise
)
from wcwidth import iter_graphemes, wcswidth


class Cluster(str):
    """A grapheme of several code points that the toolkit draws as one cell."""

    def __iter__(self) -> Iterator[str]:
        yield self


def graphemes(text: str) -> list[str]:
    """The text in letters as people count them."""
    return list(text) if text.isascii() else list(iter_graphemes(text))


def left_of(text: str, position: int) -> int:
    """How many code points the grapheme that ends at `position` has; 0 at the start."""
    line = text.rfind("\n", 0, position) + 1
    if line == position:
        return min(1, position)
    return len(graphemes(text[line:position])[-1])


def right_of(text: str, position: int) -> int:
    """How many code points the grapheme that starts at `position` has; 0 at the end."""
    line = text.find("\n", position)
    rest = text[position : line if line >= 0 else len(text)]
    return len(graphemes(rest)[0]) if rest else min(1, len(text) - position)


class ClusterCells(Processor):
    """Draws each grapheme as one cell of its true width."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if all(f[1].isascii() for f in fragments):
            return Transformation(fragments)
        out: StyleAndTextTuples = []
        starts: list[int] = []
        position = 0
        for style, text, *_ in fragments:
            for letter in graphemes(text):
                out.append((style, _cell(letter)))
                starts.append(position)
                position += len(letter)
        shown = {start: n for n, start in enumerate(starts)}
        end = position

        def to_display(source: int) -> int:
            while source > 0 and source not in shown and source < end:
                source -= 1
            return shown.get(source, len(starts) + max(0, source - end))

        def to_source(display: int) -> int:
            return starts[display] if display < len(starts) else end + display - len(starts)

        return Transformation(out, source_to_display=to_display, display_to_source=to_source)


def _cell(letter: str) -> str:
    if len(letter) == 1:
        return letter
    if letter not in _WIDTHS:
        _WIDTHS[letter] = max(1, wcswidth(letter))
    return Cluster(letter)
