"""Random files, random encodings, random edits: what lies outside of the place is the same, byte for byte, or nothing
was written at all. EDIT_ROUNDS sets how many rounds (20,000 were run before a release)."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tools._match import TYPOGRAPHIC
from tools._text import Decoded, NotText, decode, endings
from tools.base import Toolbox, ToolContext, load_tools

ROUNDS = int(os.environ.get("EDIT_ROUNDS", "300"))

LETTERS = "abcXYZ019 _(){};=.,'\"-\t\\"
FOREIGN = {
    "utf-8": "éüß世界中文日本🌍‘’“”–—\u00a0\u2028\x0c",
    "utf-8-sig": "éü世界🌍",
    "utf-16": "éü世界🌍“”",
    "utf-16-le": "éüabcdefgh",
    "utf-32": "é世🌍",
    "latin-1": "éüßÿñ°",
    "cp1252": "é“”–…€",
    "gbk": "世界中文你好一丁",
    "gb18030": "世界中文🌍é",
    "shift_jis": "ソ表日本カタカナひらがな能",
    "euc_jp": "日本ひらがなカタカナ",
    "euc_kr": "한국어가나다",
    "big5": "世界中文功蓋",
    "cp1251": "привет",
    "koi8_r": "привет",
    "mac_roman": "éü",
}


@dataclass(frozen=True)
class Case:
    data: bytes
    start: int
    end: int
    new: str
    twist: str
    every: bool


@st.composite
def cases(draw) -> Case:
    encoding = draw(st.sampled_from(sorted(FOREIGN)))
    alphabet = st.sampled_from(LETTERS * 2 + FOREIGN[encoding])
    line = st.text(alphabet, max_size=12)
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\n", "\r\n", "\r"]]))
    lines = draw(st.lists(line, min_size=1, max_size=8))
    text = "".join(one + draw(st.sampled_from(ends)) for one in lines) + draw(line)
    data = text.encode(encoding)
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at:]
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    new = draw(st.text(st.sampled_from(LETTERS + "\n\r" + FOREIGN[encoding] + "é世"), max_size=10))
    twist = draw(st.sampled_from(["", "", "", "crlf", "blanks", "deeper", "less", "quotes", "other"]))
    return Case(data, start, end, new, twist, draw(st.integers(0, 4)) == 0)


def twisted(old: str, twist: str) -> str:
    """What a model makes of a text it quotes."""
    if twist == "crlf":
        return old.replace("\n", "\r\n")
    if twist == "blanks":
        return "\n".join(line.rstrip() + "  " for line in old.split("\n"))
    if twist == "deeper":
        return "\n".join("  " + line if line.strip() else line for line in old.split("\n"))
    if twist == "less":
        return "\n".join(line.removeprefix(" ").removeprefix("\t") for line in old.split("\n"))
    if twist == "quotes":
        return old.replace("'", "’").replace('"', "“").replace("-", "–")
    return old[: len(old) // 2] + "Q" + old[len(old) // 2 :] if twist == "other" else old


def around(found: Decoded, start: int, end: int) -> tuple[bytes, bytes]:
    """The bytes before and after text[start:end], where the text is seen with \\n endings."""
    seen = endings(found.text)
    head = found.encode(seen.raw(0, start, found.text))
    tail = found.encode(seen.raw(end, len(seen.text), found.text))
    return head, tail.removeprefix(found.bom)


@pytest.fixture(scope="module")
def box() -> Iterator[Toolbox]:
    with tempfile.TemporaryDirectory() as folder:
        yield Toolbox(load_tools(["edit"]), ToolContext(Path(folder), Path(folder)))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_what_was_not_quoted_stays(box, loop, case: Case) -> None:
    try:
        found = decode(case.data)
        text = endings(found.text).text
    except NotText:
        found, text = Decoded("", "utf-8"), ""
    start, end = min(case.start, len(text)), min(case.end, len(text))
    quoted = text[start:end] or "x"
    old = twisted(quoted, case.twist)
    path = box.ctx.root / "f"
    path.write_bytes(case.data)
    box.ctx.seen.clear()
    args = {"path": "f", "old": old, "new": case.new, "replace_all": case.every}
    out = loop.run(box.run("edit", args))
    after = path.read_bytes()
    event(f"{'made' if out.ok else 'refused'}{' twisted' if case.twist else ''}")
    if not out.ok:
        assert after == case.data
        return
    places = [n for n in range(len(text)) if text.startswith(old.replace("\r\n", "\n"), n)]
    if case.every and len(places) > 1:
        between(found, text, old.replace("\r\n", "\n"), after)
        return
    if not places:
        assert only_like(found, after, old)
        return
    head, tail = around(found, places[0], places[0] + len(old.replace("\r\n", "\n")))
    assert after.startswith(head) and after.endswith(tail) and len(after) >= len(head) + len(tail)


def only_like(found: Decoded, after: bytes, old: str) -> bool:
    """Whether every line that is different now looks like the line of `old` it was taken for."""
    before = re.split(r"(?<=\n)", found.text)
    now = re.split(r"(?<=\n)", after.removeprefix(found.bom).decode(found.encoding, "surrogateescape"))
    head = len(os.path.commonprefix([before, now]))
    tail = len(os.path.commonprefix([before[head:][::-1], now[head:][::-1]]))
    gone = [loose(line) for line in before[head : len(before) - tail]]
    wanted = [loose(line) for line in old.split("\n")]
    starts = range(len(wanted) - len(gone) + 1)
    return not any(gone) or any(all(w in g for w, g in zip(wanted[k:], gone)) for k in starts)


def loose(line: str) -> str:
    return line.translate(TYPOGRAPHIC).strip()


def between(found: Decoded, text: str, old: str, after: bytes) -> None:
    """Every piece between two places is still there, in order."""
    seen = endings(found.text)
    at, position = 0, len(found.bom)
    for place in [*places_apart(text, old), len(text)]:
        piece = found.encode(seen.raw(at, place, found.text)).removeprefix(found.bom)
        position = after.find(piece, position)
        assert position >= 0
        position += len(piece)
        at = place + len(old)


def places_apart(text: str, old: str) -> list[int]:
    out, at = [], text.find(old)
    while at >= 0:
        out.append(at)
        at = text.find(old, at + len(old))
    return out
