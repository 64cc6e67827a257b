"""What is dangerous in how parts of a line feed each other: what is fetched is run, a shell talks to the network, keys
leave."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable

from agent.permissions.shell.hidden import reads_input
from agent.permissions.shell.line import Line
from agent.permissions.shell.model import Part, Word, names, runs_as_text
from agent.permissions.shell.network import contacts
from agent.permissions.shell.unwrap import SHELLS

_INTERPRETERS = SHELLS | names("python python2 python3 perl ruby node php lua tclsh osascript pwsh")
_DECODERS = frozenset({"base64", "base32", "xxd", "openssl", "gunzip", "zcat", "gpg", "uudecode"})


def of_stream(part: Part, line: Line) -> str:
    """Programs that run what another one brings: curl | sh, sh -c "$(curl ...)", source <(wget ...)."""
    runs = part.program in _INTERPRETERS or part.program in ("eval", "source", ".", "xargs", "iex", "Invoke-Expression")
    if not runs:
        return _secrets_out(part, line) or _runs_fetched(part, line)
    inside: list[Iterable[Part]] = [[o for o in line.inside(part) if not runs_as_text(part, o)]]
    if part.program in _INTERPRETERS | {"iex", "Invoke-Expression"} and reads_input(part):
        inside.append(line.feeding(part))
    if part.program in SHELLS and any(w.known and w.text.startswith("-") and "c" in w.text for w in part.args):
        # In `curl x | xargs sh -c` the text comes by way of xargs.
        inside += [line.feeding(part)] if part.via == "xargs" else []
    fetcher = next((o for o in itertools.chain(*inside) if contacts(o) or o.program in _DECODERS | _FETCHERS), None)
    if fetcher:
        return f"{part.program} runs what {fetcher.program} brings"
    return _to_network(part, line) or _runs_fetched(part, line)


_FETCHERS = names("iwr irm Invoke-WebRequest Invoke-RestMethod fetch lynx w3m links elinks")
_ONLINE = re.compile(r"/dev/(?:tcp|udp)/")


def _to_network(part: Part, line: Line) -> str:
    """A shell whose input or output is a network connection."""
    if part.program not in SHELLS:
        return ""
    held = any(_ONLINE.match(r.target.text) for r in part.redirects)
    if not held and reads_input(part):
        held = bool(line.index("connects", _connected))
    held = held or any(o.program in ("nc", "ncat", "netcat", "socat", "telnet") for o in line.fed(part))
    return "it opens a shell to the network" if held else ""


def _connected(part: Part) -> list[str]:
    """The network connections that the shell itself has opened."""
    return [r.target.text for r in part.redirects if part.program == "exec" and _ONLINE.match(r.target.text)]


def _runs_fetched(part: Part, line: Line) -> str:
    """A program or script that an earlier part of the line has fetched into a file."""
    if part.program in _INTERPRETERS or part.program in ("source", "."):
        named = next((w.text for w in part.args if w.known and not w.text.startswith("-")), "")
    else:
        named = part.words[0].text if part.words[0].known and "/" in part.words[0].text else ""
    if not named:
        return ""
    fetcher = line.index("fetched", _fetched).get(os.path.basename(named))
    return f"{part.program} runs what {fetcher.program} brings" if fetcher and fetcher.number < part.number else ""


def _fetched(part: Part) -> set[str]:
    """The names of the files that a part fetches."""
    if not contacts(part):
        return set()
    targets = [r.target.text for r in part.redirects if ">" in r.op]
    if part.program in ("curl", "wget", "aria2c", "http", "https", "xh", "scp"):
        targets += [re.sub(r"^-[oO]", "", w.text).rstrip("/") for w in part.args]
    return {os.path.basename(t).rpartition(":")[2] for t in targets} - {"", "null"}


def _secrets_out(part: Part, line: Line) -> str:
    if not contacts(part) or part.program in ("ssh", "scp", "sftp", "git", "rsync"):
        return ""  # these are given keys to log in with
    if not line.index("secrets", _secrets_named):
        return ""
    sources = [part, *line.inside(part), *line.feeding(part)]
    named = next((secret for o in sources for secret in _secrets_named(o) if o is not part or secret != _VARIABLES), "")
    return f"it may send {named} away" if named else ""


_VARIABLES = "the environment"


def _secrets_named(part: Part) -> list[str]:
    """The keys whose names stand in the words of a part, and the environment where it prints that."""
    given = (*part.args, *(r.target for r in part.redirects if r.op == "<"))
    found = [w.text for w in given if _names_key(w)]
    return [*found, _VARIABLES] if part.program in ("env", "printenv") else found


def _names_key(word: Word) -> bool:
    return bool(
        re.search(
            r"(?:^|[/@=])(?:\.env(?:\.\w+)?|\.ssh(?:/.*)?|\.aws/.*|id_(?:rsa|ed25519|ecdsa|dsa)|\.netrc|shadow)$",
            word.text,
        )
    )
