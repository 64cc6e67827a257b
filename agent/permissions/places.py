"""Which files are whose: the workspace, what holds secrets, what decides what runs, and what anybody may read."""

from __future__ import annotations

import os
import re
import tempfile
from fnmatch import translate
from pathlib import Path

from tools._paths import real as _real

_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".npmrc", ".pypirc",
    ".git-credentials", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.age",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials", "credentials.json", "secrets.*", "secret.*",
    "service-account*.json", "token.json", "auth.json", ".vault-token", ".terraformrc",
    "terraform.tfstate*", "*.tfvars", "shadow", "gshadow", "sudoers", "master.key",
    "application_default_credentials.json", ".*_history", ".lesshst",
)  # fmt: skip
_NO_SECRET = (
    "*.example",
    "*.sample",
    "*.template",
    "*.dist",
    "*.pub",
    "secrets.py",
    "secret.py",
    "*.md",
    "*.rst",
    "hosts.yml.j2",
)
_SECRET_REGEX = re.compile("|".join(map(translate, _SECRET_NAMES)))
_NO_SECRET_REGEX = re.compile("|".join(map(translate, _NO_SECRET)))
_SECRET_FOLDERS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".config/gcloud", ".config/gh",
    ".config/op", ".config/rclone", ".mozilla", ".config/google-chrome", ".config/chromium", ".local/share/keyrings",
    "Library/Keychains", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
)  # fmt: skip
_STEERING = (
    ".git", ".refold", ".mcp.json", ".claude", ".agents", ".vscode", ".idea", ".envrc", ".husky", ".gitmodules",
)  # fmt: skip
_STARTUP = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    ".gitconfig", ".inputrc", ".vimrc", ".tmux.conf", ".xinitrc", ".xprofile",
)  # fmt: skip
_COMMON = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/nix/store", "/proc/cpuinfo",
           "/proc/meminfo", "/proc/version", "/dev/null", "/dev/zero", "/System", "/Library/Developer")  # fmt: skip


def real(path: str | Path) -> str:
    """The path with every symlink resolved, also where its end does not exist yet."""
    return _real(path)


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it. Both absolute; compares text, so resolve symlinks first."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def home() -> str:
    """The person's home folder."""
    return real(os.path.expanduser("~"))


def temporary_folders() -> tuple[str, ...]:
    """The folders for temporary files; first the one that is used."""
    try:
        used = tempfile.gettempdir()
    except OSError:  # none can be written now (a full disk, a limit); a session that only reads needs none
        used = "/tmp"
    found = dict.fromkeys(real(p) for p in (used, "/tmp", "/var/tmp"))
    return tuple(p for p in found if p != "/")


def is_secret(path: str) -> bool:
    """Whether a file usually holds a key, a password or a token, by its name and place."""
    path = os.path.normpath(path)
    name = os.path.basename(path)
    if _NO_SECRET_REGEX.match(name):
        return False
    if _SECRET_REGEX.match(name):
        return True
    if any(f"/{folder}/" in f"{path}/" for folder in _SECRET_FOLDERS):
        return True
    return path.startswith("/proc/") and path.endswith(("/environ", "/mem", "/maps", "/cmdline", "/auxv"))


def secret_folders() -> list[str]:
    """The folders of keys in the person's home, whether or not they exist."""
    return [f"{home()}/{folder}" for folder in _SECRET_FOLDERS]


def secret_name(name: str) -> bool:
    """Whether a file of this name is secret wherever it lies."""
    return _SECRET_REGEX.match(name) is not None and not _NO_SECRET_REGEX.match(name)


def steers(path: str, root: str, own_home: str) -> bool:
    """Whether writing a file changes what will run later, or what is allowed: hooks, start-up files, our own home."""
    if within(path, own_home):
        return True
    if within(path, root):
        first = path[len(root.rstrip("/")) + 1 :].split("/")
        return any(part in _STEERING for part in first)
    return os.path.basename(path) in _STARTUP or any(within(path, f) for f in secret_folders())


def commonly_readable(path: str) -> bool:
    """Whether a file belongs to the system, so that reading it tells nothing about the person."""
    return any(within(path, folder) for folder in _COMMON) and not is_secret(path)
