"""`refold trust`, run as the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import refold

RULES = "allow = ['bash(make test)']\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that brings rules and a hook along."""
    place = tmp_path / "work"
    (place / ".refold").mkdir(parents=True)
    (place / ".refold" / "permissions.toml").write_text(RULES)
    (place / ".refold" / "hooks.json").write_text("{}")
    return place


def test_it_lists_grants_and_takes_back(tmp_path: Path, folder: Path) -> None:
    env = {"REFOLD_HOME": str(tmp_path / "home")}

    def trust(*words: str) -> tuple[int, list[str], str]:
        done = refold("trust", *words, cwd=folder, env=env)
        return done.returncode, done.stdout.splitlines(), done.stderr

    both = ["rules          .refold/permissions.toml", "hooks          .refold/hooks.json"]
    waiting = "What is new or changed does nothing. Look at it; refold trust grant trusts all of it as it is now."
    code, lines, _ = trust()
    assert (code, sorted(lines)) == (3, sorted([*(f"new      {line}" for line in both), waiting]))
    code, lines, _ = trust("grant")
    assert (code, sorted(lines)) == (0, sorted(f"trusted  {line}" for line in both))
    assert len(json.loads((tmp_path / "home" / "trust.json").read_text())) == 1
    assert "make test" in refold("permissions", cwd=folder, env=env).stdout
    (folder / ".refold" / "permissions.toml").write_text(RULES + "# more\n")
    code, lines, _ = trust("list")
    assert (code, sorted(lines)) == (3, sorted([f"changed  {both[0]}", f"trusted  {both[1]}", waiting]))
    assert "make test" not in refold("permissions", cwd=folder, env=env).stdout
    root = folder.resolve()
    assert trust("revoke") == (0, [f"Nothing that {root} brings along is trusted any more."], "")
    assert trust()[0] == 3


def test_a_folder_that_brings_nothing_and_a_slip(tmp_path: Path) -> None:
    env = {"REFOLD_HOME": str(tmp_path / "home")}
    done = refold("trust", cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path.resolve()} brings nothing along that would have to be trusted.\n"
    done = refold("trust", "give", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "refold trust [list | grant | revoke]" in done.stderr
    assert not (tmp_path / "home").exists()
