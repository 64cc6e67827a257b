"""A long coding session as a script: what the person says, what the model does, and which facts are planted where.

Deterministic: the same seed gives the same words, calls and files. The calls are real ones (read, write, bash, todo)
and run in a folder that `Workload.lay_out` fills.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

PLANTED = 12
"""Facts of each kind."""

KINDS = (
    "constraint", "path written", "path read", "last command", "failing test", "identifier", "port", "hash", "url",
    "open todo",
)  # fmt: skip

AREAS = (
    "billing", "search", "mailer", "ledger", "upload", "session", "export", "quota", "report", "audit", "parser",
    "router",
)  # fmt: skip
_WORDS = (
    "value", "index", "count", "items", "total", "buffer", "cursor", "offset", "result", "record", "window", "handler",
    "payload", "token", "entry", "limit", "batch", "queue", "retry", "flush",
)  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """Something that must not be lost: `words` all stand in one line (or one text) that tells it. `step` counts the
    model's answers from 1; the fact is known from that answer on (for what the person says: from the one before)."""

    kind: str
    words: tuple[str, ...]
    step: int


@dataclass(frozen=True)
class Round:
    """What the person says, and the answers to it, as entries of a script; the last has no calls."""

    words: str
    answers: list[dict[str, Any]]


@dataclass
class Workload:
    """`steps` answers in rounds of `per_round`. Every area's facts are planted in a round of its own, evenly spread."""

    steps: int = 300
    per_round: int = 20
    seed: int = 1
    rounds: list[Round] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.todo: list[dict[str, str]] = []
        self.done = 0
        self._calls = 0
        self.files = {f"src/lib/part_{n:02}.py": self.code(self.random.randint(60, 170)) for n in range(40)}
        count = max(PLANTED, self.steps // self.per_round)
        planted = {n * count // PLANTED: n for n in range(PLANTED)}
        for n in range(count):
            self.rounds.append(self.round(n, planted.get(n), self.steps // count + (n < self.steps % count)))

    def lay_out(self, folder: Path) -> None:
        """Writes the files that the session finds."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def answers(self) -> list[dict[str, Any]]:
        """All answers in order."""
        return [a for r in self.rounds for a in r.answers]

    def round(self, number: int, area: int | None, length: int) -> Round:
        """One round of `length` answers; with an area, that area's facts are in it."""
        words = f"Go on with part {number}: look at what is there and tidy it."
        special: list[dict[str, Any]] = []
        if area is not None:
            words = self.asks(area)
            special = self.work(area)
        while len(special) < length - 1:
            special.insert(self.random.randint(0, len(special)), self.noise())
        self._plant_in_order(area, special)
        self.done += length
        return Round(words, [*special, {"text": f"Part {number} is done as you asked; nothing else was touched."}])

    def _plant_in_order(self, area: int | None, answers: list[dict[str, Any]]) -> None:
        for n, answer in enumerate(answers, 1):
            self.facts += [Fact(kind, words, self.done + n) for kind, words in answer.pop("facts", [])]

    # -- what the person says ---------------------------------------------------------------------------------------

    def asks(self, n: int) -> str:
        """The person's words about an area; every fourth time they stand in the middle of a long paste."""
        area = AREAS[n]
        sha = hashlib.sha1(f"{self.seed}-{n}".encode()).hexdigest()[: 7 + n]
        planted = {
            "constraint": f"Never change the public names of {area}/legacy_{n}.py.",
            "identifier": f"{area}_total_{n}",
            "port": str(8100 + 7 * n),
            "hash": sha,
            "url": f"https://tracker.example/{area}/issues/{1000 + n}",
        }
        self.facts += [Fact(kind, (word,), self.done) for kind, word in planted.items()]
        words = (
            f"Now the {area} part. It listens on port {planted['port']} and its metric is `{planted['identifier']}`. "
            f"The last good commit was {sha}, the report is at {planted['url']}. {planted['constraint']}"
        )
        if n % 4 != 2:
            return words
        pasted = [
            f"12:{i % 60:02}:07 {area} worker {i % 9} took {i * 13 % 997} ms for job {i * 31}" for i in range(120)
        ]
        return "\n".join(["This is what I see:", *pasted[:60], words, *pasted[60:], f"Look into {area}."])

    # -- what the model does ----------------------------------------------------------------------------------------

    def work(self, n: int) -> list[dict[str, Any]]:
        """The answers that matter in a round: each carries the facts it plants."""
        area = AREAS[n]
        source, made, test = f"src/{area}/reader_{n}.py", f"src/{area}/feature_{n}.py", f"tests/test_{area}.py"
        case, code = f"{test}::test_{area}_case_{n}", n % 3
        self.files[source] = self.code(90)
        self.files[f"scripts/verify_{n}.sh"] = f"echo 'verifying {area}'; exit {code}\n"
        lines = "\n".join(f"{test}::test_ok_{i} PASSED" for i in range(20))
        report = f"{lines}\n{case} FAILED\n=== short test summary info ===\nFAILED {case} - AssertionError: {n}"
        self.files[f"scripts/report_{n}.txt"] = f"{report}\n1 failed, 20 passed in 0.31s\n"
        self.files[f"scripts/tests_{n}.sh"] = f"cat scripts/report_{n}.txt; exit 1\n"
        item = f"tell the {area} team about case {n}"
        self.todo += [{"text": f"look at {area}", "status": "done"}, {"text": item, "status": "pending"}]
        verify = f"bash scripts/verify_{n}.sh"
        return [
            self.answer(f"I look at {area}.", "read", {"path": source}, ("path read", (source,))),
            self.answer("The plan.", "todo", {"items": list(self.todo)}, ("open todo", (item,))),
            self.answer("I write it.", "write", {"path": made, "content": self.code(50)}, ("path written", (made,))),
            self.answer("I check.", "bash", {"command": verify}, ("last command", (verify, f"exit {code}"))),
            self.answer("Tests.", "bash", {"command": f"bash scripts/tests_{n}.sh"}, ("failing test", (case,))),
        ]

    def noise(self) -> dict[str, Any]:
        """An answer of the ordinary kind: one more look at something."""
        part = self.random.choice([f for f in self.files if f.startswith("src/lib/")])
        word = self.random.choice(_WORDS)
        said = f"I look for {word} next, because the handler of this part may depend on it."
        command = self.random.choice(
            (f"cat {part}", f"grep -n {word} {part}", f"sed -n 1,60p {part}", "ls -la src/lib")
        )
        if self.random.random() < 0.6:
            return self.answer(said, "read", {"path": part})
        return self.answer(said, "bash", {"command": command})

    def answer(self, text: str, tool: str, arguments: dict[str, Any], *facts: tuple[str, Any]) -> dict[str, Any]:
        """One entry of a script with one call."""
        self._calls += 1
        call = {"id": f"call_{self._calls}", "name": tool, "arguments": json.loads(json.dumps(arguments))}
        return {"text": text, "calls": [call], "facts": list(facts)}

    def code(self, lines: int) -> str:
        """Something that looks like a module; no two are alike."""
        pick = self.random.choice
        out = []
        for n in range(lines):
            a, b = pick(_WORDS), pick(_WORDS)
            out.append(f"def {a}_{n}({b}):" if n % 5 == 0 else f"    {a} = {b}_{self.random.randint(1, 99)} + {n}")
        return "\n".join(out) + "\n"
