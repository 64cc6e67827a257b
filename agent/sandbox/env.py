"""What child processes are not told: keys and passwords in the environment."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Collection, Mapping

_SECRET = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET(?:_?KEY|_ACCESS_KEY)?|PRIVATE_?KEY|TOKEN|PASSWORD|PASSWD|PASSPHRASE|"
    r"CREDENTIALS?|AUTH|PAT|DSN|CONNECTION_STRING|SESSION_TOKEN|COOKIE)(?:$|_(?:ID|FILE|JSON|VALUE|BASE64)$)",
    re.IGNORECASE,
)
_URL_WITH_PASSWORD = re.compile(r"^[a-z][\w+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
MIN_SECRET = 8
"""Characters below which a key of ours is too short to be looked for in other variables."""

_PR_SET_DUMPABLE = 4


def child_env(
    env: Mapping[str, str], own: Collection[str] = (), secrets: Collection[str] = (), keep: Collection[str] = ()
) -> dict[str, str]:
    """The environment for child processes: without the variables named in `own`, without any whose value holds one of
    our `secrets`, and without those that by name or form are a key, a token or a password, unless named in `keep`.

    A folder on PATH that is not absolute is left out: what runs must not depend on where it is started.
    """
    hidden = [s for s in secrets if len(s) >= MIN_SECRET]
    kept = {
        name: value
        for name, value in env.items()
        if name not in own
        and not any(s in value for s in hidden)
        and (name in keep or not (_SECRET.search(name) or _URL_WITH_PASSWORD.match(value)))
    }
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(p for p in kept["PATH"].split(os.pathsep) if os.path.isabs(p)) or os.defpath
    return kept


def hide_own_memory() -> bool:
    """Makes the memory and environment of this process unreadable to other processes of the same user, its children
    among them (Linux; root can read everything). False where that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
