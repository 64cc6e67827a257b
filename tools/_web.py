"""A web page as readable text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_DROPPED = {"script", "style", "noscript", "template", "svg", "head", "iframe", "nav", "footer"}
_BLOCKS = {"p", "div", "section", "article", "main", "ul", "ol", "table", "tr", "blockquote", "dl", "dt", "dd", "hr"}


class _Reader(HTMLParser):
    """Collects the text: headings as #, list items as -, links as [words](address), code as it is."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url = url
        self.out: list[str] = []
        self.title = ""
        self.dropped = 0
        self.pre = 0
        self.links: list[tuple[str, int]] = []
        self.in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element."""
        if tag == "title":
            self.in_title = True
        if tag in _DROPPED:
            self.dropped += 1
        if self.dropped:
            return
        if tag == "pre":
            self.pre += 1
            self.out.append("\n```\n")
        elif tag == "br":
            self.out.append("\n")
        elif tag == "li":
            self.out.append("\n- ")
        elif re.fullmatch("h[1-6]", tag):
            self.out.append("\n\n" + "#" * int(tag[1]) + " ")
        elif tag in _BLOCKS:
            self.out.append("\n\n" if tag not in ("tr", "dt", "dd") else "\n")
        elif tag in ("td", "th"):
            self.out.append(" | ")
        elif tag == "a":
            self.links.append((dict(attrs).get("href") or "", len(self.out)))
        elif tag == "img" and (words := dict(attrs).get("alt")):
            self.out.append(f"[image: {words}]")

    def handle_endtag(self, tag: str) -> None:
        """Closes an element."""
        if tag == "title":
            self.in_title = False
        if tag in _DROPPED:
            self.dropped = max(0, self.dropped - 1)
            return
        if self.dropped:
            return
        if tag == "pre" and self.pre:
            self.pre -= 1
            self.out.append("\n```\n")
        elif tag == "a" and self.links:
            self._link(*self.links.pop())
        elif tag in _BLOCKS or re.fullmatch("h[1-6]", tag):
            self.out.append("\n")

    def _link(self, address: str, start: int) -> None:
        words = "".join(self.out[start:]).strip()
        if words and address and not address.startswith(("#", "javascript:")) and "\n" not in words:
            self.out[start:] = [f"[{words}]({urljoin(self.url, address)})"]

    def handle_data(self, data: str) -> None:
        """Takes text."""
        if self.in_title:
            self.title += data
        elif not self.dropped:
            self.out.append(data if self.pre else re.sub(r"\s+", " ", data))


def readable(html: str, url: str) -> str:
    """The text of a page, its title first."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    parts = re.split(r"(\n```\n[\s\S]*?\n```\n)", "".join(reader.out))
    tidy = (part.strip("\n") if part.startswith("\n```\n") else _tidy(part).strip() for part in parts)
    text = "\n\n".join(part for part in tidy if part)
    title = " ".join(reader.title.split())
    return f"{title}\n\n{text}" if title and not text.startswith(f"# {title}") else text


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" ?\n ?", "\n", text))
