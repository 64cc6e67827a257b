"""Rules: `bash(git log *)`, `edit(src/**)`, `read(~/notes/**)`, `fetch(example.org)`, `mcp(server/tool)`.

A rule is a tool and what it is given, in brackets; without brackets it speaks of every call of that tool.

- `bash(...)` is compared word by word with each simple command of a line. A `*` at the end stands for any further
  words, none included; a `*` inside a word for any characters of that word. An `allow` without a final `*` means
  exactly this command. An `ask` or `deny` holds for the command with any arguments.
- `read`, `edit`: a path pattern as in .gitignore, relative to the workspace; `~/` and `/` start elsewhere.
- `outside(...)`: like bash, and the command runs outside of the sandbox.
- `fetch`: a host, `*.example.org` for its sub-domains.
- `mcp`: server/tool, `*` on either side.

`deny` beats `ask`, `ask` beats `allow`, and it does not matter where a rule stands.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from agent.permissions.verdicts import Decision, Scope


class RuleError(ValueError):
    """A rule that cannot be read; the text says which and why."""


@dataclass(frozen=True)
class Rule:
    """One rule: `tool` is bash, outside, read, edit, fetch, mcp or another tool's name; `pattern` "*" is every call."""

    decision: Decision
    tool: str
    pattern: str = "*"
    scope: Scope = "user"

    def __str__(self) -> str:
        return self.tool if self.pattern == "*" else f"{self.tool}({self.pattern})"


_FORM = re.compile(r"([\w*-]+(?:/[\w*-]+)?)\s*(?:\((.*)\))?", re.DOTALL)
_ALIASES = {
    "shell": "bash", "write": "edit", "multiedit": "edit", "notebookedit": "edit", "apply_patch": "edit",
    "grep": "read", "glob": "read", "ls": "read", "webfetch": "fetch", "web_fetch": "fetch",
}  # fmt: skip


def parse_rule(text: str, decision: Decision = "allow", scope: Scope = "user") -> Rule:
    """The rule a person wrote. Raises RuleError.

    The spellings of other agents are understood where they mean the same: `Bash(npm test:*)`, `Write(src/**)`,
    `WebFetch(domain:example.org)`, `mcp__server__tool`.
    """
    text = text.strip()
    if text == "*":
        return Rule(decision, "*", "*", scope)
    if text.lower().startswith("mcp__"):
        return Rule(decision, "mcp", mcp_name(text), scope)
    form = _FORM.fullmatch(text)
    if form is None:
        raise RuleError(f"{text!r} is not a rule; a rule looks like bash(git log *) or edit(src/**)")
    tool = form[1].lower()
    tool = _ALIASES.get(tool, tool)
    pattern = (form[2] if form[2] is not None else "*").strip()
    if not pattern:
        raise RuleError(f"{text!r} has nothing between its brackets; write {tool} alone to mean every call")
    if tool == "fetch":
        pattern = _host_pattern(pattern, text)
    if tool in ("bash", "outside") and pattern.endswith(":*"):
        pattern = pattern[:-2].rstrip() + " *"
    return Rule(decision, tool, pattern, scope)


def _host_pattern(pattern: str, text: str) -> str:
    host = re.fullmatch(r"(?:https?://)?([^/]+)(?:/\**)?", pattern.removeprefix("domain:").lower())
    if host is None:
        raise RuleError(f"{text!r} speaks of more than a host; a rule for fetch looks like fetch(example.org)")
    return host[1]


def mcp_name(tool: str) -> str:
    """`mcp__server__tool` as server/tool."""
    server, _, name = tool[5:].partition("__")
    return f"{server}/{name or '*'}"


def words_match(pattern: str, words: Sequence[str], *, whole: bool) -> bool:
    """Whether a bash pattern fits the words of a simple command. `whole`: a pattern without final `*` has to name all
    of them (allow); otherwise it only has to name the first ones (ask, deny)."""
    wanted = split_words(pattern)
    rest = bool(wanted) and wanted[-1] == "*"
    if rest:
        wanted.pop()
    if len(words) < len(wanted) or (whole and not rest and len(words) != len(wanted)):
        return False
    if whole and any("*" in w and _climbs(word) for w, word in zip(wanted, words, strict=False)):
        return False
    return all(word_fits(w, word) for w, word in zip(wanted, words, strict=False))


def _climbs(word: str) -> bool:
    """Whether a word leads out of the folder that a pattern names: `/tmp/x/../../etc` is not below /tmp/x."""
    return ".." in word.split("/") and "/" in word


def spans(pattern: str, words: Sequence[str]) -> bool:
    """Whether a pattern with a `*` before its end fits a command where the `*` may stand for several words."""
    found = _spanning(pattern)
    return found is not None and found.fullmatch(" ".join(words)) is not None


@lru_cache(maxsize=512)
def _spanning(pattern: str) -> re.Pattern[str] | None:
    wanted = split_words(pattern)
    if wanted and wanted[-1] == "*":
        wanted.pop()
    if not any("*" in w for w in wanted):
        return None
    return re.compile(" ".join(re.escape(w).replace(r"\*", ".*") for w in wanted) + "(?: .*)?", re.DOTALL)


@lru_cache(maxsize=512)
def _split(pattern: str) -> tuple[str, ...]:
    try:
        found = shlex.split(pattern)
    except ValueError:
        found = pattern.split()
    # The words of a command have their ~ expanded as well.
    return tuple(os.path.expanduser(w) if w.startswith("~/") else w for w in found)


def split_words(pattern: str) -> list[str]:
    """The words of a bash pattern; quotes hold words together."""
    return list(_split(pattern))


def word_fits(pattern: str, word: str) -> bool:
    """Whether one word of a pattern fits one word of a command; only * is special in it."""
    if "*" not in pattern:
        return pattern == word
    return fnmatchcase(word, pattern.replace("[", "[[]").replace("?", "[?]"))


def path_matches(pattern: str, path: str, root: str, *, anywhere: bool = False) -> bool:
    """Whether a path pattern fits an absolute path. A pattern that fits a folder fits everything below it. `anywhere`:
    src/** and ./src are meant at every depth, as src is (for a rule that forbids)."""
    if pattern == "*":
        return True
    anchored = not anywhere and "/" in pattern.rstrip("/")
    pattern = pattern.removesuffix("/**") or "/"
    if pattern.startswith("~"):
        pattern = os.path.expanduser(pattern)
    if ".." in pattern.split("/"):
        pattern = os.path.normpath(os.path.join(root, pattern))
    if pattern.startswith("/"):
        pattern = "/" + pattern.strip("/")
        if pattern == "/":
            return True
        return _path_regex(pattern).fullmatch(path) is not None
    if path != root and not path.startswith(root.rstrip("/") + "/"):
        return False
    inside = path[len(root.rstrip("/")) + 1 :]
    pattern = pattern.removeprefix("./").rstrip("/")
    depth = "" if anchored or "/" in pattern else "**/"
    return _path_regex(depth + pattern).fullmatch(inside) is not None


@lru_cache(maxsize=512)
def _path_regex(pattern: str) -> re.Pattern[str]:
    out: list[str] = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern):
        out.append(_PIECES.get(piece) or re.escape(piece))
    return re.compile("".join(out) + "(?:/.*)?", re.DOTALL)


_PIECES = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def name_matches(pattern: str, name: str) -> bool:
    """Whether an mcp pattern fits server/tool; a server alone means all its tools."""
    return word_fits(pattern if "/" in pattern or pattern == "*" else f"{pattern}/*", name)


def strongest(rules: Iterable[Rule]) -> Rule | None:
    """The rule that decides among those that fit: deny, else ask, else allow."""
    order = {"deny": 0, "ask": 1, "allow": 2}
    return min(rules, key=lambda r: order[r.decision], default=None)
