"""Reads well-formed command lines without a parser: a tenth of a second of importing and building one is saved.

Whatever is not plainly right (an unknown option, a missing value, a word too many) is left to the parser, which says
what is wrong. A test holds both against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent.cli.table import COMMANDS, Command, Option, find

_CLOSE = 0.75
"""How much of a word and a command's name must be the same (0 to 1) for the word to be taken for a slip."""


def mistyped(argv: Sequence[str]) -> str:
    """What to say where the line begins with a slip of a command's name, and is no prompt of several words; "" else."""
    first, rest = (argv[0], argv[1:]) if argv else ("", argv)
    if not first.isascii() or not first.isalpha() or find(first) or first in ("help", "version"):
        return ""
    if {"-p", "--print"} & set(rest):
        return ""
    import difflib
    import shlex

    names = [c.name for c in COMMANDS if not c.hidden]
    name = next(iter(difflib.get_close_matches(first.lower(), names, 1, _CLOSE)), "")
    command = find(name)
    if command is None or (rest and not rest[0].startswith("-") and rest[0] not in _actions(command)):
        return ""
    options = bool(rest) and rest[0].startswith("-")
    meant = shlex.join(["refold", name, *rest])
    prompt = shlex.join(["refold", *rest, "--", first] if options else ["refold", "--", first, *rest])
    return f"there is no command {first!r}; did you mean `{meant}`? To send it as a prompt: `{prompt}`"


def _actions(command: Command) -> set[str]:
    """The words that a command does different things by, as its help names them."""
    import re

    said = next((a.help for a in command.arguments[:1] if a.name in ("action", "words")), "")
    return set(re.findall(r"[a-z]+", said)) - {"default", "or"}


class Unsure(Exception):
    """The line is not plainly right."""


def values_of(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's options and arguments by name, as the parser gives them; None where it must look."""
    values: dict[str, Any] = {o.name: _default(o) for o in command.options}
    try:
        rest = list(_options(command, list(words), values))
        return {**_arguments(command, rest), **values}
    except (Unsure, ValueError):
        return None


def _default(option: Option) -> Any:
    return {bool: False, list: []}.get(option.kind)


def _options(command: Command, words: list[str], values: dict[str, Any]) -> Iterator[str]:
    """Puts the options into `values`; yields what is none."""
    flags = {flag: o for o in command.options for flag in o.flags}
    while words:
        word = words.pop(0)
        if word == "--":
            yield from words
            return
        if not word.startswith("-") or word == "-":
            yield word
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = flags.get(flag)
        if option is None or (equals and option.kind is bool):
            raise Unsure
        if option.kind is not bool and not equals:
            if not words or words[0].startswith("-"):
                raise Unsure
            value = words.pop(0)
        _put(option, value, values)


def _put(option: Option, value: str, values: dict[str, Any]) -> None:
    if option.kind is bool:
        values[option.name] = True
    elif option.kind is list:
        values[option.name] = [*values[option.name], value]
    elif option.kind is str:
        if option.checked and value not in option.values:
            raise Unsure
        values[option.name] = value
    elif not value.isascii() or not value.replace(".", "", option.kind is float).isdigit():
        raise Unsure
    else:
        values[option.name] = option.kind(value)


def _arguments(command: Command, words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for argument in command.arguments:
        if argument.many:
            values[argument.name], words = words, []
        else:
            values[argument.name] = words.pop(0) if words else ""
    if words:
        raise Unsure
    return values
