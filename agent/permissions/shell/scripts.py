"""The small languages inside commands: which sed scripts and awk programs only transform text."""

from __future__ import annotations

import re

_SED_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\.|\[[^\]/\n]+\])*/[IM]?)")
_SED_RANGE = re.compile(r"\s*,\s*(?:[+~]?\d+|\$|/(?:[^/\\\n\[]|\\.|\[[^\]/\n]+\])*/[IM]?)")
_SED_SIMPLE = re.compile(r"[pdqQnNDhHgGxlP=]\s*\d*")
_SED_FLAGS = re.compile(r"[gpiIMm0-9]*")


def why_not_sed(script: str) -> str:
    """Why a sed script may do more than print; "" where it only prints.

    Understood are addresses, s and y, blocks, and the commands that print, delete, keep and quit. So the commands and
    flags that write a file (w), read one (r) or run a program (e) are refused, as is everything else.
    """
    at, depth = 0, 0
    while True:
        at = _skip(script, at)
        if at >= len(script):
            return "" if depth == 0 else "a block of the sed script is not closed"
        if script[at] == "}":
            at, depth = at + 1, depth - 1
            continue
        at = _skip_address(script, at)
        if script[at : at + 1] == "{":
            at, depth = at + 1, depth + 1
            continue
        end = _sed_command(script, at)
        if end is None or not _sed_ends(script, end):
            return f"the sed script does more than print: {script[at : at + 20]!r}"
        at = end


def _skip(script: str, at: int) -> int:
    while at < len(script) and script[at] in " \t\n;":
        at += 1
    return at


def _skip_address(script: str, at: int) -> int:
    first = _SED_ADDRESS.match(script, at)
    if first:
        at = first.end()
        second = _SED_RANGE.match(script, at)
        at = second.end() if second else at
    while at < len(script) and script[at] in " \t!":
        at += 1
    return at


def _sed_ends(script: str, at: int) -> bool:
    while at < len(script) and script[at] in " \t":
        at += 1
    return at >= len(script) or script[at] in ";\n}"


def _sed_command(script: str, at: int) -> int | None:
    """Where a command that only prints ends; None where it is another one."""
    letter = script[at : at + 1]
    if letter in ("s", "y"):
        return _sed_substitute(script, at, letter)
    found = _SED_SIMPLE.match(script, at)
    return found.end() if found else None


def _sed_substitute(script: str, at: int, letter: str) -> int | None:
    mark = script[at + 1 : at + 2]
    if not mark or mark in "\\\n" or mark.isalnum() or mark.isspace():
        return None
    ends: list[int] = []
    index, bracket = at + 2, False
    while index < len(script) and len(ends) < 2:
        c = script[index]
        if c == "\\":
            index += 1
        elif c == mark:
            # Implementations differ on whether a bracket hides the mark.
            if bracket:
                return None
            ends.append(index)
        elif not ends and c in "[]":
            bracket = c == "[" or (bracket and script[index - 1] == "[")
        index += 1
    if len(ends) < 2:
        return None
    flags = _SED_FLAGS.match(script, index) if letter == "s" else None
    return flags.end() if flags else index


_AWK_WORDS = re.compile(r"\b(?:system|getline|close|fflush|ENVIRON|PROCINFO|ARGV|ARGC|SYMTAB|FUNCTAB|extension)\b")


def why_not_awk(program: str) -> str:
    """Why an awk program may do more than print; "" where it only prints.

    Little is parsed: a word that could write, run or read elsewhere is refused wherever it stands, also inside a text;
    a sign only outside of texts, where it is certain what a text is.
    """
    found = _AWK_WORDS.search(program)
    if found:
        return f"the awk program has {found[0]}"
    code = program if any(c in program for c in "/#") else re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', program)
    if "@" in code or "|" in code.replace("||", ""):
        return "the awk program may run a program"
    if re.search(r">(?!=)", program) and not _compares(program):
        return "the awk program may write a file"
    return ""


def _compares(program: str) -> bool:
    """Whether every > compares: outside of blocks, where nothing prints, or in round brackets."""
    if "{" not in program:
        return True
    if any(c in program for c in "/#\\"):
        return False  # a pattern or a comment could hold brackets
    texts = program.count('"')
    program = re.sub(r'"[^"]*"', "", program)
    if texts and ('"' in program or "(" in program.partition("{")[2]):
        return False
    blocks = rounds = 0
    for c in program:
        blocks += (c == "{") - (c == "}")
        rounds += (c == "(") - (c == ")")
        if c == ">" and blocks > 0 and rounds <= 0:
            return False
    return True
