"""One file's edits, from its bytes to its new bytes: encoding, line endings and all that is not quoted stay."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tools._match import Ambiguous, NoMatch, Splice, plan
from tools._text import Decoded, Endings, NotText, decode, endings, plain, to_lf
from tools.base import ToolFailure


@dataclass(frozen=True)
class Change:
    """`old` becomes `new`, everywhere if `every`."""

    old: str
    new: str
    every: bool = False


@dataclass(frozen=True)
class Outcome:
    """The new bytes, both texts (\\n endings, for the diff) and what is worth saying about each change."""

    data: bytes
    before: str
    after: str
    notes: tuple[str, ...] = ()


def apply(data: bytes, changes: Sequence[Change], name: str) -> Outcome:
    """All changes, each made to what the one before left, or ToolFailure and nothing."""
    try:
        first = decode(data)
    except NotText as error:
        raise ToolFailure(f"{name}: {error}; this tool changes text only.") from None
    text, notes = first.text, []
    for n, change in enumerate(changes, 1):
        which = f"Edit {n} of {len(changes)}: " if len(changes) > 1 else ""
        try:
            text, note = _one(Decoded(text, first.encoding, first.bom, first.sure), change, name)
        except ToolFailure as error:
            rest = " None of the edits was made." if len(changes) > 1 else ""
            raise ToolFailure(f"{which}{error}{rest}") from None
        notes += [which + note] if note else []
    try:
        out = first.encode(text)
    except NotText as error:
        raise ToolFailure(f"{name}: {error}.") from None
    return Outcome(out, endings(first.text).text, endings(text).text, tuple(notes))


def _one(here: Decoded, change: Change, name: str) -> tuple[str, str]:
    """The text after one change, and a note."""
    old, new = to_lf(change.old), to_lf(change.new)
    if change.old == change.new or old == new:
        raise ToolFailure("Nothing to change: old and new are the same.")
    _refuse(here, old, new, name)
    seen = endings(here.text)
    try:
        found = plan(seen.text, old, new, change.every)
    except Ambiguous as error:
        raise ToolFailure(_several(seen.text, error, name)) from None
    except NoMatch:
        raise ToolFailure(_not_found(seen.text, old, name)) from None
    if not found.splices:
        raise ToolFailure(f"Nothing to change: {name} reads so already, but for blanks or quotes.")
    if not here.sure:
        check_borders(seen.text, found.splices, name)
    note = f"matched although {found.how}" if found.how else ""
    if found.places > 1:
        note = f"{found.places} places"
    return spliced(here.text, found.splices, crlf="\r\n" in change.new), note


def _refuse(here: Decoded, old: str, new: str, name: str) -> None:
    why = here.refuses(new)
    if why:
        raise ToolFailure(f"{name}: {why}. Nothing was changed.")
    left_out = elision(new, old)
    if left_out:
        raise ToolFailure(f"The new text leaves code out ({left_out!r}). Write it in full; nothing was changed.")


_NOUN = (
    r"(?:code|methods?|functions?|lines?|file|implementation|imports?|contents?|class(?:es)?|body|logic|tests?|fields?)"
)
_ELISION = re.compile(
    rf"(?:the )?(?:rest of|remaining|existing|unchanged|other|same|previous)"
    rf"(?: [\w']+){{0,3}} {_NOUN}(?: [\w']+){{0,4}}"
    rf"|{_NOUN}(?: [\w']+){{0,2}} (?:unchanged|as before|omitted|stays?|remains?)(?: [\w']+){{0,3}}",
    re.IGNORECASE,
)


def elision(new: str, old: str) -> str:
    """A line of `new` that stands for code it leaves out ("// ... rest of the methods ...") and is not in `old`."""
    for line in new.split("\n"):
        bare = line.strip()
        dotted = len(bare) < 100 and ("..." in bare or "\u2026" in bare) and not set(bare) & set("\"'`")
        if dotted and bare not in old and _ELISION.fullmatch(" ".join(re.findall(r"[\w']+", bare))):
            return bare
    return ""


def check_borders(text: str, splices: Sequence[Splice], name: str) -> None:
    """In an encoding that is a guess a place next to a foreign character may lie in the middle of one."""
    for s in splices:
        around = text[max(0, s.start - 1) : s.start] + text[max(s.start, s.end - 1) : s.end + 1]
        if not around.isascii():
            raise ToolFailure(
                f"{name}: the encoding is not certain, and the change touches a character that is not ASCII. "
                "Nothing was changed; use bash (iconv, python) for this file."
            )


def spliced(source: str, splices: Sequence[Splice], crlf: bool = False) -> str:
    """The file's own text with changes made to it whose places count \\n endings. They must be in order and apart.

    New lines end as the lines they replace do, else as the line before, else as the next one; in a file of one line
    without an end they end with \\r\\n if `crlf`."""
    seen = endings(source)
    out: list[str] = []
    at = 0
    for s in splices:
        out.append(seen.raw(at, s.start, source))
        out.append(_with_endings(s, seen, source, crlf))
        at = s.end
    return "".join([*out, seen.raw(at, len(seen.text), source)])


def _with_endings(s: Splice, seen: Endings, source: str, crlf: bool) -> str:
    if "\n" not in s.new:
        return s.new
    text = seen.text
    at = text.find("\n", s.start, s.end)
    if at < 0:
        at = text.rfind("\n", 0, s.start)
    if at < 0:
        at = text.find("\n", s.end)
    if at < 0:
        return s.new.replace("\n", "\r\n") if crlf else s.new
    return s.new.replace("\n", seen.raw(at, at + 1, source))


def _several(text: str, error: Ambiguous, name: str) -> str:
    lines = [text.count("\n", 0, at) + 1 for at in error.places[:10]]
    more = ", …" if len(error.places) > 10 else ""
    why = f" (where {error.how})" if error.how else ""
    return (
        f"old is in {name} {len(error.places)} times{why}, on lines {', '.join(map(str, lines))}{more}. "
        "Add lines around it until it is the only one, or set replace_all."
    )


_NUMBERED = re.compile(r" *\d+\t")


def _not_found(text: str, old: str, name: str) -> str:
    lines = old.split("\n")
    if all(_NUMBERED.match(line) for line in lines if line.strip()) and old.strip():
        return f"old is not in {name}: leave out the line numbers and the tab that read puts before each line."
    near = nearest(text, lines)
    if not near:
        return f"old is not in {name}. Nothing there is like it; read the file again."
    return f"old is not in {name}. The closest lines are:\n{near}\nCopy them exactly, blanks included."


def nearest(text: str, wanted: Sequence[str], around: int = 2) -> str:
    """The lines of the file that are most like `wanted`, numbered as read shows them; "" where nothing is like it."""
    here = text.removesuffix("\n").split("\n")
    at = _best_place(here, wanted)
    if at is None:
        return ""
    start = max(0, at - around)
    end = min(len(here), at + min(len(wanted), 30) + around)
    return "\n".join(f"{n:>6}\t{plain(line[:400])}" for n, line in enumerate(here[start:end], start + 1))


def _best_place(here: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The index where most lines agree (blanks aside); else that of the line most like the longest one wanted."""
    bare = [" ".join(line.split()) for line in here]
    asked = [" ".join(line.split()) for line in wanted]
    places: dict[str, list[int]] = {}
    for n, line in enumerate(bare):
        places.setdefault(line, []).append(n)
    votes: dict[int, int] = {}
    for k, line in enumerate(asked):
        for n in places.get(line, [])[:200] if len(line) > 3 else []:
            votes[n - k] = votes.get(n - k, 0) + len(line)
    if votes:
        return max(0, max(votes, key=lambda n: (votes[n], -n)))
    longest = max(range(len(asked)), key=lambda k: len(asked[k]))
    pool = [line for line in dict.fromkeys(bare) if line][:5000]
    close = difflib.get_close_matches(asked[longest], pool, 1, 0.6) if len(asked[longest]) <= 1000 else []
    return max(0, places[close[0]][0] - longest) if close else None
