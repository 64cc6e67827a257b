"""Cuts an answer that is still being written into what is finished (printed once) and what is not (redrawn).

A paragraph is finished by the blank line after it, a heading by its end of line, a fence by its closing. Long fences
and lists are finished in pieces, so that the live region stays small whatever the model writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

PIECE = 12
"""Lines of a fence or a list after which the finished part of it is printed."""

CONTEXT = 200
"""Lines of a fence that are highlighted again for what comes after them (a string may have begun there)."""

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}#{1,6}([ \t]|$)")
_ITEM = re.compile(r"^([-*+]|\d{1,9}[.)])[ \t]+")
_PARTIAL_FENCE = re.compile(r"(^|\n) {0,3}(`{1,2}|~{1,2}|[`~]{3,}[^\n]*)$")


@dataclass(frozen=True)
class Block:
    """A finished piece. `glued` follows the piece before it without a blank line. For code, `before` is what stands
    above it in the same fence, and `language` the fence's."""

    text: str
    glued: bool = False
    code: bool = False
    language: str = ""
    before: str = ""


class MarkdownStream:
    """Takes an answer piece by piece. `feed` returns what was finished by it, `close` what is left."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._tail = ""
        self._fence = ""
        self._language = ""
        self._shown: list[str] = []
        self._blank = False
        self._glue = False

    def feed(self, text: str) -> list[Block]:
        done: list[Block] = []
        *lines, self._tail = (self._tail + text).split("\n")
        for line in lines:
            done += self._line(line)
        return done

    def close(self) -> list[Block]:
        """The rest, finished or not; the stream is empty afterwards."""
        done = self._line(self._tail) if self._tail else []
        self._tail = ""
        done += self._code_block() if self._fence else self._take(len(self._lines))
        self.__init__()
        return done

    def pending(self) -> Block | None:
        """What is not finished, as it can be shown by now: half a fence mark is not shown as text."""
        if self._fence:
            tail = "" if re.fullmatch(r" {0,3}[`~]*", self._tail) else self._tail
            text = "\n".join([*self._lines, tail] if tail else self._lines)
            return Block(text, self._glue, True, self._language, self._before()) if text else None
        text = "\n".join([*self._lines, self._tail]).rstrip("\n")
        text = _PARTIAL_FENCE.sub("", text)
        return Block(_balanced(text), self._glue) if text.strip() else None

    def _line(self, line: str) -> list[Block]:
        if self._fence:
            return self._in_fence(line)
        if not line.strip():
            self._blank = bool(self._lines)
            if self._lines:
                self._lines.append("")
            return []
        done = self._take(len(self._lines)) if self._blank and not line[0].isspace() else []
        self._blank = False
        opening = _FENCE.match(line)
        if opening and not opening[1] and not self._in_list():
            done += self._take(len(self._lines))
            self._fence, self._language = opening[2], opening[3]
            return done
        return done + self._text_line(line)

    def _text_line(self, line: str) -> list[Block]:
        done: list[Block] = []
        if _HEADING.match(line) and not self._in_list():
            done += self._take(len(self._lines))
            self._lines.append(line)
            return done + self._take(1)
        if _ITEM.match(line) and self._starts_piece(line):
            done += self._take(len(self._lines))
            self._glue = True
        self._lines.append(line)
        return done

    def _in_fence(self, line: str) -> list[Block]:
        if re.fullmatch(rf" {{0,3}}{re.escape(self._fence[0])}{{{len(self._fence)},}}[ \t]*", line):
            done = self._code_block()
            self._fence = self._language = ""
            self._shown = []
            self._glue = False
            return done
        self._lines.append(line)
        if len(self._lines) < PIECE:
            return []
        done = self._code_block()
        self._glue = True
        return done

    def _code_block(self) -> list[Block]:
        if not self._lines:
            return []
        block = Block("\n".join(self._lines), self._glue, True, self._language, self._before())
        self._shown = [*self._shown, *self._lines][-CONTEXT:]
        self._lines = []
        return [block]

    def _before(self) -> str:
        return "".join(f"{line}\n" for line in self._shown)

    def _take(self, count: int) -> list[Block]:
        text = "\n".join(self._lines[:count]).strip("\n")
        del self._lines[:count]
        glue, self._glue, self._blank = self._glue, False, False
        return [Block(text, glue)] if text.strip() else []

    def _starts_piece(self, line: str) -> bool:
        """Whether what stands before this item can be finished: a paragraph, or enough of a long list."""
        if self._in_list():
            return len(self._lines) >= PIECE and self._closed_fences()
        return bool(self._lines) and line[:1] in "-*+1" and self._lines[0][:1] not in ">|"

    def _in_list(self) -> bool:
        return bool(self._lines) and bool(_ITEM.match(self._lines[0]))

    def _closed_fences(self) -> bool:
        return sum(1 for line in self._lines if _FENCE.match(line.strip())) % 2 == 0


def tail_of(block: Block, lines: int, chars: int) -> Block:
    """The end of a block, for a preview that costs the same however long the block is. A table keeps its head."""
    rows = block.text.split("\n")
    head = rows[:2] if rows[0].lstrip().startswith("|") else []
    text = "\n".join([*head, *rows[max(len(head), len(rows) - lines) :]])
    if len(text) > chars:
        cut = text.find(" ", len(text) - chars)
        text = text[cut + 1 :]
    return replace(block, text=text, before="" if len(rows) > lines else block.before)


def _balanced(text: str) -> str:
    """The text with the bold and code marks of its last paragraph closed, so that half a word is not shown raw."""
    last = text.rpartition("\n\n")[2]
    if last.count("`") % 2:
        return f"{text}`" if not text.endswith("`") else text[:-1]
    if last.count("**") % 2:
        return f"{text}**" if not text.endswith("*") else text.rstrip("*")
    return text
