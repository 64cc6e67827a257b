"""Commands that may hide in the words of a program that is not known to run any: `anywrap git push`, `python -c '...'`.

Nothing of it is certain. So it never allows anything; it makes a rule hold perhaps, and a danger be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.permissions.shell.line import Line
from agent.permissions.shell.model import Part, Word, names
from agent.permissions.shell.readonly import only_transforms
from agent.permissions.shell.unwrap import SHELLS, WRAPPERS

_DATA = names(
    """
    git mkdir touch rm rmdir cp mv ln chmod chown chgrp kill pkill killall tee install truncate mktemp export declare
    local readonly typeset unset set pushd popd curl wget scp rsync brew apt apt-get mount umount zip unzip gh
    pytest jest vitest mocha ruff mypy
    """
)
"""Further programs that take their words for names and texts."""
_SUBCOMMANDS = names(
    """
    npm pnpm yarn bun cargo go docker podman kubectl pip pip3 uv poetry pipenv terraform helm dotnet rustup conda
    bundle rails mix composer systemctl gradle mvn pdm hatch nx turbo deno flutter dart swift make just task invoke
    """
)
_MARKS = names("exec run x dlx -- -c --command develop shell")
"""What stands before a command where a program with sub-commands runs one."""


INTERPRETERS = names("python python2 python3 perl ruby node php lua deno bun osascript tclsh Rscript")
_PROGRAM_TEXT = re.compile(r"-[a-zA-Z0-9]*[cerEp]|--(?:eval|print)")


_LATER = frozenset({"at", "batch"})
"""Programs that run later what they read."""


def starts(part: Part) -> Iterator[Sequence[Word]]:
    """The words of a part from each place where a command may begin."""
    if not _may_run(part) or part.program in WRAPPERS:
        return
    marked = part.program not in _SUBCOMMANDS
    for index, word in enumerate(part.args):
        if marked and word.known and not word.text.startswith("-"):
            yield part.args[index:]
        marked = marked or word.text in _MARKS


def texts(part: Part, line: Line) -> Iterator[str]:
    """The texts a part may run: its arguments of several words, its here-document, what is piped into a shell."""
    if part.program in SHELLS | _LATER:
        for other in line.feeding(part):
            yield " ".join(w.text for w in other.args)
            if other.script:
                yield other.script.text
    if part.program in SHELLS:
        return
    if not _may_run(part):
        return
    words = part.args
    if part.program in INTERPRETERS:
        # What stands after the script is given to it.
        words = tuple(b for a, b in zip(words, words[1:]) if _PROGRAM_TEXT.fullmatch(a.text))
    yield from (w.text for w in words if len(w.text.split()) > 1 or "(" in w.text)
    if part.script:
        yield part.script.text


def _may_run(part: Part) -> bool:
    return bool(part.program) and not part.transparent and part.program not in _DATA | SHELLS | only_transforms()


def reads_input(part: Part) -> bool:
    """Whether a shell or interpreter runs what it reads, and not a file or a text among its words."""
    operands = [w for w in part.args if not w.text.startswith("-") or w.text == "-"]
    return not operands or operands[0].text in ("-", "/dev/stdin") or any(w.text == "-s" for w in part.args)
