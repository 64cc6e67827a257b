"""Paths that look alike: models write a plain space for a no-break one, and composed letters for decomposed ones."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path


def real(path: str | Path) -> str:
    """The path with every symlink resolved, also where its end does not exist. One that is put in the place of a folder
    or taken away at this moment is looked at again. Raises OSError where that never ends."""
    for _ in range(100):
        try:
            return os.path.realpath(path)
        except OSError:
            continue
    return os.path.realpath(path)


def existing_twin(path: Path) -> Path | None:
    """The only existing path that looks the same as this absolute one, part by part; None where there is none."""
    here = Path(path.anchor)
    for part in path.parts[1:]:
        if os.path.lexists(here / part):
            here = here / part
            continue
        try:
            same = [name for name in os.listdir(here) if spelling(name) == spelling(part)]
        except OSError:
            return None
        if len(same) != 1:
            return None
        here = here / same[0]
    return here


def spelling(name: str) -> str:
    """What two names that look the same have in common: composition, kinds of blanks and of apostrophes left out."""
    text = re.sub("[\u2018\u2019\u02bc]", "'", unicodedata.normalize("NFC", name))
    return re.sub(r"\s+", " ", text)
