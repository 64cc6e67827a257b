"""The value of one word, from its place in the syntax tree."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from agent.permissions.shell.model import Word

if TYPE_CHECKING:
    from tree_sitter import Node

_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)")
_ANSI = re.compile(
    r"\\(?:(?P<one>[abeEfnrtv\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})"
    r"|u(?P<u4>[0-9a-fA-F]{1,4})|U(?P<u8>[0-9a-fA-F]{1,8})|c(?P<control>.))",
    re.DOTALL,
)
_ANSI_ONE = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


def source(node: Node) -> str:
    """The text of a node as it was written."""
    return (node.text or b"").decode("utf-8", "replace")


def read(node: Node) -> Word:
    """The word a node stands for; not `known` where the shell would expand something."""
    pieces: list[Word] = []
    end = node.start_byte
    for leaf in node.children if node.type == "concatenation" else [node]:
        # A gap inside a word would be text that the parser has passed over.
        known = leaf.start_byte == end
        piece = _piece(leaf)
        pieces.append(piece if known else Word(piece.text, known=False))
        end = leaf.end_byte
    return _join(pieces, source(node))


def _join(pieces: list[Word], written: str) -> Word:
    unquoted = "".join(p.text for p in pieces if p.bare)
    if not all(p.known for p in pieces) or _BRACES.search(unquoted):
        return Word(written, known=False, bare=False)
    text = "".join(p.text for p in pieces)
    bare = all(p.bare for p in pieces)
    if text.startswith("~") and pieces[0].bare and "\0" not in text:
        text = os.path.expanduser(text)
    return Word(text, glob=any(p.glob for p in pieces), bare=bare)


def _piece(node: Node) -> Word:
    text = source(node)
    kind = node.type
    if kind in ("word", "number", "variable_name", "file_descriptor") or not node.is_named:
        return _plain(text)
    if kind == "command_name":
        return read(node.children[0]) if len(node.children) == 1 else Word(text, known=False, bare=False)
    if kind == "raw_string":
        return Word(text[1:-1], bare=False)
    if kind == "string":
        return _string(node, text)
    if kind == "ansi_c_string":
        return Word(_ansi(text[2:-1]), bare=False)
    if kind == "concatenation":
        return read(node)
    return Word(text, known=False, bare=False)


def _plain(text: str) -> Word:
    if "\\" not in text:
        return Word(text, known="$" not in text and "`" not in text, glob=any(c in text for c in "*?["))
    value = re.sub(r"\\(\n|.)", lambda m: "" if m[1] == "\n" else m[1], text, flags=re.DOTALL)
    unescaped = re.sub(r"\\.", "", text, flags=re.DOTALL)
    known = "$" not in unescaped and "`" not in unescaped
    return Word(value, known=known, glob=any(c in unescaped for c in "*?["), bare=False)


def _string(node: Node, text: str) -> Word:
    if any(c.is_named and c.type != "string_content" for c in node.children):
        return Word(text, known=False, bare=False)
    value = re.sub(r'\\([\\"$`\n])', lambda m: "" if m[1] == "\n" else m[1], text[1:-1])
    return Word(value, bare=False)


def _ansi(text: str) -> str:
    def value(found: re.Match[str]) -> str:
        if found["one"]:
            return _ANSI_ONE.get(found["one"], found["one"])
        if found["control"]:
            return chr(ord(found["control"]) & 0x1F)
        if found["octal"]:
            return chr(int(found["octal"], 8) & 0xFF)
        number = int(found["hex"] or found["u4"] or found["u8"], 16)
        return chr(number) if number < 0x110000 else ""

    # Bash ends the text at a NUL.
    return _ANSI.sub(value, text).split("\0", 1)[0]
