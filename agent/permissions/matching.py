"""Comparing rules with the simple commands of a line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from agent.permissions.rules import Rule, spans, split_words, strongest, word_fits, words_match
from agent.permissions.shell import hidden
from agent.permissions.shell.line import Line
from agent.permissions.shell.model import Part, Word, names
from agent.permissions.shell.readonly import harmless_assignment, why_not
from agent.permissions.shell.unwrap import git_subcommand

_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_MAX_START = 32
"""How far behind the program a sub-command is looked for."""


def shell_rules(rules: Iterable[Rule], tool: str = "bash") -> list[Rule]:
    """The rules that speak about commands."""
    return [r for r in rules if r.tool in (tool, "*")]


def allowing(part: Part, rules: Sequence[Rule]) -> Rule | None:
    """The rule that allows a part, taken literally: a word that is made at run time fits only a final `*`."""
    words = [w.text if w.known else "\0" for w in part.words]
    if not words:
        return None
    folder, _, name = words[0].rpartition("/")
    if folder in _SYSTEM_FOLDERS:
        words[0] = name
    words = [_settled(w) if word == "\0" else word for word, w in zip(words, part.words)]
    assigned = [f"{name}={value.text}" for name, value in part.env if not harmless_assignment(name) or not value.known]
    fitting = (r for r in rules if r.decision == "allow" and words_match(r.pattern, [*assigned, *words], whole=True))
    found = list(fitting)
    # The narrowest one is named: it tells the person most.
    return max(found, key=lambda r: len(r.pattern), default=None)


_NUMBER = re.compile(r"\"?([\w./:=@%+-]*)\$(?:\$|PPID|UID|EUID)(?!\w)([\w./:=@%+-]*)\"?")


def _settled(word: Word) -> str:
    """A word made at run time as far as a rule may speak of it: $$ and its like are always a number."""
    found = _NUMBER.fullmatch(word.text)
    return f"{found[1]}0{found[2]}" if found else "\0"


def holding(part: Part, rules: Sequence[Rule], line: Line) -> tuple[Rule | None, Rule | None]:
    """The ask or deny rule that holds for a part, and one that may hold, depending on what is made at run time or on
    whether a program runs what it is given.

    Both are meant in the sense of the person: whatever the folder of the program, the options before a sub-command, the
    order of flags, and how a path is written.
    """
    strict = [r for r in rules if r.decision != "allow"]
    sure: list[Rule] = []
    maybe: list[Rule] = []
    forms = list(_forms(part)) if strict else []
    for rule in strict:
        if any(_says(rule, form) for form in forms) or _same_flags(rule, part):
            sure.append(rule)
        elif _may_match(rule, part) or _may_hide(rule, part, line):
            maybe.append(rule)
    return strongest(sure), strongest(maybe)


def _forms(part: Part) -> Iterator[list[str]]:
    """The ways in which a part can be read: as written, and without the options before its sub-command."""
    if not part.words:
        return
    args = [w.text for w in part.args]
    yield [part.program, *args]
    yield [part.words[0].text, *args]
    # A file system may not tell RM from rm.
    yield [part.program.lower(), *args]
    yield [part.program, *(_plain_path(a) for a in args)]
    if part.program == "git":
        name, rest = git_subcommand(part.args)
        yield ["git", name, *(w.text for w in rest)]
    # `cargo +nightly publish`: the toolchain stands where options do.
    args = args[1:] if args and args[0].startswith("+") else args
    yield [part.program, *args]
    # Each option before the sub-command may take the word after it for its value, or not.
    starts, known = [0], {0}
    while starts:
        at = starts.pop()
        if not (at < len(args) and args[at].startswith("-")):
            continue
        for following in (at + 1, at + 2):
            if following not in known and following <= _MAX_START:
                known.add(following)
                starts.append(following)
                yield [part.program, *args[following:]]


def _plain_path(word: str) -> str:
    return os.path.normpath(word).replace("//", "/", 1) if "/" in word and "://" not in word else word


def _says(rule: Rule, words: Sequence[str]) -> bool:
    """Whether a rule speaks of a command; in an ask or deny a `*` stands for any number of words."""
    return words_match(rule.pattern, words, whole=False) or spans(rule.pattern, words)


def _may_hide(rule: Rule, part: Part, line: Line) -> bool:
    """Whether a rule speaks of what stands in the words of a program that may run them."""
    if any(_says(rule, [w.text for w in start]) for start in hidden.starts(part)):
        return True
    return any(_named_in(rule, text) for text in hidden.texts(part, line))


def _named_in(rule: Rule, text: str) -> bool:
    wanted = [w for w in split_words(rule.pattern) if w != "*"]
    words = " +".join(re.escape(w).replace(r"\*", r"\S*") for w in wanted)
    fixed = re.compile(rf"(?<![^ /]){words}(?![^ ])")
    return bool(wanted) and any(fixed.search(flat) for flat in _flat(text))


@lru_cache(maxsize=512)
def _flat(text: str) -> tuple[str, ...]:
    """The words of a text of some language, with what may be around, inside and before them taken away."""
    unquoted = re.sub(r"\\\n|['\"\\]", "", text)
    forms = dict.fromkeys((text, unquoted, re.sub(r":[-=+]", " ", unquoted)))
    return tuple(re.sub(r"[^\w./@:+~-]+", " ", form) for form in forms)


def _same_flags(rule: Rule, part: Part) -> bool:
    """`rm -rf *` also means `rm -f -r` and `rm -fr`."""
    pattern = split_words(rule.pattern)
    wanted = _letters(pattern[1:])
    if not wanted or not word_fits(pattern[0], part.program):
        return False
    if not wanted <= _letters([w.text for w in part.args if w.known]):
        return False
    operands = [w for w in pattern[1:] if not w.startswith("-") and w != "*"]
    given = [w.text for w in part.args if not w.text.startswith("-")]
    return len(operands) <= len(given) and all(word_fits(p, g) for p, g in zip(operands, given))


_LETTERS = {"--recursive": "r", "--force": "f", "--all": "a", "--verbose": "v", "--delete": "d"}


def _letters(words: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for word in (w.rstrip("*") for w in words):
        if word.startswith("--"):
            found.add(_LETTERS.get(word, word))
        elif word.startswith("-"):
            found.update("r" if c == "R" else c for c in word[1:])
    return found


def _may_match(rule: Rule, part: Part) -> bool:
    wanted = split_words(rule.pattern)
    if wanted and wanted[-1] == "*":
        wanted.pop()
    for pattern, word in zip(wanted, part.words):
        if not word.known or word.glob:
            return True
        if not word_fits(pattern, word.text if word is not part.words[0] else part.program):
            return False
    return False


def named_anywhere(rule: Rule, command: str) -> bool:
    """Whether a line that could not be read has all the words of a rule in it, in any form."""
    flat = command.replace("\\\n", "").replace("'", "").replace('"', "").replace("\\", "")
    return all(w in flat for w in split_words(rule.pattern) if w != "*")


_SUBCOMMANDS = names(
    """
    git npm pnpm yarn bun cargo go docker podman kubectl pip pip3 uv poetry pipenv gh brew terraform helm dotnet
    rustup conda bundle rails mix composer systemctl apt apt-get gradle mvn pdm hatch nx turbo deno flutter dart
    swift zig make just task invoke
    """
)
_THREE = frozenset(
    {"npm run", "pnpm run", "yarn run", "bun run", "git stash", "git remote", "git worktree", "go mod", "uv pip",
     "uv run", "docker compose", "python -m", "python3 -m", "poetry run", "pdm run", "hatch run", "bundle exec"}
)  # fmt: skip
_WIDE = names(
    """
    pytest ruff mypy pyright basedpyright black isort flake8 pylint eslint prettier tsc jest vitest mocha cmake
    ctest ninja tox nox pre-commit shellcheck gofmt rustfmt clang-format ls cat grep rg wc head tail sort uniq
    cut tr find sed diff mkdir touch which echo printf pwd cd true false test date stat file du df tree jq ps
    """
)


def suggest(part: Part) -> str:
    """The narrowest rule that is still useful and allows a part from now on; "" where none can be written.

    Programs with sub-commands are allowed by sub-command, known checkers by name, everything else word for word.
    """
    assigned = [f"{name}={value.text}" for name, value in part.env if not harmless_assignment(name)]
    texts = [w.text for w in part.words]
    if not texts or part.opaque or any(not v.known for _, v in part.env) or "\n" in "".join(assigned + texts):
        return ""
    start = [part.program if part.words[0].text == part.program else texts[0]]
    if start[0] in _WIDE and not assigned and not (start[0] == "find" and why_not(part)):
        return f"bash({start[0]} *)"
    depth = 3 if " ".join(texts[:2]) in _THREE else 2 if start[0] in _SUBCOMMANDS else 0
    known = [w.known and not w.glob and w.text[:1] not in "-*" for w in part.words[1:depth]]
    if depth and len(texts) >= depth and all(known[1 if depth == 3 and texts[1] == "-m" else 0 :]):
        return f"bash({_join([*assigned, *texts[:depth]])} *)"
    return _exact(part, assigned)


def _exact(part: Part, assigned: list[str]) -> str:
    words = list(part.words)
    open_end = bool(words) and not words[-1].known
    while words and not words[-1].known:
        words.pop()
    if not all(w.known for w in words) or len(words) < 2 and open_end or any(w.text == "*" for w in words):
        return ""
    return f"bash({_join([*assigned, *(w.text for w in words)])}{' *' if open_end else ''})"


_BARE = re.compile(r"[\w@%+=:,./*?~!\[\]{}-]+")


def _join(words: Sequence[str]) -> str:
    return " ".join(w if _BARE.fullmatch(w) else shlex.quote(w) for w in words)
