"""What a command line is made of, as far as it can be known without running it."""

from __future__ import annotations

from dataclasses import dataclass, replace


def names(text: str) -> frozenset[str]:
    """The words of a text as a set; how the tables of programs are written down."""
    return frozenset(text.split())


TEXT_NUMBERS = 1_000_000
"""Numbers of parts that are kept for each text that a part runs."""


@dataclass(frozen=True)
class Word:
    """One word. `known` False: the shell makes (part of) it at run time, and `text` is what stands in the source.
    `glob`: it has unquoted * ? or [ and stands for file names. `bare`: nothing in it was quoted or escaped."""

    text: str
    known: bool = True
    glob: bool = False
    bare: bool = True


@dataclass(frozen=True)
class Redirect:
    """`op` without the descriptor: < > >> >| <> >& <& &> &>> <<<."""

    op: str
    target: Word


@dataclass(frozen=True)
class Stage:
    """A place in a pipeline: which one, and how far down."""

    pipe: int
    index: int


@dataclass(frozen=True)
class Part:
    """One simple command of a line.

    `env` are the assignments before it, `redirects` what follows it. `folders` are the folders it may run in, relative
    to where the line starts; None where that cannot be known. `owner` is the number of the part in whose substitution
    it stands (-1: none), `stages` its places in pipelines. `script`: shell text it is handed on its standard input.
    `via` says how it is reached where another program runs it (xargs, sh -c ...). `transparent`: it does nothing itself
    but run the parts that came out of it.
    """

    text: str
    words: tuple[Word, ...] = ()
    env: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    folders: tuple[str | None, ...] = ("",)
    number: int = 0
    owner: int = -1
    stages: tuple[Stage, ...] = ()
    script: Word | None = None
    via: str = ""
    transparent: bool = False

    @property
    def program(self) -> str:
        """The name of the program without its folder; "" where it is not known."""
        return self.words[0].text.rsplit("/", 1)[-1] if self.words and self.words[0].known else ""

    @property
    def opaque(self) -> bool:
        """Whether the program itself is chosen at run time."""
        return bool(self.words) and (not self.words[0].known or self.words[0].glob)

    @property
    def args(self) -> tuple[Word, ...]:
        """The words after the program."""
        return self.words[1:]

    def with_words(self, words: tuple[Word, ...], via: str) -> Part:
        """The part that this one runs."""
        shown = " ".join(w.text for w in words)
        return replace(self, text=shown, words=words, redirects=(), script=None, via=via, transparent=False)


def runs_as_text(part: Part, other: Part) -> bool:
    """Whether a part that belongs to another one is a piece of a text which that one runs, and not a substitution in
    its words."""
    return other.owner == part.number and other.number >= (part.number + 1) * TEXT_NUMBERS
