"""Edits in every encoding: the bytes that were not quoted stay, or nothing is written."""

from __future__ import annotations

import codecs

import pytest

from tools._text import NotText, decode

TEXTS = {
    "utf-8": "naïve 世界 🌍\nx = 1\nende\n",
    "utf-8-sig": "Árvíztűrő\r\nDim a = 1\r\nx = 1\r\n",
    "utf-16": "line café\nx = 1\nétè\n",
    "utf-16-le": "plain words here\nx = 1\nmore words\n",
    "utf-16-be": "plain words here\nx = 1\nmore words\n",
    "utf-32": "é\nx = 1\n",
    "latin-1": "caf\xe9 ol\xe9\nx = 1\n\xfcber\n",
    "cp1252": "“quoted” – text €\nx = 1\n",
    "gbk": "注释 中文内容\nx = 1\n结束\n",
    "gb18030": "注释 中文内容\nx = 1\n结束\n",
    "shift_jis": "こんにちは ソース表\nx = 1\nカタカナ\n",
    "euc_jp": "こんにちは\nx = 1\nカタカナ\n",
    "euc_kr": "안녕하세요 반갑습니다 여러분 한국어\nx = 1\n",
    "big5": "功能 許功蓋 中文內容\nx = 1\n",
    "cp1251": "привет мир\nx = 1\n",
    "koi8_r": "привет мир\nx = 1\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_an_ascii_line_is_changed_in_any_encoding(ws, encoding):
    ws.put("f", TEXTS[encoding].encode(encoding))
    out = ws.call("edit", path="f", old="x = 1", new="x = 22")
    assert out.ok, out.text
    assert ws.bytes("f") == TEXTS[encoding].replace("x = 1", "x = 22").encode(encoding)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "gbk", "shift_jis"]
)
def test_what_the_file_has_can_be_quoted_and_written(ws, encoding):
    ws.put("f", TEXTS[encoding].encode(encoding))
    word = TEXTS[encoding].split()[0]
    assert ws.call("edit", path="f", old=word, new=f"{word}{word}").ok
    assert ws.bytes("f") == TEXTS[encoding].replace(word, word * 2, 1).encode(encoding)


@pytest.mark.parametrize(
    ("encoding", "new", "words"),
    [
        ("latin-1", "世界", "the file is in latin-1, which cannot write '世界'"),
        ("gbk", "x\U0001f30d", ""),
        ("cp1251", "мир ё", "the file's encoding is not certain"),
        ("euc_kr", "한국", "the file's encoding is not certain"),
        ("big5", "文字", "the file's encoding is not certain"),
        ("utf-8", "a\ud800b", "the new text has half of a character pair in it"),
    ],
)
def test_what_cannot_be_written_is_refused(ws, encoding, new, words):
    before = TEXTS[encoding].encode(encoding)
    ws.put("f", before)
    out = ws.call("edit", path="f", old="x = 1", new=new)
    if words:
        assert not out.ok and words in out.text and ws.bytes("f") == before
    else:
        assert out.ok and ws.bytes("f") == TEXTS[encoding].replace("x = 1", new).encode("gb18030")


def test_a_guess_is_not_cut_in_the_middle_of_a_character(ws):
    before = "功能\nx\n".encode("big5")  # the second byte of 功 is a backslash
    assert b"\\" in before
    ws.put("f", before)
    out = ws.call("edit", path="f", old="\\", new="/")
    assert not out.ok and "the encoding is not certain" in out.text and ws.bytes("f") == before


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("# -*- coding: {} -*-", "koi8-r"),
        ('<?xml version="1.0" encoding="{}"?>', "iso8859-2"),
        ('<html><head><meta charset="{}">', "cp1251"),
        ('@charset "{}";', "cp1250"),
    ],
)
def test_a_declared_encoding_is_believed(ws, head, encoding):
    sample = "мир" if encoding in ("koi8-r", "cp1251") else "ő"
    text = f"{head.format(encoding)}\nx = 1\n{sample}\n"
    ws.put("f", text.encode(encoding))
    assert ws.call("edit", path="f", old="x = 1", new=sample * 2).ok
    assert ws.bytes("f") == text.replace("x = 1", sample * 2).encode(encoding)


def test_a_declaration_counts_before_the_first_such_character(ws):
    ws.put("f.py", "# coding: gbk\nx = 1\n")
    assert ws.call("edit", path="f.py", old="1", new="'中'").ok
    assert ws.bytes("f.py") == "# coding: gbk\nx = '中'\n".encode("gbk")


def test_stray_bytes_stay(ws):
    before = "äöü ist gut\n".encode() + b"\xff\xfe broken \x80\nx = 1\n" + "ßßßßßßßßßß\n".encode()
    ws.put("f", before)
    assert ws.call("edit", path="f", old="x = 1", new="é").ok
    assert ws.bytes("f") == before.replace(b"x = 1", "é".encode())


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", bytes(range(256))])
def test_a_binary_file_is_not_touched(ws, data):
    ws.put("f", data)
    out = ws.call("edit", path="f", old="a", new="b")
    assert (out.ok, out.text, ws.bytes("f")) == (False, "f: it is a binary file; this tool changes text only.", data)


@pytest.mark.parametrize("encoding", TEXTS)
def test_decoding_and_encoding_is_the_identity(encoding):
    data = TEXTS[encoding].encode(encoding)
    found = decode(data)
    assert found.encode(found.text) == data


def test_marks_are_not_part_of_the_text():
    for mark, encoding in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        found = decode(mark + "a".encode(encoding))
        assert (found.text, found.encoding, found.bom) == ("a", encoding, mark)
    with pytest.raises(NotText):
        decode(codecs.BOM_UTF16_LE + b"a")
