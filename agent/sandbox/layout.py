"""What a confined process may see and change; the same for every kind of sandbox."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent.permissions import places
from agent.sandbox.doors import Door
from agent.sandbox.repositories import git_folders, steering
from agent.trust import content
from transcripts.files import private_folder

_SKIPPED = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache", "vendor"}
)
MAX_FOLDERS = 2_000
"""Folders of the workspace that are looked through for secret files."""
MAX_DEPTH = 6

_HOME_FILES = (
    ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".env*", "*_history", ".vault-token",
    ".cargo/credentials*", ".gem/credentials", ".m2/settings.xml", ".terraform.d/credentials*", ".claude/.credentials*",
    ".codex/auth.json", ".gemini/oauth*", ".config/git/credentials", ".Xauthority", ".ICEauthority", ".wget-hsts",
)  # fmt: skip
_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh")
_STEERING = (".git", ".refold", ".mcp.json", ".claude", ".agents", ".vscode", ".idea", ".envrc", ".husky")
_SOCKET_FOLDERS = re.compile(r"(?:tmux-|ssh-|vscode-|kitty-|screen-|screens$|\.X11-unix$|\.ICE-unix$)")
FORGOTTEN = (
    "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "TMUX",
    "STY", "GPG_AGENT_INFO", "KUBECONFIG", "VSCODE_IPC_HOOK_CLI",
)  # fmt: skip
"""Environment variables that lead to processes outside; no confined process has them."""


@dataclass(frozen=True)
class Layout:
    """One confinement: everything is readable but `hidden`; only `writable` can be changed, `fixed` inside it cannot,
    and the folders `unmoved` inside it can neither be moved nor removed. `scratch` is the folder for temporary files;
    where nothing else is writable, it belongs to the confinement alone. `env` is added to the environment. `door` is
    the way out to the hosts that rules allow, if there is one."""

    writable: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    unmoved: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    scratch: str = "/tmp"
    env: Mapping[str, str] = field(default_factory=dict)
    door: Door | None = None


class ReadRules(Protocol):
    """What the person's rules say about reading."""

    @property
    def denies_by_pattern(self) -> bool: ...
    def reveals(self, path: str) -> bool: ...
    def denies(self, path: str) -> bool: ...
    def denied_places(self) -> list[str]: ...


@dataclass(frozen=True)
class Place:
    """Where a session works: the workspace, refold's own folder, and further folders that can be changed.
    `open_secrets` are files of the workspace that stay readable although they are named like secrets, `steering` what
    lay in these folders at the start and decides what runs outside of the sandbox."""

    root: str
    home: str
    extra: tuple[str, ...] = ()
    open_secrets: frozenset[str] = frozenset()
    steering: tuple[str, ...] = ()
    temporary: tuple[str, ...] = field(default_factory=places.temporary_folders)


def layout(place: Place, confinement: str, rules: ReadRules | None = None) -> Layout:
    """The layout of a confinement: read-only, workspace or network."""
    hidden = tuple(hidden_paths(place, rules))
    cache = cache_folder(place)
    if confinement == "read-only":
        scratch = os.path.join(cache, "scratch")
        private_folder(scratch)
        return Layout(hidden=hidden, scratch=scratch)
    writable = existing([place.root, *git_folders(place.root), *place.temporary, *place.extra, cache])
    fixed, unmoved = _fixed(place)
    network = confinement == "network"
    return Layout(writable, fixed, unmoved, hidden, network, place.temporary[0], _cache_env(cache))


def cache_folder(place: Place) -> str:
    """Where confined build tools keep their caches: a poisoned cache must not be used by anybody else."""
    name = hashlib.sha256(place.root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folder = os.path.join(place.home, "cache", "confined", name)
    private_folder(folder)
    return folder


def _cache_env(folder: str) -> dict[str, str]:
    return {
        "XDG_CACHE_HOME": folder,
        "GOCACHE": f"{folder}/go-build",
        "PIP_CACHE_DIR": f"{folder}/pip",
        "UV_CACHE_DIR": f"{folder}/uv",
        "npm_config_cache": f"{folder}/npm",
        "CCACHE_DIR": f"{folder}/ccache",
    }


def existing(paths: Sequence[str]) -> tuple[str, ...]:
    """Those that exist, each once."""
    return tuple(dict.fromkeys(p for p in paths if os.path.exists(p)))


def hidden_paths(place: Place, rules: ReadRules | None = None) -> list[str]:
    """Files and folders that no confined process may read: keys, our own home, sockets that lead outside, and what
    rules deny; less what rules reveal."""
    home = places.home()
    found = [f for f in places.secret_folders() if os.path.exists(f)]
    found += [str(p) for pattern in _HOME_FILES for p in Path(home).glob(pattern)]
    found += [p for p in _SYSTEM_SECRETS if os.path.exists(p) and os.access(p, os.R_OK)]
    denied = rules.denies if rules and rules.denies_by_pattern else lambda path: False
    named = [f for folder in (place.root, *place.extra) for f in secret_files(folder, denied)]
    found += [f for f in named if f not in place.open_secrets or denied(f)]
    if rules:
        found = [f for f in found if not rules.reveals(f)] + rules.denied_places()
    found += [*_own(place), *_sockets(place.temporary), *_bound_sockets()]
    return list(dict.fromkeys(p for p in map(places.real, found) if os.path.lexists(p)))


def _own(place: Place) -> list[str]:
    """Refold's own folder; where the workspace, the program itself or the person's skills lie in it, all that lies
    beside these."""
    kept = [place.root, *map(places.real, (sys.prefix, sys.base_prefix, __file__))]
    kept += [folder for folder in (os.path.join(place.home, "skills"),) if os.path.isdir(folder)]
    if not any(places.within(path, place.home) for path in kept):
        return [place.home]
    return [e.path for e in os.scandir(place.home) if not any(places.within(path, e.path) for path in kept)]


def secret_files(root: str, denied: Callable[[str], bool]) -> Iterator[str]:
    """The files of a folder that usually hold secrets, by their names, and those that are denied."""
    for entry in _entries(root):
        if not entry.is_dir(follow_symlinks=False) and (places.secret_name(entry.name) or denied(entry.path)):
            yield entry.path


def _entries(root: str) -> Iterator[os.DirEntry[str]]:
    """What a folder and those below it have in them, as far as they are looked through."""
    waiting, looked = [(root, 0)], 0
    while waiting and looked < MAX_FOLDERS:
        folder, depth = waiting.pop(0)
        looked += 1
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED and depth < MAX_DEPTH:
                waiting.append((entry.path, depth + 1))
            yield entry


def committed_secrets(root: str) -> frozenset[str]:
    """The files of the workspace that are named like secrets and that git knows: certificates of tests, settings that
    everybody has. Asked once, before the first command: what a command adds later is no proof."""
    index = content(os.path.join(root, ".git", "index")) or b""
    known = lambda path: os.fsencode(os.path.relpath(path, root)) + b"\0" in index  # noqa: E731
    return frozenset(path for path in secret_files(root, lambda path: False) if known(path))


def _sockets(folders: Sequence[str]) -> Iterator[str]:
    """Sockets in the temporary folders by which another program could be told to act (tmux, ssh-agent, X11), those of
    other network namespaces too."""
    for folder in folders:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if _SOCKET_FOLDERS.match(entry.name) or _is_special(entry):
                yield entry.path


def _bound_sockets() -> Iterator[str]:
    """The sockets with a path that programs of this machine listen at, wherever they lie (Linux); those in /run are
    hidden with it."""
    try:
        table = Path("/proc/net/unix").read_text("utf-8", "surrogateescape")
    except OSError:
        return
    for line in table.splitlines()[1:]:
        path = line.split(maxsplit=7)[7:]
        if path and path[0].startswith("/") and not path[0].startswith("/run/"):
            yield path[0]


def _is_special(entry: os.DirEntry[str]) -> bool:
    """A socket, a pipe or a device; told without looking at the file where the folder says it."""
    return not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink())


def steering_files(folders: Sequence[str]) -> tuple[str, ...]:
    """What lies in these folders and decides what runs outside of the sandbox later, repositories below them included.
    Asked once, before the first command: what a command makes itself it can remove again."""
    return tuple(e.path for folder in folders for e in _entries(folder) if e.name in _STEERING)


def _fixed(place: Place) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stays as it is in the workspace, and the folders around it that stay where they are."""
    known = dict.fromkeys((*place.steering, *(os.path.join(place.root, name) for name in _STEERING)))
    found = [path for path in known if not os.path.islink(path)]
    held, unmoved = steering(place.root, [path for path in found if os.path.basename(path) == ".git"])
    files = [path for path in found if os.path.basename(path) != ".git"]
    return existing([*held, *files]), existing(unmoved)
