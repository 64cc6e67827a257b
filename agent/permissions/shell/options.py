"""Reading options against a list of those that are known to be harmless; any other option is a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.permissions.shell.model import Word


@dataclass(frozen=True)
class Options:
    """Harmless options of one program: `flags` short letters without a value, `valued` with one, `attached` with one
    that may only be joined (-M90%); `longs` long names (with or without =value), `long_valued` long names that may take
    the next word. `digits`: -5 is a number."""

    flags: str = ""
    valued: str = ""
    longs: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    attached: str = ""
    digits: bool = False


def options(
    flags: str = "",
    valued: str = "",
    longs: str = "",
    long_valued: str = "",
    *,
    attached: str = "",
    digits: bool = False,
) -> Options:
    """Options from words separated by spaces."""
    return Options(flags, valued, frozenset(longs.split()), frozenset(long_valued.split()), attached, digits)


@dataclass(frozen=True)
class Reading:
    """`refused`: the first option that is not known to be harmless. `operands`: the words that are no options.
    `chosen`: the options as they were written, without values."""

    refused: str = ""
    operands: tuple[Word, ...] = ()
    chosen: tuple[str, ...] = ()


def read_options(args: Sequence[Word], known: Options) -> Reading:
    """Splits arguments into options and operands; stops at the first option that is not known."""
    operands: list[Word] = []
    chosen: list[str] = []
    index = 0
    while index < len(args):
        text = args[index].text
        index += 1
        if text == "--":
            operands += args[index:]
            break
        if not text.startswith("-") or text == "-":
            operands.append(args[index - 1])
            continue
        taken = _long(text, known) if text.startswith("--") else _cluster(text, known)
        # A value that looks like an option may be one, for a program that reads the option before it otherwise.
        if taken is None or any(w.text.startswith("-") for w in args[index : index + taken]):
            return Reading(refused=text)
        chosen.append(text.split("=", 1)[0])
        index += taken
    return Reading(operands=tuple(operands), chosen=tuple(chosen))


def _long(text: str, known: Options) -> int | None:
    """How many further words the option takes; None where it is not known. Abbreviations are not known."""
    name, equals, _ = text[2:].partition("=")
    if name in known.long_valued:
        return 0 if equals else 1
    return 0 if name in known.longs else None


def _cluster(text: str, known: Options) -> int | None:
    if known.digits and text[1:].isdigit():
        return 0
    for position, letter in enumerate(text[1:], 1):
        if letter in known.attached:
            return 0
        if letter in known.valued:
            return 0 if position + 1 < len(text) else 1
        if letter not in known.flags:
            return None
    return 0
