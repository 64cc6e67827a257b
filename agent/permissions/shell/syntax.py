"""From the text of a command line to its simple commands, by the grammar of bash.

The walk takes nothing for granted: every command found anywhere in the tree becomes a part, also those in
substitutions, conditions, loops and function bodies. It keeps its own stack, so the depth of the text does not matter.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from agent.permissions.shell import words
from agent.permissions.shell.model import Part, Redirect, Stage, Word

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

MAX_FOLDERS = 8
"""Folders one line may move through before the place counts as unknown."""

_OWN_SHELL = frozenset({"subshell", "command_substitution", "process_substitution"})
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
_CHAINS = frozenset({"list", "pipeline", "negated_command"})
_ONE_LINE = frozenset({"command", "file_redirect"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})


@dataclass
class _Place:
    """The folders the shell may be in; shared by what runs one after the other in one shell."""

    folders: tuple[str | None, ...] = ("",)

    def move(self, target: Word | None) -> None:
        if target is None or not target.known or target.glob or target.text == "-":
            self.folders = (None,)
            return
        moved = [None if f is None else os.path.normpath(os.path.join(f, target.text)) for f in self.folders]
        self.folders = tuple(dict.fromkeys([*self.folders, *moved]))
        if len(self.folders) > MAX_FOLDERS:
            self.folders = (None,)


@dataclass(frozen=True)
class _Context:
    place: _Place
    owner: int = -1
    stages: tuple[Stage, ...] = ()
    redirects: tuple[Node, ...] = ()


@dataclass
class _Walk:
    parts: list[Part] = field(default_factory=list)
    pipes: int = 0
    breaks: list[int] = field(default_factory=list)
    passed_over: bool = False
    """Whether the grammar has left out text in the middle of a word: it does so with an empty substitution."""
    stack: list[tuple[Node, _Context]] = field(default_factory=list)
    numbers: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)

    def run(self, root: Node, start: _Context) -> None:
        self.stack.append((root, start))
        while self.stack:
            node, context = self.stack.pop()
            if node.type == "concatenation":
                gaps = zip(node.children, node.children[1:])
                self.passed_over = self.passed_over or any(a.end_byte != b.start_byte for a, b in gaps)
            if node.type in _ONE_LINE:
                self.breaks += _line_breaks(node)
            handler = _HANDLERS.get(node.type, _Walk.descend)
            handler(self, node, context)

    def push(self, nodes: list[Node], context: _Context) -> None:
        self.stack += [(n, context) for n in reversed(nodes)]

    def descend(self, node: Node, context: _Context) -> None:
        if node.type in _OWN_SHELL:
            context = replace(context, place=_Place(context.place.folders), redirects=())
        self.push(node.named_children, context)

    def pipeline(self, node: Node, context: _Context) -> None:
        self.pipes += 1
        for index, child in reversed(list(enumerate(node.named_children))):
            inner = replace(
                context,
                place=_Place(context.place.folders),
                stages=(*context.stages, Stage(self.pipes, index)),
                redirects=context.redirects if child == node.named_children[-1] else (),
            )
            self.stack.append((child, inner))

    def chain(self, node: Node, context: _Context) -> None:
        *first, last = node.named_children
        self.push([last], context)
        self.push(first, replace(context, redirects=()))

    def redirected(self, node: Node, context: _Context) -> None:
        body = [n for n in node.named_children if n.type not in _REDIRECTS]
        redirects = _flat([n for n in node.named_children if n.type in _REDIRECTS])
        piped = any(c.type == "pipeline" for r in redirects for c in r.named_children)
        if piped:
            # In `cat <<E | sh` the grammar keeps the rest of the pipeline below the here-document.
            self.pipes += 1
        place = context if not piped else replace(context, stages=(*context.stages, Stage(self.pipes, 0)))
        if len(body) == 1 and _last_command(body[0]):
            self.push(body, replace(place, redirects=(*context.redirects, *redirects)))
        else:
            # It belongs to a group or stands alone: it counts as a part of its own. In `<a <b rm x >c` the grammar
            # finds no command at all.
            extra = [words.read(word) for r in redirects for word in _extra_words(r)]
            assigned = list(itertools.takewhile(lambda w: w.known and _ASSIGNS.match(w.text), extra))
            env = tuple((name, Word(value)) for name, _, value in (w.text.partition("=") for w in assigned))
            self._add(node, place, tuple(extra[len(assigned) :]), env, redirects)
            self.push(body, place)
        rest = context if not piped else replace(context, stages=(*context.stages, Stage(self.pipes, 1)))
        self.push([c for r in redirects for c in r.named_children], rest)

    def command(self, node: Node, context: _Context) -> None:
        env: list[tuple[str, Word]] = []
        found: list[Word] = []
        redirects = list(context.redirects)
        for child in node.named_children:
            if child.type == "variable_assignment":
                env.append(_assignment(child))
            elif child.type in _REDIRECTS:
                redirects.append(child)
            else:
                found.append(words.read(child))
        # In `rm 2>&1 -rf a` the grammar counts the words after a redirection as more of its targets.
        extra = [words.read(word) for r in redirects for word in _extra_words(r)]
        part = self._add(node, context, (*found, *extra), tuple(env), redirects)
        if extra:
            self.parts[-1] = replace(part, text=" ".join([part.text, *(w.text for w in extra)]))
        if part.program in ("cd", "pushd", "popd"):
            target = next((w for w in part.args if not (w.known and w.text.startswith("-") and len(w.text) > 1)), None)
            context.place.move(target if part.program != "popd" else None)
        inner = _Context(_Place(context.place.folders), part.number, context.stages)
        self.push(node.named_children, inner)

    def test(self, node: Node, context: _Context) -> None:
        if node.children and node.children[0].type == "[":
            self._add(node, context, tuple(_test_words(node)), (), list(context.redirects))
        self.push(node.named_children, replace(context, redirects=()))

    def assignment(self, node: Node, context: _Context) -> None:
        if node.parent is None or node.parent.type != "command":
            self._add(node, context, (), (_assignment(node),), [])
        self.push(node.named_children, context)

    def declaration(self, node: Node, context: _Context) -> None:
        keyword = words.source(node).split(None, 1)[0]
        found = [Word(keyword)] + [
            Word(words.source(c), known=c.type in ("word", "variable_name")) for c in node.named_children
        ]
        env = tuple(_assignment(c) for c in node.named_children if c.type == "variable_assignment")
        part = self._add(node, context, tuple(found), env, [])
        inner = replace(context, owner=part.number)
        self.push([c for n in node.named_children for c in n.named_children], inner)

    def _add(
        self,
        node: Node,
        context: _Context,
        found: tuple[Word, ...],
        env: tuple[tuple[str, Word], ...],
        redirects: list[Node],
    ) -> Part:
        part = Part(
            text=words.source(node),
            words=found,
            env=env,
            redirects=tuple(r for n in redirects if (r := _redirect(n)) is not None),
            folders=context.place.folders,
            number=self.numbers(),
            owner=context.owner,
            stages=context.stages,
            script=next((s for n in redirects if (s := _script(n)) is not None), None),
        )
        self.parts.append(part)
        return part


def _line_breaks(node: Node) -> list[int]:
    """Where a line ends in the middle of what the grammar takes for one command: in `a | b | c`, a line break and
    `rm x >y` the words of the second line are taken for arguments of c."""
    text, start = node.text or b"", node.start_byte
    if b"\n" not in text:
        return []
    gaps = [(a, b) for a, b in zip(node.children, node.children[1:]) if "heredoc" not in a.type + b.type]
    found = [(a, _LINE_END.search(text, a.end_byte - start, b.start_byte - start)) for a, b in gaps]
    return [start + end.start() for _, end in found if end]


def _last_command(node: Node) -> bool:
    """Whether what stands last is a simple command, which then has what the grammar says of the whole chain: in
    `a | b <<E` the here-document is that of b."""
    while node.type in _CHAINS and node.named_children:
        node = node.named_children[-1]
    return node.type == "command"


_HANDLERS: dict[str, Callable[[_Walk, Node, _Context], None]] = {
    "pipeline": _Walk.pipeline,
    "list": _Walk.chain,
    "negated_command": _Walk.chain,
    "redirected_statement": _Walk.redirected,
    "command": _Walk.command,
    "test_command": _Walk.test,
    "variable_assignment": _Walk.assignment,
    "declaration_command": _Walk.declaration,
    "unset_command": _Walk.declaration,
}


_TEST_GROUPS = frozenset({"test_command", "unary_expression", "binary_expression"})


def _test_words(node: Node) -> list[Word]:
    """The words of `[ ... ]`, which is a command to bash and an expression to the grammar."""
    found: list[Word] = []
    stack = [node]
    while stack:
        leaf = stack.pop()
        if leaf.type in _TEST_GROUPS:
            stack += reversed(leaf.children)
        elif leaf.is_named and leaf.type != "test_operator":
            found.append(words.read(leaf))
        else:
            found.append(Word(words.source(leaf)))
    return found


def _assignment(node: Node) -> tuple[str, Word]:
    name, *rest = node.named_children or [node]
    value = words.read(rest[-1]) if len(rest) == 1 else Word("", known=not rest)
    return words.source(name), value


def _redirect(node: Node) -> Redirect | None:
    if node.type == "heredoc_redirect":
        return None
    operator = next((c.type for c in node.children if not c.is_named), "")
    targets = node.children_by_field_name("destination") or node.named_children[-1:]
    if not targets or targets[0].type == "file_descriptor":
        return Redirect(operator, Word("", known=False))
    return Redirect(operator, words.read(targets[0]))


def _flat(redirects: list[Node]) -> list[Node]:
    """The redirections and those that the grammar keeps below a here-document: `cat <<E > a`."""
    below = [c for r in redirects if r.type == "heredoc_redirect" for c in r.named_children if c.type in _REDIRECTS]
    return [*redirects, *(_flat(below) if below else [])]


def _extra_words(redirect: Node) -> list[Node]:
    """The words of the command that the grammar has put into a redirection."""
    if redirect.type == "file_redirect":
        return redirect.children_by_field_name("destination")[1:]
    return redirect.children_by_field_name("argument") if redirect.type == "heredoc_redirect" else []


def _script(node: Node) -> Word | None:
    if node.type == "herestring_redirect" and node.named_children:
        return words.read(node.named_children[-1])
    if node.type == "heredoc_redirect":
        body = next((c for c in node.named_children if c.type == "heredoc_body"), None)
        if body is not None:
            plain = all(c.type == "heredoc_content" for c in body.named_children)
            return Word(words.source(body), known=plain, bare=False)
    return None


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def _parser() -> Parser:
    """A parser for one line: the grammar's scanner is C and keeps state, which no other line shall meet."""
    import tree_sitter

    return tree_sitter.Parser(_language())


_CRASHES = re.compile(r"\{[\d.]+[^\x00-\xff]|\{[\d.]*[\U00010000-\U0010ffff]")
"""What makes the grammar's scanner read outside of its memory: a brace range that goes on with such a letter."""


_LINE_END = re.compile(rb"(?<!\\)\n")
_MAX_ROUNDS = 4
"""How often a text is read anew after the grammar has overlooked the end of a line."""
_LONG = 10_000
"""Bytes above which a line is first tried for how long it takes."""
_MAX_SECONDS = 3.0


def _read_in_time(text: bytes) -> bool:
    """Whether the grammar comes to an end soon: from text that is no bash it recovers in quadratic time."""
    end = time.monotonic() + _MAX_SECONDS
    try:
        _parser().parse(lambda at, _: text[at : at + 65_536], progress_callback=lambda *_: time.monotonic() > end)
    except ValueError:
        return False
    return True


def parts_of(command: str) -> tuple[list[Part], str]:
    """The simple commands of a line in the order of the text, and what could not be understood ("" where all was)."""
    if _CRASHES.search(command):
        return [], "it has an unusual character in braces"
    text = command.encode("utf-8", "replace")
    if len(text) > _LONG and not _read_in_time(text):
        return [], "it takes too long to read"
    walk, broken = _walked(text)
    for _ in range(_MAX_ROUNDS if walk.breaks else 0):
        ends = sorted(set(walk.breaks))
        text = b";".join(text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True))
        walk, broken = _walked(text)
    return walk.parts, "its syntax cannot be read as bash" if broken or walk.breaks else ""


def _walked(text: bytes) -> tuple[_Walk, bool]:
    """What stands in a text, and whether there is in it what the grammar cannot read."""
    tree = _parser().parse(text)
    walk = _Walk()
    walk.run(tree.root_node, _Context(_Place()))
    return walk, tree.root_node.has_error or walk.passed_over
