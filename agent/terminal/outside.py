"""The world outside the terminal: the person's editor, the clipboard, pictures in files."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from transcripts.blobs import Blobs, LogWriteError
from transcripts.records import Image

LARGEST_PICTURE = 20_000_000
"""Bytes; no provider takes more."""

_KINDS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}

_READ_PICTURE = (
    ("wl-paste", ["wl-paste", "--type", "image/png"]),
    ("xclip", ["xclip", "-selection", "clipboard", "-t", "image/png", "-o"]),
    ("pngpaste", ["pngpaste", "-"]),
)
_WRITE_TEXT = (
    ("pbcopy", ["pbcopy"]), ("wl-copy", ["wl-copy"]), ("xclip", ["xclip", "-selection", "clipboard"]),
    ("clip.exe", ["clip.exe"]),
)  # fmt: skip


def edit(text: str, env: Mapping[str, str]) -> str:
    """The text as the person's editor ($VISUAL, $EDITOR, else vi) left it. Raises OSError where there is none."""
    named = env.get("VISUAL") or env.get("EDITOR") or "vi"
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise OSError(f"{named}: {error}") from None
    handle, name = tempfile.mkstemp(suffix=".md", prefix="refold-")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if subprocess.call([*command, name]) != 0:
            return text
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    finally:
        path.unlink(missing_ok=True)


def clipboard_picture(folder: Path) -> Path | None:
    """The picture on the clipboard as a file in `folder`; None where there is none, or no way to ask."""
    for program, command in _READ_PICTURE:
        if shutil.which(program):
            ran = subprocess.run(command, capture_output=True, timeout=5)
            if ran.returncode == 0 and media_type(ran.stdout):
                folder.mkdir(parents=True, exist_ok=True)
                handle, name = tempfile.mkstemp(suffix=".png", prefix="pasted-", dir=folder)
                with os.fdopen(handle, "wb") as file:
                    file.write(ran.stdout)
                return Path(name)
    return None


def copy(text: str, env: Mapping[str, str]) -> bool:
    """Puts a text on the clipboard: by a program, or over ssh by the terminal itself (OSC 52). False: no way."""
    for program, command in _WRITE_TEXT:
        if shutil.which(program) and (
            program in ("pbcopy", "clip.exe") or env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")
        ):
            return subprocess.run(command, input=text.encode(), timeout=5).returncode == 0
    if not sys.stdout.isatty() or env.get("TERM", "dumb") in ("dumb", "linux"):
        return False
    sys.stdout.write(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")
    sys.stdout.flush()
    return True


def media_type(start: bytes) -> str:
    """The kind of picture, by its first bytes; "" where it is none."""
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), "")


def read_pictures(blobs: Blobs, paths: Sequence[Path]) -> tuple[list[Image], list[str]]:
    """(pictures, what could not be read) of files; the bytes are kept beside the log."""
    found: list[Image] = []
    problems: list[str] = []
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            problems.append(f"{path.name} cannot be read: {error.strerror}")
            continue
        kind = media_type(data)
        if not kind or len(data) > LARGEST_PICTURE:
            problems.append(f"{path.name} is {'too large' if kind else 'no picture'} and was left out")
            continue
        try:
            found.append(Image(blobs.put(data), kind, path.name))
        except LogWriteError as error:
            problems.append(f"{path.name} cannot be kept: {error}")
    return found, problems
