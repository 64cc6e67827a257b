"""Large bodies: named by content, stored once, whole or not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from transcripts.blobs import Blobs, LogWriteError


def test_a_body_is_stored_once_under_its_hash(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "b")
    name = blobs.put(b"body")
    assert (name, blobs.put(b"body"), blobs.get(name)) == (hashlib.sha256(b"body").hexdigest()[:32], name, b"body")
    assert (blobs.names(), [p.name for p in (tmp_path / "b").iterdir()]) == ([name], [name])


def test_a_damaged_body_is_not_given_out_and_is_mended_by_the_next_put(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "b")
    name = blobs.put(b"body")
    (tmp_path / "b" / name).write_bytes(b"bo")
    with pytest.raises(KeyError):
        blobs.get(name)
    assert (blobs.put(b"body"), blobs.get(name)) == (name, b"body")


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 32])
def test_what_is_not_there_is_a_key_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyError):
        Blobs(tmp_path / "b").get(name)


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a file is in the way")
    with pytest.raises(LogWriteError, match="a part of the log could not be written: "):
        Blobs(tmp_path / "b").put(b"body")


def test_bodies_are_copied_not_shared(tmp_path: Path) -> None:
    a, b = Blobs(tmp_path / "a"), Blobs(tmp_path / "b")
    names = [a.put(b"1"), a.put(b"2")]
    b.take(a, [names[0], "f" * 32])
    assert (b.names(), b.get(names[0])) == ([names[0]], b"1")
    assert (tmp_path / "a" / names[0]).stat().st_ino != (tmp_path / "b" / names[0]).stat().st_ino
