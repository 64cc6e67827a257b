"""What a shell command would do, found out without running it."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agent.permissions.shell import continued, danger, hidden, loops, piped, plain, readonly, syntax
from agent.permissions.shell.line import Line
from agent.permissions.shell.model import TEXT_NUMBERS, Part, Word
from agent.permissions.shell.unwrap import SHELLS, unwrap

__all__ = ["Analysis", "Part", "Word", "analyse"]

MAX_DEPTH = 6
"""Commands inside commands (sh -c in xargs in sudo ...) beyond which a line counts as not understood."""
MAX_PARTS = 20_000
"""Parts of one line that are looked at; a longer line counts as not understood."""


@dataclass(frozen=True)
class Analysis:
    """Every simple command of a line, also those that other programs run.

    `error` says why the line could not be understood whole, `unclear` why it may not run unasked whatever its parts
    are. `danger` names what could not be taken back.
    """

    command: str
    parts: tuple[Part, ...] = ()
    error: str = ""
    unclear: str = ""
    danger: str = ""

    @cached_property
    def line(self) -> Line:
        """The parts with how they feed each other."""
        return Line(self.parts)

    @property
    def why_not_safe(self) -> str:
        """Why the line may not run unasked; "" where it is known to read only."""
        if self.error or self.unclear:
            return self.error or self.unclear
        if not self.parts:
            return "it is empty"
        return next((why for p in self.parts if (why := self.why_not(p))), "")

    def why_not(self, part: Part) -> str:
        """Why one part of the line may do more than read; "" where it only reads."""
        return "" if piped.reads_names(part, self.line) else readonly.why_not(part)

    @property
    def loses(self) -> str:
        """What work the line may throw away; "" where none."""
        return next((lost for p in self.parts if (lost := danger.loses(p))), "")


def analyse(command: str) -> Analysis:
    """The parts of a command line and what is known of them. Never raises; runs nothing."""
    analysis = _analyse(command)
    if analysis.unclear and not analysis.error and (plainer := loops.written_out(analysis.command)):
        unrolled = _analyse(plainer)
        if not unrolled.why_not_safe:
            return replace(unrolled, command=analysis.command)
    return analysis


def _analyse(command: str) -> Analysis:
    odd = plain.odd_character(command)
    given, command = command, continued.joined(command)
    found, error = syntax.parts_of(command)
    unclear = _unclear(command, found)
    parts, problem = _all_parts([*found, *_otherwise(given)])
    if odd:
        error = f"it has the character {odd}, which a terminal may hide"
    line = Line(tuple(parts))
    dangerous = danger.of_text(command, parts) or next((d for p in parts if (d := danger.of_part(p, line))), "")
    if not dangerous and (shown := plain.as_shown(command)) != command:
        dangerous = analyse(shown).danger
    if not dangerous and error and (simpler := _simpler(command)) != command:
        dangerous = analyse(simpler).danger
    return Analysis(command, tuple(parts), error or problem, unclear, dangerous)


def _simpler(command: str) -> str:
    """A line that could not be read, with its braces written out and without substitutions that hold nothing."""
    return _NOTHING.sub(" ", _BRACES.sub(lambda m: m[1].replace(",", " "), command))


_NOTHING = re.compile(r"`\s*`|\$\(\s*\)")
_BRACES = re.compile(r"(?<!\$)\{([^{}\s,]*(?:,[^{}\s,]*)+)\}")
"""Words in braces, which bash makes several words of: {rm,-rf,x}."""


def _otherwise(text: str) -> list[Part]:
    """The parts of a text in the other ways in which it may be read."""
    found: list[Part] = []
    for count, reading in enumerate(continued.other_readings(text), 1):
        shift = count * TEXT_NUMBERS // 4
        found += [
            replace(
                p,
                number=p.number + shift,
                owner=p.owner + shift if p.owner >= 0 else p.owner,
                stages=tuple(replace(s, pipe=s.pipe + shift) for s in p.stages),
            )
            for p in syntax.parts_of(reading)[0]
        ]
    return found


def _unclear(command: str, parts: Sequence[Part]) -> str:
    """Why the two readers do not agree that the line is plain; "" where they do."""
    try:
        read = plain.read(command)
    except plain.NotPlain as refusal:
        return str(refusal)
    by_grammar = [_written(p) for p in parts]
    by_words = [(c.words, [t for _, t in c.redirects]) for c in read]
    return "" if by_grammar == by_words else "its syntax can be read in two ways"


def _written(part: Part) -> tuple[list[str], list[str]]:
    assigned = [f"{name}={value.text}" for name, value in part.env]
    here = [part.script.text] if part.script and not any(r.op == "<<<" for r in part.redirects) else []
    return assigned + [w.text for w in part.words], [r.target.text for r in part.redirects] + here


def _all_parts(found: Sequence[Part]) -> tuple[list[Part], str]:
    """The parts and all that they run, and what could not be followed."""
    parts: list[Part] = []
    problem = ""
    queue = deque((p, 0) for p in found)
    piped_to = 0
    while queue or piped_to < len(parts):
        if not queue:
            line = Line(tuple(parts))
            queue += [(p, 1) for part in parts[piped_to:] for p in _printed_to(part, line)]
            piped_to = len(parts)
            continue
        part, depth = queue.popleft()
        if depth > MAX_DEPTH or len(parts) > MAX_PARTS:
            return parts, "it runs commands inside commands too deep to follow"
        inner = unwrap(part)
        parts.append(replace(part, transparent=inner.transparent))
        queue += [(p, depth + 1) for p in inner.parts]
        for text, via in inner.texts:
            more, why = _parts_of_text(part, text, via)
            queue += [(p, depth + 1) for p in more]
            problem = problem or why
    return parts, problem


_MAX_SOURCES = 50
"""Parts of one pipe whose texts are read for a shell at its end; the words of the others are still looked through."""


def _printed_to(part: Part, line: Line) -> list[Part]:
    """What a shell runs that reads what echo or printf print, or a here-document: `echo 'rm x' | sh`."""
    if part.program not in SHELLS or not hidden.reads_input(part):
        return []
    found: list[Part] = []
    for source in itertools.islice(line.feeding(part), _MAX_SOURCES):
        texts = [source.script] if source.script else []
        if source.program in ("echo", "printf"):
            words = [w for w in source.args if not w.text.startswith("-")]
            text = " ".join(w.text for w in words).replace("\\n", "\n")
            texts.append(Word(text, known=all(w.known for w in words)))
        found += [p for text in texts for p in _parts_of_text(part, text, f"{part.program} in a pipe")[0]]
    return found


def _parts_of_text(part: Part, text: Word, via: str) -> tuple[list[Part], str]:
    if not text.known:
        # What is made at run time may be anything; what is known of it still counts: `sh -c "rm -rf $x"`.
        written = re.sub(r'\\([\\"$`])', r"\1", text.text[1:-1]) if text.text.startswith('"') else text.text
        seen = _parts_of_text(part, Word(written), via)[0] if " " in written else []
        return [part.with_words((text,), via), *seen], ""
    found, error = syntax.parts_of(continued.joined(text.text))
    found = [*found, *_otherwise(text.text)]
    if not found and text.text.strip() and not text.text.lstrip().startswith("#"):
        return [part.with_words((replace(text, known=False),), via)], ""
    base = (part.number + 1) * TEXT_NUMBERS
    inner = [
        replace(
            p,
            number=base + p.number,
            owner=base + p.owner if p.owner >= 0 else part.number,
            stages=(*part.stages, *(replace(s, pipe=s.pipe + base) for s in p.stages)),
            folders=part.folders if p.folders == ("",) else (None,),
            via=via,
        )
        for p in found
    ]
    return inner, f"what {via} runs cannot be read as bash" if error else ""
