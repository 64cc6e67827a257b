"""Whole sessions at random: a person who does all that can be done about folding, a model that does what models do, and
a server with whims. One seed, one session."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from agent.models import make_model
from agent.models.base import ModelOptions
from agent.rewinding import rewind_conversation, turns
from agent.session import Session
from agent.settings import Settings
from runtime.context.unfold import unfold
from runtime.events import Event, ToolFinished, TurnEnded
from tests.support.reckoning import Line, Reckoned, disagreements, lines_of, reckon, sent
from tests.support.whimsical import NOTES, WORDINGS, Whims
from transcripts.records import Image

KINDS = ("english", "chinese", "emoji", "base64", "minified", "json", "log", "surrogate")
SAID = (
    "Never write to `keep.txt`. ", "必须用 port 8443，不要删除文件。 ", "The hash is 9f2c4e1ab7. ",
    "See https://example.org/a?b=c. ",
)  # fmt: skip
MODELS = ("m1", "m2")
SMALL = ("tiny-1b", "small-3b")
"""Names of models that are told little: the windows of their sessions begin at 2,000 tokens."""
FILES = 12
ROOM_FOR_FLOOR = 0.7
"""Part of a window that instructions and tools may take, as the server counts, for a turn to be bound to succeed."""


def text_of(kind: str, size: int, random: Random) -> str:
    """About `size` characters of one kind."""
    if kind == "base64":
        return base64.b64encode(random.randbytes(size * 3 // 4)).decode()
    if kind == "minified":
        parts = [f"function f{n}(a,b){{return a[{n}]?b+{n}:f{n + 1}(b,a)}};" for n in range(size // 45 + 1)]
        return "".join(parts)[:size]
    if kind == "log":
        return "".join(
            f"2026-01-{n % 28 + 1:02} 12:00 ERROR req={n:08x} took {n % 977} ms\n" for n in range(size // 46)
        )
    unit = {
        "english": "The quick brown fox jumps over the lazy dog.\n",
        "chinese": "这个函数读取配置文件并返回结果，",
        "emoji": "😀🚀👩‍👩‍👧‍👦 ok ",
        "json": '{"id": 17, "tags": ["a", null], "v": 3.25}, ',
        "surrogate": "half \ud83d and \U0001f600 whole\n",
    }[kind]
    return (unit * (size // len(unit) + 1))[:size]


class Life:
    """One random session over one server; `faults` has what was not as it has to be."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = r = Random(seed)
        self.seed, self.folder, self.work = seed, folder, folder / "work"
        small = r.random() < 0.3
        self.models = SMALL if small else MODELS
        self.least = 2_000 if small else 7_000
        window = r.choice((2_000, 3_000, 5_000, 8_000) if small else (8_000, 8_000, 12_000, 16_000, 32_000, 64_000))
        other = max(self.least, r.choice((window, window * 2, window // 2)))
        self.server = Whims(
            r, dict(zip(self.models, (window, other), strict=True)), factor=r.choice((1.0, 1.0, 1.8, 0.5)),
            counts=r.choice(("told", "told", "told", "silent", "nonsense")),
            notes=r.choice(NOTES), wording=r.randrange(len(WORDINGS)), answer=self.answer,
        )  # fmt: skip
        self.told = window if r.random() < 0.5 else None
        self.faults: list[str] = []
        self.events: list[Event] = []
        self.left = self.number = self.stops = 0
        self.log = b""
        self.model = self.models[0]

    # -- the model ----------------------------------------------------------------------------------------------------

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the model says next."""
        r = self.random
        self.left -= 1
        text = text_of(r.choice(KINDS[:-1]), r.choice((0, 20, 200, 2_000)), r)
        if self.left <= 0:
            return {"text": text or "Done."}
        count = 200 if r.random() < 0.02 else r.choice((1, 1, 1, 2, 4))
        return {"text": text, "calls": [self.call(count > 4) for _ in range(count)]}

    def call(self, small: bool) -> dict[str, Any]:
        r = self.random
        self.number += 1
        name = r.choice(("read", "read", "read", "write", "recall", "grep", "picture", "unknown"))
        file = f"f{r.randrange(FILES)}.txt"
        arguments: dict[str, Any] = {"path": "small.txt" if small else file}
        if name == "write":
            size = 10 if small else r.choice((10, 1_000, 12_000))
            arguments = {"path": f"w{r.randrange(5)}.txt", "content": text_of(r.choice(KINDS[:-1]), size, r)}
        elif name == "recall":
            arguments = r.choice(({"id": f"#{r.randrange(60)}"}, {"query": "fox"}, {"path": file}))
        elif name == "grep":
            arguments = {"pattern": r.choice(("fox", "ERROR", "."))}
        elif name == "picture":
            name, arguments = "read", {"path": "dot.png"}
        return {"id": f"c{self.number}", "name": name, "arguments": arguments}

    # -- the person ---------------------------------------------------------------------------------------------------

    async def live(self, steps: int) -> None:
        """So many things that the person does."""
        self._fill()
        self.session = self._open("")
        try:
            await self.say()
            for _ in range(steps):
                await self.random.choice(self.deeds)()
                self._look()
            await self.say()
            self._look()
        finally:
            await self._close()

    @property
    def deeds(self) -> list[Any]:
        often = [self.say] * 3 + [self.stop] * 2 + [self.resume] * 2
        return [
            *often, self.steer, self.compact, self.undo, self.pin, self.pin_all, self.unpin, self.unfold, self.preview,
            self.use_other, self.other_window, self.rewind, self.other_whims, self.recall,
        ]  # fmt: skip

    async def say(self) -> None:
        r = self.random
        self.left = r.choice((1, 3, 6, 15))
        size = r.choice((10, 100, 1_000, 1_000))
        if r.random() < 0.15:
            size = self.server.windows[self.model] * r.choice((3, 40))
        text = r.choice(SAID) + text_of(r.choice(KINDS), size, r)
        images = tuple(self._image() for _ in range(r.choice((0, 0, 0, 0, 1, 60))))
        async with contextlib.aclosing(self.session.send(text, images)) as events:
            await self._follow(events, f"say {len(text)} {len(images)}")

    async def stop(self) -> None:
        """Stops a turn somewhere in it; now and then the session is opened again right after."""
        self.left = 12
        last = self.random.randrange(1, 60)
        async with contextlib.aclosing(self.session.send("Go on, I may stop you.")) as events:
            seen = 0
            async for _ in events:
                seen += 1
                if seen == last:
                    self.session.interrupt()
                    self.stops += 1
        if self.random.random() < 0.5:
            self.session.settle()
            await self.resume()

    async def steer(self) -> None:
        """Says something while the model works."""
        self.left = 6
        async with contextlib.aclosing(self.session.send("Do it, and listen.")) as events:
            async for event in events:
                if isinstance(event, ToolFinished) and self.random.random() < 0.3:
                    self.session.steer(self.random.choice(SAID) * self.random.choice((1, 1, 400)))

    async def compact(self) -> None:
        await self._follow(self.session.compact(self.random.choice(("", "the port", "x" * 3_000))), "compact")

    async def undo(self) -> None:
        self.session.engine.undo_fold()

    async def pin(self) -> None:
        for entry in self.random.choices(self.session.engine.history.messages, k=2):
            self.session.engine.pin(entry.seq)

    async def pin_all(self) -> None:
        if self.random.random() < 0.3:
            for entry in list(self.session.engine.history.messages):
                self.session.engine.pin(entry.seq)

    async def unpin(self) -> None:
        for seq in self.session.engine.pinned:
            self.session.engine.pin(seq, False)

    async def unfold(self) -> None:
        folded = [seq for seq, fate in self.session.engine.fates().items() if fate != "shown"]
        for seq in self.random.sample(folded, min(3, len(folded))):
            with contextlib.suppress(ValueError):
                unfold(self.session.engine, seq)

    async def preview(self) -> None:
        before = self.session.engine.build_model_view()
        await self.session.preview_compact()
        self.session.context()
        if self.session.engine.build_model_view() != before:
            self.faults.append("a look changed the view")

    async def resume(self) -> None:
        before = self.session.engine.build_model_view()
        path = self.session.path
        await self._close()
        self.session = self._open(str(path))
        after = self.session.engine.build_model_view()
        if after.messages != before.messages:
            pairs = enumerate(zip(before.messages, after.messages, strict=False))
            n = next((n for n, (a, b) in pairs if a != b), min(len(before.messages), len(after.messages)))
            self.faults.append(f"a resume shows message {n} otherwise: {str(before.messages[n : n + 1])[:500]}")

    async def use_other(self) -> None:
        self.model = self.random.choice(self.models)
        self.session.use_model(f"openai_chat:{self.model}")

    async def other_window(self) -> None:
        name = self.random.choice(self.models)
        self.server.windows[name] = int(self.server.windows[name] * self.random.choice((0.5, 0.7, 1.5, 3)))
        self.server.windows[name] = max(self.least, min(200_000, self.server.windows[name]))

    async def rewind(self) -> None:
        said = turns(self.session)
        if len(said) > 1:
            rewind_conversation(self.session, self.random.choice(said[:-1]))

    async def other_whims(self) -> None:
        self.server.notes, self.server.wording = self.random.choice(NOTES), self.random.randrange(len(WORDINGS))

    async def recall(self) -> None:
        """What is not shown whole can be had, all of it, page by page."""
        engine = self.session.engine
        folded = [seq for seq, fate in engine.fates().items() if fate not in ("shown", "left out: orphan")]
        for seq in self.random.sample(folded, min(3, len(folded))):
            record = engine.history.get(seq).record  # type: ignore[union-attr]
            if getattr(record, "name", "") == "recall":
                continue  # its own words say where a page goes on
            blob = getattr(record, "blob", "")
            whole = engine.log.blobs.get(blob).decode("utf-8", "replace") if blob else record.text
            if "".join(_pages(engine, seq)).replace("\n", "").find(whole.replace("\n", "")[:50_000]) < 0:
                self.faults.append(f"#{seq} is not had back whole")

    # -- what has to hold ---------------------------------------------------------------------------------------------

    async def _follow(self, events: Any, what: str) -> None:
        asked = len(self.server.seen)
        got = [event async for event in events]
        self.events += got
        end = next((e for e in got if isinstance(e, TurnEnded)), None)
        body = next((b for b, _ in reversed(self.server.seen)), None)
        if end is None or body is None:
            return
        floor = self.server.tokens({**body, "messages": body["messages"][:1]})
        bound = floor <= ROOM_FOR_FLOOR * self.server.windows[self.model]
        if end.reason == "error" and bound:
            refused = sum(not ok for _, ok in self.server.seen[asked:])
            self.faults.append(f"{what}: {end.reason} {end.kind}: {end.message} ({refused} refused, floor {floor})")

    def _look(self) -> None:
        assert self.session.path is not None
        now = self.session.path.read_bytes()
        if not now.startswith(self.log):
            self.faults.append("the log was rewritten")
        self.log = now

    def _open(self, resume: str) -> Session:
        settings = Settings.load(
            {
                "model": f"openai_chat:{self.model}", "api_key": "k", "base_url": self.server.url,
                "permission_mode": "yolo", "context_window": self.told, "summary_timeout": 20.0,
            },
            {"REFOLD_HOME": str(self.folder / "home"), "REFOLD_ENV_FILE": ""},
            self.folder,
        )  # fmt: skip
        options = ModelOptions(api_key="k", base_url=self.server.url, window=self.told, home=settings.home)
        model = make_model(f"openai_chat:{self.model}", options)
        return Session.start(settings, cwd=self.work, model=model, resume=resume)

    async def _close(self) -> None:
        self.session.close()
        await self.session.finish()

    def _fill(self) -> None:
        self.work.mkdir(parents=True)
        for n in range(FILES):
            kind = KINDS[n % (len(KINDS) - 1)]
            body = text_of(kind, self.random.choice((300, 3_000, 20_000, 100_000)), self.random)
            (self.work / f"f{n}.txt").write_text(body)
        (self.work / "small.txt").write_text("small\n")
        (self.work / "dot.png").write_bytes(DOT)

    def _image(self) -> Image:
        return Image(self.session.engine.log.blobs.put(DOT), "image/png")


DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _pages(engine: Any, seq: int) -> Any:
    """All pages of one message, without the lines that say where it goes on."""
    start = 1
    for _ in range(400):
        page = engine.recall(id=f"#{seq}", start=start)
        if page.startswith("[superseded by #"):
            page = page.partition("\n")[2]
        head, mark, tail = page.rpartition("\n[lines ")
        yield head if mark else page
        if not mark:
            return
        start = int(tail.partition("start=")[2].partition(";")[0].rstrip("]"))


def faults_of(life: Life) -> list[str]:
    """All that was not as it has to be in a session that was lived: what the person met with, then what log and server
    say of each request and of each fold."""
    assert life.session.path is not None
    lines = lines_of(life.session.path)
    reckoned, seen = list(reckon(lines)), life.server.seen
    out = [*life.faults, *life.server.malformed]
    # Of a request that the person stopped at once the server may know nothing.
    if not 0 <= len(reckoned) - len(seen) <= life.stops:
        out.append(f"{len(reckoned)} requests in the log, {len(seen)} at the server, {life.stops} stopped")
    last: tuple[Any, str] | None = None
    for one, body in _pairs(reckoned, [body for body, _ in seen]):
        out += [f"request #{one.request['seq']}: {what}" for what in disagreements(one, body)]
        raw = json.dumps(body["messages"])
        view = (one.fold and one.fold["id"], body["model"], body["messages"][0], one.rewound)
        # Where an answer was stopped before it began, the person's next words stand behind those without one.
        if last and last[0] == view and not raw.startswith(last[1].rstrip(']}"')):
            out.append(f"request #{one.request['seq']}: does not go on from the one before")
        last = view, raw
    if (life.work / "by-the-notes").exists():
        out.append("a call in the notes was run")
    return out + [what for line in lines for what in _of_record(line)] + list(_loops(lines))


def _pairs(reckoned: list[Reckoned], bodies: list[dict[str, Any]]) -> Iterator[tuple[Reckoned, dict[str, Any]]]:
    """Each request of the server with the one of the log that says it was sent, in order."""
    at = 0
    for body in bodies:
        sha = sent(body)
        found = next((n for n in range(at, len(reckoned)) if reckoned[n].request["view"] == sha), at)
        if found < len(reckoned):
            yield reckoned[found], body
        at = found + 1


def _of_record(line: Line) -> Iterator[str]:
    if line["kind"] == "note" and line["key"] == "shape":
        yield f"a malformed view: {line['value']}"
    if line["kind"] == "checkpoint" and line["cause"] not in ("unfold", "a past too large to be read"):
        if line["tokens_after"] >= line["tokens_before"]:
            yield f"#{line['seq']}: a fold that frees nothing"
        kept = line["meta"]["retained"]
        if kept["in_view"] + kept["by_id"] != kept["total"]:
            yield f"#{line['seq']}: a fold that loses facts"
        if any(mark in line.get("notes", "") for mark in ("</notes", "</state", "\x1b")):
            yield f"#{line['seq']}: notes that leave their place"


def _loops(lines: list[Line]) -> Iterator[str]:
    """Two folds of one cause without a request between them."""
    since: list[str] = []
    for line in lines:
        if line["kind"] == "request" and line.get("purpose", "step") == "step":
            since = []
        elif line["kind"] == "checkpoint" and line["cause"] in ("threshold", "prompt_too_long"):
            if line["cause"] in since:
                yield f"#{line['seq']}: two folds and no request between them"
            since.append(line["cause"])
        elif line["kind"] in ("unfold", "note", "user"):
            since = []
