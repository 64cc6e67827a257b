"""Facts: what code can say about a stretch of work, so that no model has to remember it.

Gathered from the records once each; kept inside the checkpoint, so that a fold reads only what came since the last.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from runtime.context.hashes import UNREADABLE, file_hash
from runtime.context.rounds import SPOKEN
from runtime.context.sightings import command_kind, constraints, exit_of, failed_tests, made, named
from transcripts.log import Entry

_MOST = {"constraints": 40, "named": 160, "files": 120, "commands": 32, "failing": 40, "made": 16, "todo": 50}
"""Entries of each list; the oldest leave first, files that were only read before files that were written."""
_WRITERS = frozenset({"write", "edit", "apply_patch"})

_BASE, _WRITTEN, _READ = "paths below are in:", "files written", "files read"
_SIGNS = {"pending": "[ ]", "doing": "[>]"}
_COMPARED = 8_000_000
"""Bytes of a file beyond which it is not read to see whether it has changed."""
_ANSWER_END = 200
"""Characters of the end of the last answer."""
_LINE = 100
"""Characters that lines of several things have at most, where one thing is not longer by itself."""


def empty_facts() -> dict[str, Any]:
    """No facts yet. Plain JSON values, for they live in a checkpoint."""
    return {
        "upto": 0, "goal": [0, ""], "answer": [0, ""], "constraints": [], "named": [], "files": {}, "commands": {},
        "failing": {}, "made": [], "todo": [],
    }  # fmt: skip


def gather(facts: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """The facts with what these entries add; numbers at or below `facts["upto"]` are passed over."""
    out: dict[str, Any] = {**empty_facts(), **facts}
    out = {k: v.copy() if isinstance(v, (list, dict)) else v for k, v in out.items()}
    for entry in entries:
        if entry.seq <= facts["upto"]:
            continue
        if entry.kind == "user" and entry.record.source in SPOKEN:
            _words(out, entry.seq, entry.record.text)
        elif entry.kind == "tool_result":
            _result(out, entry.seq, entry.record)
        elif entry.kind == "assistant" and not entry.record.calls and entry.record.text.strip():
            out["answer"] = [entry.seq, _end_of(entry.record.text)]
        out["upto"] = max(out["upto"], entry.seq)
    return out


# -- taking down ------------------------------------------------------------------------------------------------------


def _words(facts: dict[str, Any], seq: int, text: str) -> None:
    if not facts["goal"][0]:
        facts["goal"] = [seq, text[:600]]
    facts["constraints"] += [[seq, sentence] for sentence in constraints(text)]
    facts["named"] += [[seq, name] for name in named(text)]
    for kind in ("constraints", "named"):
        del facts[kind][: -_MOST[kind]]


def _end_of(text: str) -> str:
    """The end of an answer, where it asks or offers something: what the person's next words refer to."""
    words = " ".join(text[-4 * _ANSWER_END :].split())
    return words if len(words) <= _ANSWER_END else f"... {words[-_ANSWER_END:].partition(' ')[2]}"


def _result(facts: dict[str, Any], seq: int, record: Any) -> None:
    meta: Mapping[str, Any] = record.meta
    if record.status == "ok":
        for path, sha in record.files.items():
            _file(facts, seq, record.name in _WRITERS, {**meta, "path": path, "sha": sha})
    if isinstance(meta.get("command"), str):
        _command(facts, seq, meta["command"], exit_of(meta), record.text)
    if isinstance(meta.get("todo"), list):
        items = [item for item in meta["todo"] if isinstance(item, dict)][: _MOST["todo"]]
        facts["todo"] = [{k: str(item.get(k, ""))[:200] for k in ("text", "status")} for item in items]


def _file(facts: dict[str, Any], seq: int, wrote: bool, meta: Mapping[str, Any]) -> None:
    files = facts["files"]
    before = files.pop(meta["path"], {})
    files[meta["path"]] = {
        "seq": seq, "sha": meta["sha"], "how": "wrote" if wrote else "read", "lines": meta.get("lines", ""),
        "wrote": seq if wrote else before.get("wrote", 0),
    }  # fmt: skip
    if len(files) > _MOST["files"]:
        files.pop(next((path for path, known in files.items() if not known["wrote"]), next(iter(files))))


def _command(facts: dict[str, Any], seq: int, command: str, code: Any, output: str) -> None:
    _failures(facts, seq, command[:300], code, output)
    facts["made"] = [*facts["made"], *([seq, line] for line in made(output))][-_MOST["made"] :]
    kind = command_kind(command)
    if kind:
        facts["commands"].pop(kind, None)
        facts["commands"][kind] = {"seq": seq, "command": command[:300], "exit": code}
    _let_oldest_go(facts["commands"], _MOST["commands"])


def _failures(facts: dict[str, Any], seq: int, command: str, code: Any, output: str) -> None:
    """Tests that fail now: those just seen to fail, less those that the same command, or a green run of what holds
    them, does not name any more."""
    failing = facts["failing"]
    now = failed_tests(output) if code != 0 else []
    for name in [n for n, known in failing.items() if n in now or _settles(command, code, n, known["command"])]:
        del failing[name]
    failing.update({name: {"seq": seq, "command": command} for name in now})
    _let_oldest_go(failing, _MOST["failing"])


def _settles(command: str, code: Any, test: str, seen_in: str) -> bool:
    """Whether a run that does not name a failing test says that it passes."""
    if command == seen_in:
        return code is not None
    if code != 0 or not (kind := command_kind(command)):
        return False
    words = _split(command)
    file = test.partition("::")[0]
    aims = [w.partition("::")[0].rstrip("/") for w in words if not w.startswith("-")]
    if any(file == aim or file.startswith(f"{aim}/") for aim in aims):
        return "::" not in command or test in words
    return kind == command_kind(seen_in) and all(w.startswith("-") for w in words[len(kind.split()) :])


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _let_oldest_go(table: dict[str, Any], most: int) -> None:
    while len(table) > most:
        del table[next(iter(table))]


# -- files, then and now ----------------------------------------------------------------------------------------------


def validity(known: Mapping[str, Any]) -> str:
    """Whether what was seen of a file is still true, in a few words."""
    now = file_hash(Path(known["path"]), _COMPARED)
    if UNREADABLE in (now, known["sha"]):
        return "not to be compared now"
    if not now:
        return "since deleted"
    return "unchanged since" if now == known["sha"] else "changed since"


# -- telling ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, most telling first. `weight`: its claim to room beside the others."""

    heading: str
    lines: Sequence[str]
    weight: int = 1

    @property
    def size(self) -> int:
        """Characters of all of it."""
        return len(self.heading) + 1 + sum(len(line) + 1 for line in self.lines)

    def cut(self, room: int) -> list[str]:
        """As many lines as fit into `room` characters, and how many do not; no heading without a line."""
        if self.size <= room:
            return [self.heading, *self.lines]
        room -= len(self.heading) + 25
        kept: list[str] = []
        for line in self.lines:
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        return [self.heading, *kept, f"({len(self.lines) - len(kept)} more: recall)"] if kept else []


def state_sections(facts: Mapping[str, Any], visible: Container[int] = ()) -> list[Section]:
    """What a state can say, and how the files stand now. Words that stand in a message whose number is in `visible`
    are in view anyway and are not said again."""
    facts = {**empty_facts(), **facts}
    return [s for s in (*_sections(facts, visible), *_file_sections(facts["files"])) if s.lines]


def state_block(sections: Sequence[Section], left_out: str, limit: int) -> str:
    """The state as text of at most `limit` characters. Where not all fits, each section gets a fair share, and what one
    does not need goes to the others."""
    shares = _fair([(s.size, s.weight) for s in sections], limit - len(left_out) - 1)
    kept = [line for section, share in zip(sections, shares, strict=True) for line in section.cut(share)]
    return "\n".join([*kept, left_out]).strip()


def _fair(needs: Sequence[tuple[int, int]], room: int) -> list[int]:
    """The share of each (need, weight): who needs less than the share of its weight gets that, the others the rest."""
    shares = [0] * len(needs)
    order = sorted(range(len(needs)), key=lambda n: needs[n][0] / needs[n][1])
    weights = sum(weight for _, weight in needs)
    for n in order:
        need, weight = needs[n]
        shares[n] = min(need, max(0, room) * weight // weights)
        room, weights = room - shares[n], weights - weight
    return shares


def _sections(facts: Mapping[str, Any], visible: Container[int]) -> Iterator[Section]:
    seq, goal = facts["goal"]
    goal = "" if seq in visible else goal
    yield Section("first request:", [f"(#{seq}) {' '.join(goal.split())}"] if goal else [], 3)
    seq, answer = facts["answer"]
    yield Section("your last answer ended:", [f"(#{seq}) {answer}"] if answer and seq not in visible else [], 3)
    said = [f"(#{n}) {words}" for n, words in facts["constraints"] if n not in visible and words not in goal]
    yield Section("the person said:", said[::-1], 4)
    named = [(n, name) for n, name in facts["named"] if n not in visible and name not in goal]
    yield Section("they named:", list(_named_lines(named)), 4)
    still = [
        f"{_SIGNS.get(item['status'], '[ ]')} {item['text']}" for item in facts["todo"] if item["status"] != "done"
    ]
    yield Section(f"todo, {len(facts['todo']) - len(still)} of {len(facts['todo'])} done:", still, 3)
    failing = sorted(facts["failing"], key=lambda name: -facts["failing"][name]["seq"])
    yield Section("failing tests:", failing, 3)
    yield Section("commands, the last of each kind:", list(_command_lines(facts["commands"])), 3)
    made = [f"{line} (#{n})" for n, line in facts["made"] if n not in visible]
    yield Section("commands said:", made[::-1], 2)


def _named_lines(found: Iterable[tuple[int, str]]) -> Iterator[str]:
    """What the person named, a line for each message, newest first."""
    by_message: dict[int, dict[str, None]] = {}
    for seq, name in found:
        by_message.setdefault(seq, {})[name] = None
    for seq, names in reversed(by_message.items()):
        yield f"(#{seq}) {', '.join(names)}"


def _command_lines(commands: Mapping[str, Any]) -> Iterator[str]:
    """Commands that ended alike share lines of about 100 characters; what did not end well comes first, with the number
    of its output."""
    ends: dict[Any, list[str]] = {}
    for ran in sorted(commands.values(), key=lambda c: (c["exit"] == 0, -c["seq"])):
        number = f" (#{ran['seq']})" if ran["exit"] != 0 else ""
        ends.setdefault(ran["exit"], []).append(f"{' '.join(ran['command'].split())[:200]}{number}")
    for code, words in ends.items():
        head = "still running: " if code is None else f"exit {code}: "
        yield from (head + "; ".join(part) for part in _lines(words, _LINE - len(head)))


def _lines(words: Iterable[str], most: int) -> Iterator[list[str]]:
    """Words in groups of at most `most` characters, one at least."""
    line: list[str] = []
    for word in words:
        if line and sum(len(w) + 2 for w in line) + len(word) > most:
            yield line
            line = []
        line.append(word)
    if line:
        yield line


def _file_sections(files: Mapping[str, Any]) -> Iterator[Section]:
    """Files written, then files only read; a section for each way they stand now. The newest come first, but every
    folder has one line before any has two."""
    base = _base(files)
    yield Section(_BASE, [base] if base else [], 4)
    groups: dict[tuple[bool, str], dict[str, list[str]]] = {}
    for path, known in sorted(files.items(), key=lambda item: (not item[1]["wrote"], -item[1]["seq"])):
        truth = validity({"path": path, "sha": known["sha"]})
        folder, name = os.path.split(os.path.relpath(path, base) if base else path)
        groups.setdefault((bool(known["wrote"]), truth), {}).setdefault(folder, []).append(name)
    for (wrote, truth), folders in groups.items():
        heading = f"{_WRITTEN if wrote else _READ}, {truth}:"
        lines = zip_longest(*(_names(*item) for item in folders.items()))
        yield Section(heading, [line for some in lines for line in some if line], 3 if wrote else 1)


def _base(files: Mapping[str, Any]) -> str:
    """The folder that all files are in; "" where there is none worth naming."""
    if len(files) < 2 or not all(os.path.isabs(path) for path in files):
        return ""
    base = os.path.commonpath([os.path.dirname(path) for path in files])
    return base if len(base) > 1 else ""


def _names(folder: str, names: Sequence[str]) -> Iterator[str]:
    """Names of one folder, as a shell would take them: folder/{one,two}."""
    for part in _lines(names, _LINE - len(folder)):
        yield _braced(folder, part)


def _braced(folder: str, names: Sequence[str]) -> str:
    return os.path.join(folder, names[0] if len(names) == 1 else f"{{{','.join(names)}}}")


def told_paths(state: str) -> set[str]:
    """Every path that a state block names, whole, though it names them together."""
    out: set[str] = set()
    base, heading = "", ""
    for line in state.splitlines():
        if line.endswith(":") or line.startswith("("):
            heading = line
        elif heading == _BASE:
            base = line
        elif heading.startswith((_WRITTEN, _READ)):
            head, brace, rest = line.partition("{")
            out |= {os.path.join(base, head + name) for name in (rest[:-1].split(",") if brace else [""])}
    return out
