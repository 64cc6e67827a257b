"""Bytes of a text file and back, exactly: decoding and encoding again gives the same bytes, in any encoding."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Longer marks first where one begins like another (UTF-32-LE begins like UTF-16-LE)."""

_DECLARED = re.compile(
    rb"""(?:\#[^\n]*?coding[:=]\s*|<\?xml[^>]*?encoding=["']|<meta[^>]*?charset=["']?|^@charset\s["'])([-\w.]+)"""
)
_STATEFUL = ("iso2022", "utf_7", "utf-7", "hz", "idna", "punycode")


class NotText(ValueError):
    """The bytes are not a text we can change safely."""


@dataclass(frozen=True)
class Decoded:
    """A text with what is needed to write it back.

    `text` has the line endings of the file and no byte-order mark. `sure` is False where the encoding is a guess that
    more than one would fit: then nothing but ASCII, or a copy of what is there, may be written.
    """

    text: str
    encoding: str
    bom: bytes = b""
    sure: bool = True

    def encode(self, text: str) -> bytes:
        """The bytes of `text` in this encoding, with the mark. Raises NotText for what the encoding cannot say."""
        try:
            return self.bom + text.encode(self.encoding, _errors(self.encoding))
        except UnicodeEncodeError as error:
            what = text[error.start : error.end][:20]
            raise NotText(f"the file is in {self.encoding}, which cannot write {what!r}") from None

    def refuses(self, new: str) -> str:
        """Why `new` must not be put into this text, or ""."""
        if any("\ud800" <= c <= "\udfff" for c in new):
            return "the new text has half of a character pair in it (a lone surrogate)"
        if self.sure or new.isascii():
            return ""
        foreign = sorted({c for c in new if not c.isascii()} - set(self.text))
        if foreign:
            shown = "".join(foreign[:10])
            return f"the file's encoding is not certain (it looks like {self.encoding}), so {shown!r} cannot be added"
        return ""


def _errors(encoding: str) -> str:
    if encoding == "utf-8":
        return "surrogateescape"
    return "surrogatepass" if encoding.startswith("utf-") else "strict"


def decode(data: bytes) -> Decoded:
    """The text in `data`. Raises NotText for a binary file."""
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return _exactly(data, encoding, bom) or _binary()
    if b"\0" in data:
        encoding = _wide(data)
        return (_exactly(data, encoding) if encoding else None) or _binary()
    declared = _declared(data)
    if data.isascii():
        found = _exactly(data, declared) if declared else None
        return found or Decoded(data.decode("ascii"), "utf-8", sure=b"\x1b$" not in data)
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        found = _exactly(data, declared) if declared else None
        return found or _legacy(data)


def looks_binary(data: bytes) -> bool:
    """Whether the first bytes of a file are no text: a NUL in them that UTF-16 does not explain."""
    if any(data.startswith(bom) for bom, _ in BOMS):
        return False
    return b"\0" in data and not _wide(data[: len(data) & ~1])


def _binary() -> Decoded:
    raise NotText("it is a binary file")


def _exactly(data: bytes, encoding: str, bom: bytes = b"", sure: bool = True) -> Decoded | None:
    try:
        found = Decoded(data[len(bom) :].decode(encoding, _errors(encoding)), encoding, bom, sure)
        return found if found.encode(found.text) == data else None
    except (UnicodeError, LookupError):
        return None


def _wide(data: bytes) -> str:
    """UTF-16 without a mark: at least four of ten of one byte of each pair are NUL, and hardly one of the other."""
    if len(data) < 4 or len(data) % 2:
        return ""
    half = len(data) // 2
    even, odd = data[0::2].count(0), data[1::2].count(0)
    for few, many, encoding in ((even, odd, "utf-16-le"), (odd, even, "utf-16-be")):
        if many >= 0.4 * half and few <= 0.01 * half:
            return "" if _has_controls(data.decode(encoding, "replace")[:4000]) else encoding
    return ""


def _has_controls(text: str) -> bool:
    return any(c < " " and c not in "\t\n\r\f\x1b" for c in text)


def _declared(data: bytes) -> str:
    """The encoding that the first lines name (a coding cookie, an XML or HTML declaration), where Python knows it."""
    found = _DECLARED.search(b"\n".join(data[:1024].split(b"\n", 4)[:4]))
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
    except LookupError:
        return ""
    return "" if name.startswith(_STATEFUL) or name in ("utf-8", "ascii") else name


def _legacy(data: bytes) -> Decoded:
    """A text of one byte a character, or of an East Asian encoding, or UTF-8 with some bad bytes."""
    loose = data.decode("utf-8", "surrogateescape")
    bad = sum("\udc80" <= c <= "\udcff" for c in loose)
    good = sum(not c.isascii() for c in loose) - bad
    if good >= 4 * bad:
        return Decoded(loose, "utf-8")
    found = _east_asian(data)
    if found:
        return found
    high = [i for i, b in enumerate(data) if b > 127]
    close = sum(1 for a, b in zip(high, high[1:]) if b == a + 1)
    sure = close <= 0.2 * len(high)
    if any(0x80 <= b < 0xA0 for b in data):
        return _exactly(data, "cp1252", sure=sure) or Decoded(data.decode("latin-1"), "latin-1", sure=False)
    return Decoded(data.decode("latin-1"), "latin-1", sure=sure)


def _east_asian(data: bytes) -> Decoded | None:
    """Shift-JIS and EUC-JP by their kana, GBK by its pairs of high bytes; None where the bytes say neither."""
    for encoding in ("shift_jis", "euc_jp"):
        found = _exactly(data, encoding)
        if found and _share(found.text, 0x3041, 0x30FE) >= 0.25 and _share(found.text, 0xFF61, 0xFF9F) < 0.2:
            return found
    pairs = re.findall(rb"[\x81-\xfe][\x40-\xfe]", data)
    tight = [p for p in pairs if p[0] >= 0xA1 and p[1] >= 0xA1]
    if not pairs or len(tight) < 0.9 * len(pairs):
        return None
    common = [p for p in tight if 0xB0 <= p[0] <= 0xD7]
    korean = all(p[0] <= 0xC8 for p in common)
    return _exactly(data, "gb18030", sure=len(common) >= 0.5 * len(tight) and not korean)


def _share(text: str, low: int, high: int) -> float:
    foreign = [c for c in text if not c.isascii()]
    return sum(low <= ord(c) <= high for c in foreign) / len(foreign) if foreign else 0.0


@dataclass(frozen=True)
class Endings:
    """A text seen with \\n endings, and the way back. `marks`: places in `text` whose \\n is \\r\\n in the file."""

    text: str
    marks: tuple[int, ...]
    old_mac: bool = False

    def raw(self, start: int, end: int, source: str) -> str:
        """The slice of `source` (the file's own text) that text[start:end] stands for."""
        return source[start + bisect_left(self.marks, start) : end + bisect_left(self.marks, end)]


def endings(source: str) -> Endings:
    """Sees \\r\\n as \\n; in a text that has \\r alone and no \\n at all (old Macintosh) \\r too. Other \\r stay."""
    if "\n" not in source and "\r" in source:
        return Endings(source.replace("\r", "\n"), (), old_mac=True)
    if "\r\n" not in source:
        return Endings(source, ())
    marks: list[int] = []
    at = source.find("\r\n")
    while at >= 0:
        marks.append(at - len(marks))
        at = source.find("\r\n", at + 2)
    return Endings(source.replace("\r\n", "\n"), tuple(marks))


def to_lf(text: str) -> str:
    """An argument as matched: \\r\\n becomes \\n."""
    return text.replace("\r\n", "\n")


def plain(text: str) -> str:
    """For showing: lone surrogates (bytes that are no text) become U+FFFD."""
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
