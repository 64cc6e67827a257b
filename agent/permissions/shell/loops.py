"""Loops over words that stand in the line: `for f in a b; do cat "$f"; done` is `cat a; cat b`.

The loop is written out, and what came of it is read as any other line. Nothing is guessed: a loop that is not of the
plainest form is left as it is, and a pattern stays a pattern.
"""

from __future__ import annotations

import re

_LOOP = re.compile(
    r"(?P<before>(?:[^'\"\\`$#\n]*(?:&&|\|\||;))?\s*)for[ ]+(?P<name>[a-z][a-z0-9_]*)[ ]+in[ ]+(?P<values>[^;\n]+?)[ ]*"
    r"[;\n]\s*do\s(?P<body>.+?)\s*[;\n]\s*done(?P<after>\s*(?:(?:\||&&|;)[^\n]*)?)\s*",
    re.DOTALL,
)
_VALUE = re.compile(
    r"(?:(?P<range>\{(?P<first>\d{1,4})\.\.(?P<last>\d{1,4})\})|[\w./+@%:,*?-]+|'[^']*'|\"[^\"$`\\!]*\")(?= |$)"
)
_NESTED = re.compile(
    r"(?<![\w./-])(?:for|while|until|if|then|else|elif|fi|case|esac|select|do|done|function|in)(?![\w./-])"
)
MAX_VALUES = 100
MAX_LENGTH = 100_000
"""Characters of a loop that is written out; a longer one is left as it is."""


def written_out(line: str) -> str:
    """The line with its one loop written out; "" where it has none of the plain form."""
    found = _LOOP.fullmatch(line) if "for " in line else None
    if found is None:
        return ""
    values, body, name = _values(found["values"]), found["body"], found["name"]
    unquoted = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", "''", body)
    if not values or _NESTED.search(unquoted) or "#" in unquoted or re.search(rf"(?<![\w$-]){name}\+?=", body):
        return ""
    rounds = [_with_value(body, name, value) for value in values]
    whole = f"{found['before']}{'; '.join(rounds)}{found['after']}"
    return whole if all(rounds) and len(whole) < MAX_LENGTH else ""


def _values(text: str) -> list[str]:
    """The words of the list as they are written, ranges as numbers; empty where one is of another form."""
    values: list[str] = []
    at = 0
    while at < len(text) and len(values) <= MAX_VALUES:
        found = _VALUE.match(text, at)
        if found is None:
            return []
        if found["range"]:
            first, last = int(found["first"]), int(found["last"])
            step = 1 if last >= first else -1
            values += [str(n) for n in range(first, last + step, step)]
        else:
            values.append(found[0])
        at = found.end()
        while text[at : at + 1] == " ":
            at += 1
    return values if len(values) <= MAX_VALUES else []


def _with_value(body: str, name: str, value: str) -> str:
    """The body for one value; "" where the variable stands where its value could fall into several words."""
    plain = re.fullmatch(r"[\w./+@%:,-]+", value) is not None
    variable = re.compile(rf"\$(?:{name}(?!\w)|\{{{name}\}})")
    out: list[str] = []
    at, quote = 0, ""
    while at < len(body):
        c = body[at]
        used = variable.match(body, at) if quote != "'" else None
        if used:
            if not quote and not plain:
                return ""
            out.append(f'"{value}"' if quote else value)
            at = used.end()
        elif c == "\\" and quote != "'":
            if at + 1 == len(body):
                return ""
            out.append(body[at : at + 2])
            at += 2
        else:
            quote = "" if c == quote else c if not quote and c in "'\"" else quote
            if c == "\n" and not quote:
                c = " " if out and "".join(out).rstrip(" ").endswith(";") else "; "
            out.append(c)
            at += 1
    whole = "".join(out).strip()
    # A body that ends inside of quotes was cut at a `done` of a text, and `;; done` is none.
    return "" if quote or whole.endswith((";", "&", "|")) else whole
