"""Reads well-formed command lines without a parser: a tenth of a second of importing and building one is saved.

Whatever is not plainly right (an unknown option, a missing value, a word too many) is left to the parser, which says
what is wrong. A test holds both against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent.cli import Command, Option


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
