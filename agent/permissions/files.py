"""Which files a simple command names for reading and for writing."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator

from agent.permissions.shell.model import Part, Word, names

_NO_FILES = names(
    """
    echo printf true false : pwd date uname arch nproc uptime id groups whoami logname tty who seq expr factor
    sleep which type whereis hostname ps pgrep getconf command lscpu dirname basename free cal numfmt test
    """
)
_FIRST_IS_TEXT = frozenset({"grep", "egrep", "fgrep", "rg", "sed", "gsed", "awk", "gawk", "mawk", "jq", "tr", "cut"})
_WRITES_ALL = frozenset({"tee", "touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred"})
_WRITES_LAST = frozenset({"cp", "mv", "ln", "install"})
_MAX_GLOB = 200
"""Names that a pattern is expanded to, so that no question takes long."""


def reads(part: Part, cwd: str) -> Iterator[str]:
    """The absolute paths a part names for reading; "" for one that cannot be known. Patterns are expanded."""
    words = [r.target for r in part.redirects if r.op in ("<", "<>")]
    if part.program not in _NO_FILES:
        words += _operands(part)
    return itertools.chain.from_iterable(_paths(w, part, cwd) for w in words)


def writes(part: Part, cwd: str) -> Iterator[str]:
    """The absolute paths a part names for writing; "" for one that cannot be known."""
    words = [
        r.target
        for r in part.redirects
        if ">" in r.op and not (r.op == ">&" and (r.target.text.isdigit() or r.target.text == "-"))
    ]
    words = [w for w in words if w.text not in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")]
    operands = [w for w in part.args if not w.text.startswith("-")]
    if part.program in _WRITES_ALL:
        words += operands
    elif part.program in _WRITES_LAST:
        words += operands[-1:]
    elif part.program == "sed" and any(w.text.startswith(("-i", "--in-place")) for w in part.args):
        words += operands[1:]
    elif part.program == "dd":
        words += [Word(w.text[3:], w.known) for w in part.args if w.text.startswith("of=")]
    return itertools.chain.from_iterable(_paths(w, part, cwd) for w in words)


_FILTERS = names("head tail grep egrep fgrep sort uniq wc cut tr jq yq awk sed cat column echo printf true nl tac")


def only_filters(part: Part, cwd: str) -> bool:
    """Whether a part that only reads opens no file: it prints, or passes on what another one prints."""
    walks = any(w.text.startswith("--") or set("rR") & set(w.text) for w in part.args if w.text.startswith("-"))
    grep = part.program.endswith("grep") and walks
    return part.program in _FILTERS and not grep and next(reads(part, cwd), None) is None


def _operands(part: Part) -> list[Word]:
    found: list[Word] = []
    text_given = any(w.text.startswith(("-e", "--regexp", "--expression", "-f", "--file")) for w in part.args)
    skip = part.program in _FIRST_IS_TEXT and not text_given
    for word in part.args:
        if word.text.startswith("-"):
            value = word.text.partition("=")[2] or word.text[2:]
            if "/" in value:
                found.append(Word(value))
        elif skip:
            skip = False
        elif part.program != "find" or not found or "/" in word.text:
            found.append(word)
    return found


def _paths(word: Word, part: Part, cwd: str) -> list[str]:
    if not word.known or None in part.folders:
        return [word.text if word.known and word.text.startswith("/") else ""]
    found: list[str] = []
    for folder in part.folders:
        path = os.path.normpath(os.path.join(cwd, folder or "", word.text))
        if word.glob:
            names = list(itertools.islice(glob.iglob(path, include_hidden=False), _MAX_GLOB))
            found += [os.path.dirname(path) if any(c in path for c in "*?[") else path, *names]
        else:
            found.append(path)
    return list(dict.fromkeys(found))
