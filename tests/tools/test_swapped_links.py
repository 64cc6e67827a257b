"""Between the judgement of a call and its work a command may put a link in the place of a folder: nothing is written
or read elsewhere than what was judged."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.extended import World, call
from tools._held import folder_of, opened, targets_of
from tools.base import TARGETS, ToolFailure

PATCH = "*** Begin Patch\n*** Add File: d/key\n+evil\n*** End Patch\n"
GONE = "*** Begin Patch\n*** Delete File: d/there\n*** End Patch\n"


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Swaps two names for each other, as often as it can."""
    exchange, over = 2, threading.Event()
    libc = ctypes.CDLL(None)

    def swap() -> None:
        while not over.is_set():
            libc.renameat2(-100, bytes(one), -100, bytes(other), exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "attempt",
    [
        call("write", path="d/key", content="evil\n"),
        call("apply_patch", patch=PATCH),
        call("apply_patch", patch=GONE),
        call("read", path="d/secret"),
        call("edit", path="d/there", old="text", new="evil"),
    ],
    ids=["write", "add", "delete", "read", "edit"],
)
def test_a_folder_that_becomes_a_link_leads_nowhere(tmp_path: Path, attempt: dict[str, object]) -> None:
    world = World(tmp_path)
    outside = tmp_path / "outside"
    for folder in (outside, world.ws / "d"):
        folder.mkdir()
        (folder / "there").write_text("text\n")
    (outside / "secret").write_text("the key\n")
    (world.ws / "d" / "secret").write_text("no key\n")
    (world.ws / "link").symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    with world.open(*([attempt] * 60), mode="edits", max_steps=200) as talk:
        talk.session.safety.permissions.temporary = ()  # all of this lies in one, where everybody may write
        with swapping(world.ws / "d", world.ws / "link"):
            talk.say()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    assert not any("the key" in result for result in talk.results)


def test_a_call_is_held_to_what_it_was_judged_for(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "d" / "x").write_text("x")
    token = TARGETS.set(targets_of([tmp_path / "d" / "x"]))
    try:
        with folder_of(tmp_path / "d" / "x") as held, opened(tmp_path / "d" / "x") as source:
            assert (held.read_text(), source.read_text()) == ("x", "x")
            (tmp_path / "d").rename(tmp_path / "moved")
            (tmp_path / "d").symlink_to(tmp_path / "elsewhere")
            held.write_text("y")
        assert (tmp_path / "moved" / "x").read_text() == "y"
        (tmp_path / "elsewhere" / "x").write_text("z")
        with pytest.raises(ToolFailure, match="leads elsewhere now"), folder_of(tmp_path / "d" / "x"):
            pass
        with pytest.raises(ToolFailure, match="leads elsewhere now"), opened(tmp_path / "d" / "x"):
            pass
    finally:
        TARGETS.reset(token)
