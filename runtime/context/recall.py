"""Recall: how what left the view comes back. By number, by blob, by words, by path; newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.context.discard.tool_results import superseded
from runtime.context.pages import page
from runtime.context.rounds import RoundSegmenter
from runtime.context.sightings import exit_of
from transcripts.blobs import Blobs
from transcripts.log import Entry

_MOST_HITS, _SNIPPET = 20, 160
_MOST_NAMED = 5
NOTHING = "Nothing that is out of view matches."
_NOTHING = (NOTHING, "Nothing out of view matches.")
"""What a search says that found nothing, now and in older logs."""
_MOST_DIGITS = 18


class Recall:
    """Reads the log for the model. `fates` (number -> shown, stub, ...) restricts a search to what is not in view."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs

    def by_id(self, messages: Sequence[Entry], ref: str, start: int, count: int, share: int) -> str:
        """The whole text of a message (#12) or a blob, from line `start` on, `count` lines (0: as many as fit).

        Raises ValueError in words for the model where there is no such thing.
        """
        ref = ref.strip().lstrip("#")
        if not ref.isdecimal() or len(ref) > _MOST_DIGITS:
            return page(self._blob(ref), start, count, share)
        text = page(self._message(messages, int(ref)), start, count, share)
        later = _later(messages).get(int(ref))
        return f"[superseded by #{later}]\n{text}" if later else text

    def search(self, messages: Sequence[Entry], fates: Mapping[int, str], query: str, path: str, share: int) -> str:
        """Lines of what holds all words of `query` (and messages about `path`) in what is not in view, newest first.

        Raises ValueError in words for the model where neither is given.
        """
        if not (query or path):
            raise ValueError("Say what to look for: id, query or path.")
        words = [w.casefold() for w in query.split()]
        later = _later(messages)
        hits: list[str] = []
        size = 0
        for entry in reversed(messages):
            if fates.get(entry.seq, "shown") == "shown" or _is_copy(entry) or path not in _about(entry):
                continue
            label = _label(entry)
            line = _first_line(self._full(entry), words, label)
            if line is None:
                continue
            newer = f" (superseded by #{later[entry.seq]})" if entry.seq in later else ""
            hits.append(f"#{entry.seq} {label}{newer}: {line}")
            size += len(hits[-1])
            if len(hits) == _MOST_HITS or size > share:
                break
        if not hits:
            return f"{NOTHING}{self._in_view(messages, fates, words, path)}"
        return "\n".join(['Newest first; recall(id="#N") shows one whole:', *hits])

    def _in_view(self, messages: Sequence[Entry], fates: Mapping[int, str], words: Sequence[str], path: str) -> str:
        """Which messages in view would have matched: the model has looked past them."""
        found = [
            f"#{entry.seq} ({_label(entry)})"
            for entry in messages
            if fates.get(entry.seq, "shown") == "shown" and not _is_copy(entry) and not _is_search(entry)
            if path in _about(entry) and _first_line(self._full(entry), words, _label(entry)) is not None
        ]
        return f" In view, and so not searched: {', '.join(found[-_MOST_NAMED:])}." if found else ""

    def _message(self, messages: Sequence[Entry], seq: int) -> str:
        entry = next((e for e in messages if e.seq == seq), None)
        if entry is None:
            raise ValueError(f"There is no message #{seq}.")
        return self._full(entry)

    def _full(self, entry: Entry) -> str:
        record = entry.record
        if entry.kind == "tool_result" and record.blob:
            try:
                return self.blobs.get(record.blob).decode("utf-8", "replace")
            except KeyError:
                return f"[the full text is gone; what was shown:]\n{record.text}"
        calls = "".join(f"\n{c.name}({c.arguments})" for c in getattr(record, "calls", ()))
        return f"{record.text}{calls}"

    def _blob(self, ref: str) -> str:
        try:
            return self.blobs.get(ref).decode("utf-8", "replace")
        except (KeyError, ValueError) as error:
            raise ValueError(f"There is nothing with the id {ref!r}. Ids look like #12.") from error


def found_nothing(text: str) -> bool:
    """Whether a result of recall is that of a search that found nothing."""
    return any(words in text for words in _NOTHING)


def _later(messages: Sequence[Entry]) -> dict[int, int]:
    """What a later result of the same call or a later write of the file has made worthless: its number -> the later."""
    answered = (step for step in RoundSegmenter().steps(messages) if step.head.kind == "assistant")
    return superseded(
        [(step, c, step.results[c.id]) for step in answered for c in step.head.record.calls if c.id in step.results]
    )


def _is_copy(entry: Entry) -> bool:
    """Whether this is what recall showed before; the original is found by itself."""
    return entry.kind == "tool_result" and entry.record.name == "recall"


def _is_search(entry: Entry) -> bool:
    """Whether an answer only asks for what is looked for."""
    return entry.kind == "assistant" and any(c.name == "recall" for c in entry.record.calls)


def _about(entry: Entry) -> str:
    if entry.kind == "tool_result":
        return entry.record.about
    return entry.record.text + " ".join(c.arguments for c in getattr(entry.record, "calls", ()))


def _label(entry: Entry) -> str:
    if entry.kind == "tool_result":
        code, where = exit_of(entry.record.meta), entry.record.about[:80]
        ended = f" (exit {code})" if code is not None else ""
        return f"{entry.record.name} {where}{ended}".strip()
    return {"user": "user", "assistant": "you"}[entry.kind]


def _first_line(text: str, words: Sequence[str], label: str) -> str | None:
    """The line of a text that holds most of the words; None where text and label together lack one of them."""
    if not words:
        return " ".join(text[:_SNIPPET].split())
    best = None
    folded = f"{label}\n{text}".casefold()
    if not all(w in folded for w in words):
        return None
    for line in text.splitlines():
        low = line.casefold()
        if all(w in low for w in words):
            return _around(line, words)
        if best is None and any(w in low for w in words):
            best = line
    return _around(best or text.strip().partition("\n")[0], words)


def _around(line: str, words: Sequence[str]) -> str:
    """A line, or of a long one the part in which the first of the words stands, and where that is."""
    line = line.strip()
    low = line.casefold()
    at = min((n for w in words if (n := low.find(w)) >= 0), default=0)
    if at + len(words[0]) <= _SNIPPET:
        return line[:_SNIPPET]
    return f"[character {at + 1:,} of this line] {line[max(0, at - _SNIPPET // 2) : at + _SNIPPET // 2]}"
