"""Which commands that show the system, its archives or the shell itself only read; of each a few forms are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent.permissions.shell.model import Word

Check = Callable[[Sequence[Word]], str]
"""Says why the arguments are not known to be harmless; "" where they are."""


_IP = re.compile(
    r"(?:-(?:4|6|c|s|j|d|o|br|brief|color|json|details) )*(?:a|addr|address|r|route|link|neigh)(?: (?:show|list|ls))?"
)


def _ip(args: Sequence[Word]) -> str:
    return "" if _IP.fullmatch(" ".join(w.text for w in args)) else "ip is only known to be harmless where it shows all"


def _ifconfig(args: Sequence[Word]) -> str:
    return "" if len(args) < 2 else "ifconfig may change an interface"


def _crontab(args: Sequence[Word]) -> str:
    return "" if [w.text for w in args] == ["-l"] else "it changes what runs by the clock"


def _tar(args: Sequence[Word]) -> str:
    plain = len(args) == 2 and re.fullmatch(r"-?t[vzjJ]*f", args[0].text) and ":" not in args[1].text
    return "" if plain else "tar is only known to be harmless as tar -tf FILE"


def _command(args: Sequence[Word]) -> str:
    return "" if args and args[0].text in ("-v", "-V") else "it runs a command"


def _unzip(args: Sequence[Word]) -> str:
    lists = len(args) == 2 and args[0].text in ("-l", "-v") and not args[1].glob
    return "" if lists else "unzip is only known to be harmless as unzip -l FILE"


def _lists_archive(args: Sequence[Word]) -> str:
    texts = [w.text for w in args]
    files = not any(w.text.startswith("-") or w.glob and w.text[:1] in "*?[" for w in args[1:])
    return "" if texts[:1] in (["-l"], ["-lv"], ["--list"]) and files else "it packs or unpacks files"


def _whole(*lines: str) -> Check:
    """A check of a program of which only whole lines of arguments are known to be harmless."""
    known = frozenset(lines)
    return lambda args: (
        "" if " ".join(w.text for w in args) in known else "it is only known to be harmless where it shows"
    )


def _umask(args: Sequence[Word]) -> str:
    return "" if [w.text for w in args] in ([], ["-S"], ["-p"]) else "it changes the rights of what is made"


def _ulimit(args: Sequence[Word]) -> str:
    shows = len(args) == 0 or (len(args) == 1 and re.fullmatch(r"-[HS]?[abcdefiklmnpqrstuvx]|-[HS]", args[0].text))
    return "" if shows else "it changes a limit"


def _pushd(args: Sequence[Word]) -> str:
    plain = len(args) == 1 and re.match(r"[\w./~]", args[0].text)
    return "" if plain else "pushd turns its list of folders"


_LOCAL_TABLES = frozenset({"passwd", "group", "services", "protocols", "shells"})


def _getent(args: Sequence[Word]) -> str:
    local = args and args[0].text in _LOCAL_TABLES and not any(w.text.startswith("-") for w in args)
    return "" if local else "getent may ask the network or show passwords"


def _package(modes: str) -> Check:
    """A check of a package manager that only reads in these modes, the first word of its arguments."""

    def check(args: Sequence[Word]) -> str:
        texts = [w.text for w in args]
        mode = texts and re.fullmatch(modes, texts[0])
        plain = all(re.fullmatch(r"[\w/.][\w/.:+*~-]*", t) and "://" not in t for t in texts[1:])
        return "" if mode and plain else "it may change what is installed"

    return check


CHECKS: dict[str, Check] = {
    "tar": _tar, "command": _command, "unzip": _unzip, "xz": _lists_archive, "gzip": _lists_archive,
    "ip": _ip, "ifconfig": _ifconfig, "crontab": _crontab, "getent": _getent,
    "umask": _umask, "ulimit": _ulimit, "pushd": _pushd, "popd": _whole(""), "jobs": _whole("", "-l", "-p"),
    "dpkg": _package(r"-[lLsS]|--(?:list|listfiles|status|search)"), "rpm": _package(r"-q[ailfcds]*"),
    "timedatectl": _whole("", "status"), "hostnamectl": _whole("", "status"), "localectl": _whole("", "status"),
    "loginctl": _whole("", "list-sessions", "list-users"),
}  # fmt: skip
