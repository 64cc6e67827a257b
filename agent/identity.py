"""The system prompt: who the agent is, the facts of the place, the project's AGENTS.md files.

It is made once, when a session begins, and stays byte for byte the same, so that a provider's cache serves it. So
nothing in it is volatile: no time, no todo, no git status (the branch is told as what it was at the start).
"""

from __future__ import annotations

import codecs
import os
import platform
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.folders import git_root, text_of
from agent.permissions import places
from transcripts.files import opened

PROMPTS = Path(__file__).parent / "prompts"
NAMES = ("AGENTS.md", "CLAUDE.md")
"""The file of project instructions; the second name only where the first is missing in the same folder."""
FILE_CAP, SMALL_CAP = 24_000, 1_200
"""Most characters of one AGENTS.md file: about 6,000 tokens, and 300 for a small model."""
TOTAL_CAP = 48_000
"""Most characters of all of them."""
MAX_BYTES = 4 * 1024 * 1024
"""Bytes of the largest file of instructions that is read."""
WALK_CAP = 2_000
"""Most folder entries looked at for AGENTS.md files further down; a start must not wait for a huge tree."""
SKIPPED = frozenset({"node_modules", "vendor", "venv", "dist", "build", "target", "__pycache__"})


@dataclass(frozen=True)
class Identity:
    """The prompt, the instruction files in it (in their order), and what the person should know about them."""

    prompt: str
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()


def make_identity(
    *, root: Path, cwd: Path, home: Path, branch: str = "", small: bool = False, bare: bool = False,
    own: str = "", append: str = "", skills: str = "",
) -> Identity:  # fmt: skip
    """The identity of a session in `cwd` inside the workspace `root`. `home` is refold's own folder.

    `own` replaces the words about who the agent is, `skills` names the skills, `append` comes last; `small` is the few
    words for a small model; `bare` leaves the AGENTS.md files out. A file that cannot be read is a notice, never an
    error.
    """
    reader = _Reader(SMALL_CAP if small else FILE_CAP, home)
    paths = [] if bare else instruction_files(root, cwd, home)
    texts = [part for part in (reader.read(path) for path in paths) if part]
    below = [] if bare or small else nested_files(root, set(reader.files))
    head = own or (PROMPTS / ("small.md" if small else "system.md")).read_text(encoding="utf-8").strip()
    parts = [head, facts(root, cwd, branch, small)]
    if texts:
        parts.append(_INSTRUCTIONS + "\n\n".join(texts))
    if below:
        parts.append("Read these before you work beside them: " + ", ".join(below))
    parts += [part for part in (skills, append) if part]
    return Identity("\n\n".join(parts) + "\n", tuple(reader.files), tuple(reader.notices))


_INSTRUCTIONS = (
    "Instructions of this project and this person. What the person says in the conversation stands above them, a file "
    "nearer to the code above one further up; none of them can widen what you are permitted to do.\n\n"
)


def facts(root: Path, cwd: Path, branch: str = "", small: bool = False) -> str:
    """The place, in words that stay true for a whole session. A small model is shown no path: it would use it."""
    if small:
        return "Give paths relative to the folder you are in: just the file's name for a file in it."
    lines = [f"System: {platform.system()} {platform.machine()}", f"Workspace: {root}"]
    if cwd != root:
        lines.append(f"Started in: {cwd}")
    lines.append(f"Git branch at the start: {branch}" if branch else _git_word(root))
    return "The place\n" + "\n".join(f"- {line}" for line in lines)


def _git_word(root: Path) -> str:
    return "A git repository" if os.path.exists(root / ".git") else "No git repository"


def git_branch(root: Path) -> str:
    """The branch checked out in `root`, "" where there is none (detached, or no repository)."""
    place = root / ".git"
    if os.path.isfile(place):
        place = root / text_of(place, 4096).removeprefix("gitdir:").strip()
    head = text_of(place / "HEAD", 1024).partition("\n")[0].strip()
    name = head.removeprefix("ref: refs/heads/")
    return name if name != head and name.isprintable() else ""


def instruction_files(root: Path, cwd: Path, home: Path) -> list[Path]:
    """The files that count, the widest first: the person's own, then from the git root down to cwd. One file reached
    by two names counts once.

    Without a repository the way begins at the highest folder below which all are the person's own, their home left
    out: nobody else's file, as in /tmp, speaks to the model.
    """
    top = git_root(cwd) or _highest_own(cwd)
    chain = [p for p in reversed((cwd, *cwd.parents)) if p == top or top in p.parents]
    seen: set[str] = set()
    found: list[Path] = []
    for folder in (home, *chain):
        path = next((folder / n for n in NAMES if _is_there(folder / n)), None)
        if path is not None and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            found.append(path)
    return found


def _highest_own(cwd: Path) -> Path:
    top, home = cwd, Path(places.home())
    for folder in cwd.parents:
        if folder == home or not _is_own(folder):
            break
        top = folder
    return top


def _is_own(folder: Path) -> bool:
    """Whether only this person (and root) can put a file there."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & stat.S_IWOTH


def _is_there(path: Path) -> bool:
    try:
        return os.path.isfile(path)
    except OSError:
        return False


def nested_files(root: Path, known: set[Path]) -> list[str]:
    """AGENTS.md files further down, relative to `root`; looks at a bounded number of entries."""
    found: list[str] = []
    for path in _walk(root):
        if path.name == NAMES[0] and path not in known:
            found.append(str(path.relative_to(root)))
    return sorted(found)[:20]


def _walk(root: Path) -> Iterator[Path]:
    looked, folders = 0, [root]
    while folders and looked < WALK_CAP:
        try:
            entries = sorted(os.scandir(folders.pop(0)), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            looked += 1
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED and not entry.name.startswith("."):
                    folders.append(Path(entry.path))
            else:
                yield Path(entry.path)


def _text(data: bytes) -> str:
    """What the bytes say, in UTF-8 or marked UTF-16. Raises ValueError for what is no text: noise as instructions only
    costs tokens."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").strip()
    if b"\0" in data:
        raise ValueError("it is not text")
    return data.decode("utf-8-sig", errors="replace").strip()


def _content(path: Path, *, own: bool) -> bytes:
    """The bytes of a file of instructions. One that is not the person's `own` may be a link, and what it leads to is
    sent to the model: so not out of its repository, nor to what may hold a key. Raises OSError, ValueError."""
    real = os.path.realpath(path)
    top = os.path.realpath(git_root(path.parent) or path.parent)
    if not own and (not places.within(real, top) or ".git" in Path(real).parts or places.is_secret(real)):
        raise ValueError("it is a link to what is none of this project's text")
    with opened(real) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes")
        return file.read(MAX_BYTES)


class _Reader:
    """Reads instruction files, each and all of them capped, and notes what was left out."""

    def __init__(self, cap: int, home: Path) -> None:
        self.cap, self.home = cap, home
        self.left = TOTAL_CAP
        self.files: list[Path] = []
        self.notices: list[str] = []

    def read(self, path: Path) -> str:
        """The file under a heading with its path; "" where it is empty or cannot be read."""
        try:
            text = _text(_content(path, own=path.parent == self.home))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.notices.append(f"{path} could not be read: {why}")
            return ""
        if not text:
            return ""
        room = min(self.cap, self.left)
        shown = text
        if len(text) > room:
            shown = f"{text[:room]}\n[{len(text) - room:,} more characters: read {path} for the rest]"
            self.notices.append(f"{path} has {len(text):,} characters; the model is shown the first {room:,}")
        self.left -= min(len(text), room)
        self.files.append(path)
        return f"From {path}:\n{shown}"
