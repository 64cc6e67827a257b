"""Names of files that one command prints and `xargs` gives to another: `find . -name '*.py' | xargs grep -n x`.

Which files these are is known only at run time. So both ends have to be of a kind that can do no harm with any name:
what prints names prints nothing else, and what reads them only reads, whatever its options.
"""

from __future__ import annotations

import re

from agent.permissions.shell.line import Line
from agent.permissions.shell.model import Part
from agent.permissions.shell.readonly import any_options
from agent.permissions.shell.unwrap import git_subcommand

_XARGS = re.compile(r"-0|-r|-[nLP]\d*|\d+|--null|--no-run-if-empty")
_FILTERS = frozenset({"head", "tail", "sort", "uniq", "grep", "egrep"})


def reads_names(part: Part, line: Line) -> bool:
    """Whether a part is such an xargs, or what it runs; each of the others still has to be harmless by itself."""
    if part.program != "xargs" and part.via != "xargs":
        return False
    if part.env or part.redirects or not part.stages:
        return False
    before = line.before(part)
    sources = [o for _, o in before]
    if not sources or [i for i, _ in before] != list(range(part.stages[-1].index)):
        return False
    if not _prints_names(sources[0]) or not all(_keeps_lines(o) for o in sources[1:]):
        return False
    if part.program == "xargs":
        return part.transparent and _plain_xargs(part)
    known = part.words[:-1]
    return part.program in any_options() and all(w.known and not w.glob for w in known) and "/" not in known[0].text


def _plain_xargs(part: Part) -> bool:
    for word in part.args:
        if not word.known or word.glob:
            return False
        if not _XARGS.fullmatch(word.text):
            return not word.text.startswith("-")
    return False


def _prints_names(part: Part) -> bool:
    """Whether a part prints the names of files it has found, and no text of somebody's choice."""
    texts = [w.text for w in part.args]
    if part.program == "find":
        return not any(t.startswith(("-printf", "-ls", "-fprint")) for t in texts)
    if part.program in ("grep", "egrep", "fgrep", "rg"):
        short = "".join(t[1:] for t in texts if re.fullmatch(r"-[a-zA-Z]+", t))
        odd = any(
            t.startswith("--") and not t.startswith(("--include", "--exclude", "--files", "--glob")) for t in texts
        )
        return (
            not odd
            and ("l" in short or "--files" in texts)
            and not set("oOr" if part.program == "rg" else "o") & set(short)
        )
    if part.program == "git":
        name, rest = git_subcommand(part.args)
        given = [w.text for w in rest]
        if any(t.startswith("--format") or t.startswith("--line-prefix") for t in given):
            return False
        return name == "ls-files" and "-s" not in given or (name, "--name-only" in given) == ("diff", True)
    return False


def _keeps_lines(part: Part) -> bool:
    """Whether a part passes on whole lines or leaves them out."""
    texts = [w.text for w in part.args]
    files = [t for t in texts if not t.startswith("-")]
    if part.program not in _FILTERS or part.redirects or any(t.startswith("--") for t in texts):
        return False
    if part.program in ("grep", "egrep"):
        return len(files) == 1 and not any(set("onbcHfAB") & set(t[1:]) for t in texts if t.startswith("-"))
    return all(f.isdigit() for f in files) and not any(re.match(r"-\w*[co]", t) for t in texts)
