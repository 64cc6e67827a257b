"""What can be picked out of words without understanding them: what the person forbids, what they name, which tests
failed, what a command says it made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.base import failed_parts

_CONSTRAINT = re.compile(
    r"(?i)\b(never|don't|do not|must|always|only|without|avoid|keep|make sure|no more than|at most|leave \w+ alone)\b"
    r"|不要|必须|禁止|务必|不能|只能"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_LONGEST_SENTENCE = 400
_READ_AT_MOST = 20_000
"""Characters of one message that are looked at."""

_NAMED = re.compile(
    r"`([^`\n]{2,80})`"
    r"|\"([^\"\n]{3,80})\""
    r"|(https?://[^\s)>\]\"'`]+)"
    r"|\b((?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64})\b"
    r"|\b([Pp]ort \d{2,5})\b"
    r"|\b((?:localhost|[\w-]+(?:\.[\w-]+)+):\d{2,5})\b"
)
_MOST_NAMED = 24

_FAILED = (
    re.compile(r"^(?:FAILED|ERROR)\s+(\S+::\S+)"),  # pytest, the summary
    re.compile(r"^(\S+::\S+)\s+(?:FAILED|ERROR)\b"),  # pytest -v
    re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))"),  # unittest
    re.compile(r"^\s*--- FAIL: (\S+)"),  # go
    re.compile(r"^test (\S+) \.\.\. FAILED"),  # cargo
    re.compile(r"^\s*not ok \d+ -? ?(.+)"),  # TAP
    re.compile(r"^\s*[✕✗×✖] (.+?)(?: \(\d+ ?m?s\))?$"),  # jest, vitest, mocha
    re.compile(r"^\s*● (.+ › .+)$"),  # jest, the summary
    re.compile(r"^\s*\d+\) (.+)$"),  # mocha, rspec; only where "failing" or "failures" stands in the text
)
_COUNTED = _FAILED[-1]
_MOST_FAILED = 40

_MADE = (
    re.compile(r"^\[[\w/.+-]+ (?:\(root-commit\) )?[0-9a-f]{7,40}\].*"),  # git commit
    re.compile(r"(?i)^.*\b(?:listening|running|serving|available|started)\b.*?(?:https?://\S+|port \d+|:\d{2,5}\b).*"),
)
_MOST_MADE, _LONGEST_MADE = 4, 140


def constraints(text: str) -> list[str]:
    """Sentences that say what must or must not be done."""
    found = (part.strip() for part in _SENTENCE.split(text[:_READ_AT_MOST]))
    return [part for part in found if len(part) <= _LONGEST_SENTENCE and _CONSTRAINT.search(part)]


def named(text: str) -> list[str]:
    """What words name exactly: things in back quotes or quotation marks, URLs, hashes, ports; each once."""
    found: dict[str, None] = {}
    for match in _NAMED.finditer(text[:_READ_AT_MOST]):
        found[next(group for group in match.groups() if group).rstrip(".,;:")] = None
        if len(found) == _MOST_NAMED:
            break
    return list(found)


def failed_tests(output: str) -> list[str]:
    """Names of the tests that an output says failed, each once, at most 40."""
    found: dict[str, None] = {}
    counted = re.search(r"(?i)\bfail(?:ing|ures)\b", output)
    for line in _lines_worth_a_look(output):
        for pattern in _FAILED:
            match = pattern.match(line) if pattern is not _COUNTED or counted else None
            if match:
                found[match[1].strip()[:200]] = None
                break
        if len(found) == _MOST_FAILED:
            break
    return list(found)


def _lines_worth_a_look(output: str) -> Iterator[str]:
    """Lines of an output, long ones passed over; nothing at all where no runner's sign is in it."""
    if re.search(r"FAIL|ERROR|not ok|[✕✗×✖●]|failing|failures", output):
        yield from (line for line in output.splitlines() if len(line) < 400)


def made(output: str) -> list[str]:
    """Lines in which a command says what it made: a commit, a server that listens."""
    lines = (line.strip() for line in output.splitlines() if len(line) < 400)
    return [line[:_LONGEST_MADE] for line in lines if any(p.match(line) for p in _MADE)][-_MOST_MADE:]


def exit_of(meta: Mapping[str, Any]) -> int | None:
    """How a command ended; None where that is not known. Of a pipe in which a part failed, the code of that part: the
    shell's own would call `pytest | tail` a success whatever pytest said."""
    pipe = meta.get("pipe")
    failed = failed_parts(pipe) if isinstance(pipe, list) else []
    code = failed[0] if failed else meta.get("exit_code")
    return code if isinstance(code, int) else None


_PREFIX = re.compile(
    r"^(?:cd [^;&|]+ ?(?:&&|;) ?|(?:[A-Z_][A-Z0-9_]*=\S* )|(?:timeout (?:-\S+ )*\S+|time|sudo|env|nice) )+"
)
_LOOKS = {
    *("cat", "ls", "head", "tail", "less", "more", "grep", "rg", "egrep", "fgrep", "find", "fd", "sed", "awk", "wc"),
    *("pwd", "echo", "printf", "file", "stat", "tree", "which", "type", "du", "df", "sort", "uniq", "cut", "tr", "nl"),
    *("diff", "cmp", "date", "env", "printenv", "ps", "uptime", "whoami", "id", "true"),
}
"""Programs that only show something: what they said is not a state of the work, and can be asked for again."""


def command_kind(command: str) -> str:
    """What a command is the newest of its kind of: the program and its subcommand, script or module; "" for one that
    only shows something."""
    words = _PREFIX.sub("", command.strip()).split()
    if not words:
        return ""
    program = words[0].rpartition("/")[2]
    if program in _LOOKS and ">" not in command and "-i" not in words:
        return ""
    if words[1:2] == ["-m"]:
        return " ".join(words[:3])[:80]
    return " ".join(words[:1] + [w for w in words[1:2] if not w.startswith("-")])[:80]
