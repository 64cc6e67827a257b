"""Facts: what code can say about a stretch of work, so that no model has to remember it.

Gathered from the records once each; kept inside the checkpoint, so that a fold reads only what came since the last.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transcripts.log import Entry

_CONSTRAINT = re.compile(
    r"(?i)\b(never|don't|do not|must|always|only|without|avoid|keep|make sure|no more than|at most)\b|不要|必须|禁止|务必"
)
_MOST_CONSTRAINTS, _MOST_FILES, _MOST_COMMANDS = 24, 60, 16
_WRITERS = frozenset({"write", "edit", "apply_patch"})


def empty_facts() -> dict[str, Any]:
    """No facts yet. Plain JSON values, for they live in a checkpoint."""
    return {"upto": 0, "goal": [0, ""], "constraints": [], "files": {}, "commands": {}, "todo": []}


def gather(facts: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """The facts with what these entries add; numbers at or below `facts["upto"]` are passed over."""
    out = {
        **facts,
        "constraints": list(facts["constraints"]),
        "files": dict(facts["files"]),
        "commands": dict(facts["commands"]),
    }
    for entry in entries:
        if entry.seq <= facts["upto"]:
            continue
        if entry.kind == "user" and entry.record.source != "harness":
            _words(out, entry.seq, entry.record.text)
        elif entry.kind == "tool_result":
            _result(out, entry.seq, entry.record.name, entry.record.status, entry.record.meta)
        out["upto"] = max(out["upto"], entry.seq)
    return out


def _words(facts: dict[str, Any], seq: int, text: str) -> None:
    if not facts["goal"][0]:
        facts["goal"] = [seq, text[:600]]
    for sentence in re.split(r"(?<=[.!?。！？])\s+|\n+", text[:20_000]):
        if _CONSTRAINT.search(sentence) and len(sentence) <= 400:
            facts["constraints"].append([seq, sentence.strip()])
    del facts["constraints"][:-_MOST_CONSTRAINTS]


def _result(facts: dict[str, Any], seq: int, name: str, status: str, meta: Mapping[str, Any]) -> None:
    path = meta.get("path")
    if isinstance(path, str) and isinstance(meta.get("sha"), str) and status == "ok":
        how = "wrote" if name in _WRITERS else "read"
        before = facts["files"].pop(path, {})
        facts["files"][path] = {
            "seq": seq, "sha": meta["sha"], "how": how, "lines": meta.get("lines", ""),
            "wrote": seq if how == "wrote" else before.get("wrote", 0),
        }  # fmt: skip
        while len(facts["files"]) > _MOST_FILES:
            facts["files"].pop(next(iter(facts["files"])))
    if isinstance(meta.get("command"), str):
        kind = " ".join(meta["command"].split()[:2])[:60]
        facts["commands"].pop(kind, None)
        facts["commands"][kind] = {"seq": seq, "command": meta["command"][:300], "exit": meta.get("exit_code")}
        while len(facts["commands"]) > _MOST_COMMANDS:
            facts["commands"].pop(next(iter(facts["commands"])))
    if isinstance(meta.get("todo"), list):
        facts["todo"] = meta["todo"]


def file_sha(path: str, most: int = 8_000_000) -> str:
    """SHA-256 (hex) of a file's bytes now; "" where it is gone, "?" where it is larger than `most` bytes."""
    try:
        p = Path(path)
        return "?" if p.stat().st_size > most else hashlib.sha256(p.read_bytes()).hexdigest()
    except OSError:
        return ""


def validity(known: Mapping[str, Any]) -> str:
    """Whether what was seen of a file is still true, in a few words."""
    now = file_sha(known["path"])
    if now == "?":
        return "too large to compare"
    if not now:
        return "since deleted"
    return "unchanged since" if now == known["sha"] else "changed since"


def state_block(facts: Mapping[str, Any], left_out: str, limit: int) -> str:
    """The state as text of at most `limit` characters: the person's words first, for they weigh most."""
    lines: list[str] = []
    seq, goal = facts["goal"]
    if seq:
        lines.append(f"first request (#{seq}): {' '.join(goal.split())}")
    lines += [f"the person said (#{n}): {words}" for n, words in facts["constraints"]]
    lines += [f"todo [{t.get('status', '')}] {t.get('text', '')}" for t in facts["todo"] if isinstance(t, dict)]
    lines += _command_lines(facts["commands"])
    lines += _file_lines(facts["files"])
    room = limit - len(left_out) - 2
    kept: list[str] = []
    for line in lines:
        line = line if len(line) <= 420 else f"{line[:400]} ..."
        if room - len(line) - 1 < 0:
            kept.append("(more by recall)")
            break
        room -= len(line) + 1
        kept.append(line)
    return "\n".join([*kept, left_out]).strip()


def _command_lines(commands: Mapping[str, Any]) -> list[str]:
    newest = sorted(commands.values(), key=lambda c: -c["seq"])
    return [f"last run (#{c['seq']}): {c['command']} -> exit {c['exit']}" for c in newest]


def _file_lines(files: Mapping[str, Any]) -> list[str]:
    newest = sorted(files.items(), key=lambda item: (-item[1]["wrote"], -item[1]["seq"]))
    out: list[str] = []
    for path, f in newest:
        how = f"written (#{f['wrote']})" if f["wrote"] else f"read {f['lines']} (#{f['seq']})".replace("  ", " ")
        out.append(f"{how}: {path}, {validity({'path': path, 'sha': f['sha']})}")
    return out
