"""Large bodies beside the log, named by their content, so that one is stored once however often it is said."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


class Blobs:
    """A folder of bodies. An id is the first 32 hex digits of the body's SHA-256."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._memory: dict[str, bytes] = {}

    def put(self, body: bytes) -> str:
        """Stores a body durably (fsync before it gets its name) and returns its id. Raises OSError."""
        name = hashlib.sha256(body).hexdigest()[:32]
        if self.folder is None:
            self._memory[name] = body
            return name
        path = self.folder / name
        if path.exists():
            return name
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{name}.{os.getpid()}.part")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return name

    def get(self, name: str) -> bytes:
        """The body with this id. Raises KeyError where it is not there or no longer what its name says."""
        if self.folder is None:
            return self._memory[name]
        try:
            body = (self.folder / Path(name).name).read_bytes()
        except OSError as error:
            raise KeyError(name) from error
        if hashlib.sha256(body).hexdigest()[:32] != name:
            raise KeyError(name)
        return body
