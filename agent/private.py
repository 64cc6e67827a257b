"""Small files of the person's own in refold's home: read with patience, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from transcripts.files import private_folder


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} where there is none or it cannot be read."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_private(path: Path, text: str) -> None:
    """Puts a file that nobody else may read in the place of the one that was there, in one go. Raises OSError."""
    private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
