"""A second reader of command lines, for the lines that may run unasked.

It knows only the plainest form: words, quotes, `&&` `||` `;` `|` `&`, input redirections, and output to /dev/null or
to another descriptor. Whatever else it meets - an expansion, a substitution, a group, a second line - it refuses. A
line counts as harmless only where this reader and the grammar agree on every word of it, so that no difference between
a parser and bash can turn one command into another.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from unicodedata import normalize

from agent.permissions.shell.model import names


class NotPlain(Exception):
    """The line has more than the plain form; the text says what."""


@dataclass
class PlainCommand:
    """The words of one command as bash would see them; assignments stand among the words."""

    words: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)


_OPERATORS = (
    "&&",
    "||",
    "|&",
    "&>>",
    "&>",
    ";;",
    "<<<",
    "<<",
    "<>",
    "<&",
    "<",
    ">>",
    ">|",
    ">&",
    ">",
    "|",
    "&",
    ";",
    "\n",
)
_REDIRECTS = frozenset({"<", ">", ">>", ">&", "&>", "&>>", "<<<", "<&"})
_SEPARATORS = frozenset({"&&", "||", "|", "|&", ";", "&", "\n"})
_KEYWORDS = names(
    """
    if then elif else fi for while until do done case esac in function select coproc { } [[ ]] !
    """
)
_EXPANDS = re.compile(r"\$[A-Za-z0-9_{(\['\"?!#@*$-]")
_LITERAL_BRACES = re.compile(r"\{[\w:/-]*\}")
"""Braces without a comma or two dots, which bash leaves as they are."""
_LOOKS_SPECIAL = re.compile(r"[\s\\'\"$`|&;<>(){}#~*?\[\]!]")
_PLAIN_RUN = re.compile(r"[^\s\\'\"$`|&;<>(){}#~*?\[\]!]+")
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
"""Characters that are not seen: controls, marks of direction and width, fillers, tags."""
_CONTROL = re.compile(
    # A variant selector after an emoji is no trick; after ASCII it is one.
    rf"[{_INVISIBLE}\x0b-\x0d\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|(?<![^\x00-\x7f])[\ufe0e\ufe0f]"
)
_NOT_SEEN = re.compile(rf"[{_INVISIBLE}\ufe0e\ufe0f]")


def as_shown(command: str) -> str:
    """A line as a person sees it: without what is not seen, and letters that look like ASCII as ASCII."""
    return command if command.isascii() and command.isprintable() else normalize("NFKC", _NOT_SEEN.sub("", command))


def odd_character(command: str) -> str:
    """A character that a terminal hides or that shells read differently, as its code; "" where there is none."""
    found = _CONTROL.search(command)
    return f"U+{ord(found[0]):04X}" if found else ""


def read(command: str) -> list[PlainCommand]:
    """The commands of a plain line. Raises NotPlain."""
    if odd_character(command):
        raise NotPlain(f"it has the character {odd_character(command)}")
    return _Reader(command).run()


@dataclass
class _Reader:
    text: str
    at: int = 0
    word: str | None = None
    quoted: bool = False
    tilde: bool = False
    waiting: str = ""
    commands: list[PlainCommand] = field(default_factory=lambda: [PlainCommand()])
    ended_line: bool = False
    left_running: bool = False

    def run(self) -> list[PlainCommand]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_word()
        if self.waiting:
            raise NotPlain("a redirection has no target")
        if self.commands[-1] == PlainCommand():
            self.commands.pop()
            if self.left_running:
                raise NotPlain("it leaves a process running")
        return self.commands

    def _step(self, c: str) -> None:
        if c == "\t":
            raise NotPlain("it has a tab, which may move the rest out of sight")
        if c == " ":
            self._end_word()
            self.at += 1
        elif c == "#" and self.word is None:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif c == "'":
            self._single()
        elif c == '"':
            self._double()
        elif c == "\\":
            self._escape()
        elif c in "|&;<>\n":
            self._operator()
        elif c in "$`(){}":
            self._special(c)
        else:
            self._run()

    def _add(self, text: str, quoted: bool = False) -> None:
        if self.ended_line:
            raise NotPlain("it has several lines")
        self.word = (self.word or "") + text
        self.quoted = self.quoted or quoted

    def _run(self) -> None:
        found = _PLAIN_RUN.match(self.text, self.at)
        text = found[0] if found else self.text[self.at]
        if text == "~":
            self._tilde()
        if not text.isascii() and _LOOKS_SPECIAL.search(normalize("NFKC", text)):
            raise NotPlain("it has a letter that looks like a sign of the shell")
        self._add(text)
        self.at += len(text)

    def _tilde(self) -> None:
        """Only ~ and ~/ at the beginning of a word are known; ~user, ~+, and those after = or : are not."""
        following = self.text[self.at + 1 : self.at + 2]
        if self.word is None and following and following not in "/ \t\n;&|<>":
            raise NotPlain("it has an unusual ~")
        if self.word is not None and self.word.endswith(("=", ":")):
            raise NotPlain("it has an unusual ~")
        self.tilde = self.tilde or self.word is None

    def _special(self, c: str) -> None:
        if c == "$" and not _EXPANDS.match(self.text, self.at):
            self._add(c)
            self.at += 1
        elif (
            c == "{"
            and (found := _LITERAL_BRACES.match(self.text, self.at))
            and (found[0] == "{}" or self._after_sign())
        ):
            self._add(found[0])
            self.at = found.end()
        else:
            raise NotPlain(f"it has an unquoted {c}")

    def _after_sign(self) -> bool:
        """Whether braces stand as in stash@{0} and HEAD^{tree}."""
        return self.word is not None and self.text[self.at - 1] in "@^"

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotPlain("a quote is not closed")
        self._add(self.text[self.at + 1 : end], quoted=True)
        self.at = end + 1

    def _double(self) -> None:
        found = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(self.text, self.at)
        if found is None:
            raise NotPlain("a quote is not closed")
        inside = re.sub(r"\\.", "", found[1], flags=re.DOTALL)
        if "`" in inside or _EXPANDS.search(inside + "."):
            raise NotPlain("it has an expansion in quotes")
        value = re.sub(r'\\([\\"$`\n])', lambda m: "" if m[1] == "\n" else m[1], found[1])
        self._add(value, quoted=True)
        self.at = found.end()

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            raise NotPlain("it ends with a backslash")
        if following != "\n":
            self._add(following, quoted=True)
        self.at += 2

    def _operator(self) -> None:
        operator = next(o for o in _OPERATORS if self.text.startswith(o, self.at))
        number = self.word if self.word and self.word.isdigit() and not self.quoted and operator[0] in "<>" else None
        if number is not None:
            self.word = None
        self._end_word()
        self.at += len(operator)
        if operator in _REDIRECTS:
            if self.waiting or self.ended_line:
                raise NotPlain("a redirection has no target")
            self.waiting = operator
        elif operator not in _SEPARATORS:
            raise NotPlain(f"it has a {operator}")
        else:
            self._separate(operator)

    def _separate(self, operator: str) -> None:
        if self.waiting:
            raise NotPlain("a redirection has no target")
        empty = self.commands[-1] == PlainCommand()
        if operator == "\n":
            # A line break after an operator or before the first word joins; after a command it ends the one line.
            self.ended_line = self.ended_line or not empty
        elif empty or self.ended_line:
            raise NotPlain(f"it has a {operator} in an odd place")
        if operator != "\n":
            self.commands.append(PlainCommand())
            self.left_running = operator == "&"

    def _end_word(self) -> None:
        if self.word is None:
            return
        command, word = self.commands[-1], os.path.expanduser(self.word) if self.tilde else self.word
        if self.waiting:
            command.redirects.append((self.waiting, word))
        else:
            if not self.quoted and word in _KEYWORDS and not command.words:
                raise NotPlain(f"it has the keyword {word}")
            command.words.append(word)
        self.word, self.quoted, self.tilde, self.waiting = None, False, False, ""
