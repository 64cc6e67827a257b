"""Where rules are kept: in one file of the person's home, never in the folder that is worked on."""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.faults import reason
from agent.permissions.rules import Rule, RuleError, parse_rule
from agent.permissions.verdicts import Decision, Scope
from agent.private import write_private
from transcripts.files import private_folder

DECISIONS: tuple[Decision, ...] = ("allow", "ask", "deny")
_HEADER = "# Rules of refold. /permissions shows them; they may be changed by hand (comments are not kept).\n"


class RuleBook:
    """All rules that count in one folder: the session's, the project's and the user's.

    `home/permissions.toml` has a table [user] and one [project."/the/folder"] for each folder, each with the lists
    allow, ask and deny. Raises RuleError where the file cannot be read: a deny that is not understood must not be
    passed over.
    """

    def __init__(self, home: Path, root: Path, extra: Sequence[Rule] = ()) -> None:
        self.path = home / "permissions.toml"
        self._project = os.path.realpath(root)
        self._session: list[Rule] = list(extra)
        self._stored: list[Rule] = []
        self._stamp: tuple[int, int] | None = None
        self._refresh()

    def __iter__(self) -> Iterator[Rule]:
        self._refresh()
        return iter([*self._session, *self._stored])

    def add(self, rule: Rule) -> None:
        """Keeps a rule in its scope ("once" keeps nothing). Raises OSError, RuleError."""
        if rule.scope == "session":
            self._session.append(rule)
        elif rule.scope != "once":
            self._change(rule, keep=True)

    def drop(self, rule: Rule) -> None:
        """Forgets a rule. Raises OSError, RuleError."""
        if rule in self._session:
            self._session.remove(rule)
        elif rule.scope in ("project", "user"):
            self._change(rule, keep=False)

    def _refresh(self) -> None:
        # Another session may have saved a rule since.
        try:
            stat = self.path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
        except FileNotFoundError:
            stamp = (0, 0)
        except OSError as error:
            raise RuleError(f"{self.path} cannot be read: {reason(error, self.path)}") from error
        if stamp != self._stamp:
            self._stored = _rules_of(_load(self.path), self._project)
            self._stamp = stamp

    def _change(self, rule: Rule, keep: bool) -> None:
        with _locked(self.path):
            data = _load(self.path)
            table = data.setdefault("user", {})
            if rule.scope == "project":
                table = data.setdefault("project", {}).setdefault(self._project, {})
            wanted = [r for r in table.get(rule.decision, []) if r != str(rule)]
            table[rule.decision] = [*wanted, str(rule)] if keep else wanted
            _save(self.path, data)
        self._stamp = None


def _rules_of(data: Mapping[str, Any], project: str) -> list[Rule]:
    tables: list[tuple[Scope, Any]] = [
        ("project", data.get("project", {}).get(project, {})),
        ("user", data.get("user", {})),
    ]
    return [rule for scope, table in tables for rule in rules_of_table(table, scope)]


def rules_of_table(table: Mapping[str, Any], scope: Scope) -> list[Rule]:
    """The rules of one table of lists (allow, ask, deny). Raises RuleError."""
    found: list[Rule] = []
    for decision in DECISIONS:
        texts = table.get(decision, [])
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise RuleError(f"{decision} has to be a list of rules, each a text")
        found += [parse_rule(t, decision, scope) for t in texts]
    return found


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise RuleError(f"{path} cannot be read: {reason(error, path)}") from error


def _save(path: Path, data: Mapping[str, Any]) -> None:
    tables = [("[user]", data.get("user", {}))]
    # A JSON string is also a TOML basic string.
    tables += [(f"[project.{json.dumps(name)}]", table) for name, table in sorted(data.get("project", {}).items())]
    out = [_HEADER]
    for title, table in tables:
        lists = [(d, table[d]) for d in DECISIONS if table.get(d)]
        if lists:
            out.append(f"\n{title}\n")
            out += [f"{d} = [\n{''.join(f'    {json.dumps(t)},{chr(10)}' for t in texts)}]\n" for d, texts in lists]
    write_private(path, "".join(out))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    private_folder(path.parent)
    with open(path.with_name(".permissions.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
