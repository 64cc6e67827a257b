"""Stands in for ripgrep where it is not installed: the same answers in the same form, only slower.

Run as a program of its own, so that a pattern that never ends can be stopped like any process:
python _searcher.py REQUEST, with a request of tools/_search.py as JSON. Nothing of ours is imported.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pathspec

_POSIX = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "word": r"\w",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
}
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))


class Rules(NamedTuple):
    """One ignore file: its folder, and what it says."""

    base: str
    spec: pathspec.GitIgnoreSpec


def main(request: dict[str, Any]) -> int:
    """Prints the answer; 0 for a match, 1 for none, 2 for a pattern that is wrong."""
    out = sys.stdout.buffer
    if request["mode"] == "files":
        for path in files(request):
            out.write(os.fsencode(path) + b"\0")
        return 0
    try:
        line_pattern, text_pattern = patterns(request)
    except re.error as error:
        print(f"rg: regex parse error: {error}", file=sys.stderr)
        return 2
    found = False
    for path in files(request):
        text = text_of(path)
        if text is None or not text_pattern.search(text):
            continue
        hits = matching_lines(text, text_pattern if request["multiline"] else line_pattern, request["multiline"])
        if hits:
            found = True
            name = os.fsencode(path) + b"\0"
            hits = hits[: request["most"]] if request["most"] else hits
            out.write(b"%s%d\n" % (name, len(hits)) if request["mode"] == "count" else shown(name, text, hits, request))
    return 0 if found else 1


def patterns(request: dict[str, Any]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The pattern for one line, and for a whole text."""
    source = re.escape(request["pattern"]) if request["fixed"] else translated(request["pattern"])
    flags = re.IGNORECASE if request["ignore_case"] else 0
    return re.compile(source, flags), re.compile(source, flags | re.MULTILINE)


def translated(pattern: str) -> str:
    """Rust's spelling of a regular expression as Python's."""
    pattern = re.sub(r"\[:(\w+):\]", lambda m: _POSIX.get(m[1], m[0]), pattern)
    return re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern).replace(r"\z", r"\Z")


def text_of(path: str) -> str | None:
    """The text of a file; None for a binary or unreadable one."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        print(f"rg: {path}: {error.strerror} (os error {error.errno})", file=sys.stderr)
        return None
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape")


def matching_lines(text: str, pattern: re.Pattern[str], across: bool) -> list[int]:
    """Numbers of the lines that match, from 0; of all lines a match covers if it may go across."""
    if not across:
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        return [n for n, line in enumerate(lines) if pattern.search(line)]
    covered: set[int] = set()
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        covered.update(range(first, first + text.count("\n", match.start(), max(match.start(), match.end() - 1)) + 1))
    return sorted(covered)


def shown(name: bytes, text: str, hits: list[int], request: dict[str, Any]) -> bytes:
    """The matching lines and those around them, as ripgrep prints them."""
    lines, around, out = text.split("\n"), request["context"], bytearray()
    if lines and not lines[-1]:
        lines.pop()
    wanted = sorted({n for hit in hits for n in range(max(0, hit - around), min(len(lines), hit + around + 1))})
    matched, last = set(hits), -2
    for n in wanted:
        if around and last >= 0 and n > last + 1:
            out += b"--\n"
        line = lines[n].encode("utf-8", "surrogateescape")
        if len(line) > 400:
            line = lines[n][:400].encode("utf-8", "surrogateescape") + b" [... omitted end of long line]"
        out += name + b"%d%s%s\n" % (n + 1, b":" if n in matched else b"-", line)
        last = n
    return bytes(out)


def files(request: dict[str, Any]) -> Iterator[str]:
    """Regular files under the paths, never a symlink; a file that is named is taken whatever the rules say."""
    name = name_pattern(request["name"]) if request["name"] else None
    for path in request["paths"]:
        if os.path.isfile(path):
            yield path
            continue
        rules = [] if request["everything"] else outer_rules(os.path.abspath(path), request["in_git"])
        if ignored(path, True, rules):
            rules = []  # it was named although it is ignored
        for found in walk(path, rules, request["everything"]):
            if name is None or name.match(os.path.basename(found)):
                yield found


def name_pattern(pattern: str) -> re.Pattern[str]:
    """A file-name pattern with *, ?, [..] and {a,b}."""
    out, depth = "", 0
    for part in re.findall(r"\[!?[^\]]+\]|.", pattern):
        if len(part) > 1:
            out += "[" + part[1:].replace("!", "^", 1) if part[1] == "!" else part
        elif part == "{":
            out, depth = out + "(?:", depth + 1
        elif part == "}" and depth:
            out, depth = out + ")", depth - 1
        else:
            out += {"*": ".*", "?": ".", ",": "|" if depth else ","}.get(part, re.escape(part))
    return re.compile(out + r"\Z")


def walk(folder: str, rules: list[Rules], everything: bool) -> Iterator[str]:
    """Files below a folder, the folder's own ignore files obeyed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        print(f"rg: {folder}: {error.strerror} (os error {error.errno})", file=sys.stderr)
        return
    if not everything:
        rules = [*rules, *own_rules(os.path.abspath(folder), [e.name for e in entries])]
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" if everything else entry.name.startswith(".") or ignored(entry.path, is_folder, rules):
            continue
        if is_folder:
            yield from walk(entry.path, rules, everything)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def ignored(path: str, is_folder: bool, rules: list[Rules]) -> bool:
    """The innermost rule that says anything decides."""
    full = os.path.abspath(path)
    for rule in reversed(rules):
        said = rule.spec.check_file(os.path.relpath(full, rule.base) + ("/" if is_folder else "")).include
        if said is not None:
            return said
    return False


def own_rules(folder: str, names: Iterable[str]) -> list[Rules]:
    """The ignore files in a folder, the weakest first."""
    present = set(names)
    return [
        rule
        for name in (".gitignore", ".ignore", ".rgignore")
        if name in present
        for rule in _read(folder, folder, name)
    ]


def outer_rules(folder: str, in_git: bool) -> list[Rules]:
    """What folders above say: the user's own excludes, the repository's, and each .gitignore from its root down."""
    if not in_git:
        return []
    above = [folder, *map(str, Path(folder).parents)]
    root = next((p for p in above if os.path.exists(os.path.join(p, ".git"))), folder)
    rules = [*_read(root, str(global_excludes()), ""), *_read(root, os.path.join(root, ".git", "info"), "exclude")]
    for parent in reversed(above[1 : above.index(root) + 1]):
        rules += own_rules(parent, os.listdir(parent))
    return rules


def global_excludes() -> Path:
    """The user's own ignore file, as git finds it."""
    try:
        config = Path(os.path.expanduser("~/.gitconfig")).read_text("utf-8", "replace")
    except OSError:
        config = ""
    named = re.search(r"(?im)^\s*excludesfile\s*=\s*(.+?)\s*$", config)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(named[1].strip('"') if named else f"{home}/git/ignore"))


def _read(base: str, folder: str, name: str) -> list[Rules]:
    try:
        text = Path(folder, name).read_text("utf-8", "replace")
    except OSError:
        return []
    return [Rules(base, pathspec.GitIgnoreSpec.from_lines(text.splitlines()))]


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
