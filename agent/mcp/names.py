"""Names of servers and tools as providers take them: letters, digits, _ and -, 64 characters at most."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

PREFIX = "mcp__"
MOST = 64
"""Characters in the name of a tool, by the rules of the providers."""
MOST_SERVER = 24
"""Characters of it that a server's name may take."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


def clean(name: str) -> str:
    """A name with nothing but letters, digits, _ and -. Two underscores together divide server and tool, so that
    a name itself has none."""
    return re.sub(r"__+", "_", _FOREIGN.sub("_", name)).strip("_") or "x"


def server_names(names: Iterable[str], later: Iterable[str] = ()) -> dict[str, str]:
    """Name of each server -> what it is called in the names of its tools; no two are called the same, and none of
    `later` is called as another one would be without it."""
    first = _distinct(names, MOST_SERVER)
    return first | _distinct((name for name in later if name not in first), MOST_SERVER, first.values())


def tool_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Name of each tool of a server (as `server_names` calls it) -> its full name, mcp__server__tool."""
    head = f"{PREFIX}{server}__"
    return {name: head + called for name, called in _distinct(names, MOST - len(head)).items()}


def _distinct(names: Iterable[str], most: int, given: Iterable[str] = ()) -> dict[str, str]:
    """A name that is fit as it is keeps it, unless it is `given` away: rules that name it mean this one."""
    listed = list(dict.fromkeys(names))
    taken = set(given)
    found = {name: name for name in listed if clean(name) == name and len(name) <= most and name not in taken}
    taken |= set(found)
    for name in listed:
        if name not in found:
            called = clean(name)
            if len(called) > most or called in taken:
                mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
                called = f"{called[: most - 7].rstrip('_')}_{mark}"
            found[name] = called
            taken.add(called)
    return {name: found[name] for name in listed}
