"""Which rung is chosen, what the doctor says of the others, and what children are not told."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.doctor import Finding, examine, of_sandbox
from agent.sandbox import NONE, Sandbox, SandboxError, child_env
from agent.sandbox.bwrap import Bubblewrap, of_system
from agent.sandbox.layout import Layout
from agent.sandbox.seatbelt import Seatbelt, profile
from agent.settings import Settings


@dataclass
class Plain:
    """A rung that confines nothing: it works or says why not, and counts how often it was tried."""

    kind: str
    why: str = ""
    tries: int = 0

    def why_not(self) -> str:
        self.tries += 1
        return self.why

    def fix(self, why: str) -> str:
        return f"mend {self.kind}"

    def limits(self) -> tuple[str, ...]:
        return (f"{self.kind} cannot fly",)

    def wrap(self, argv: Sequence[str], cwd: Path, layout: Layout) -> list[str]:
        return [self.kind, *argv]


def box(tmp_path: Path, *rungs: Plain) -> Sandbox:
    return Sandbox(tmp_path, tmp_path / "own", rungs=rungs)


def test_the_first_rung_that_works_is_used_and_tried_once(tmp_path: Path) -> None:
    broken, first, second = Plain("a", "no"), Plain("b"), Plain("c")
    sandbox = box(tmp_path, broken, first, second)
    sandbox.prepare()
    assert sandbox.kind == "b"
    assert sandbox.wrap(["x"], tmp_path, "workspace") == ["b", "x"]
    assert (sandbox.limits(), [r.tries for r in (broken, first, second)]) == (("b cannot fly",), [1, 1, 0])


def test_without_a_rung_nothing_runs_that_was_only_allowed_inside(tmp_path: Path) -> None:
    sandbox = box(tmp_path, Plain("a", "no"))
    assert sandbox.kind == NONE
    assert sandbox.wrap(["x"], tmp_path, "off") == ["x"]
    with pytest.raises(SandboxError):
        sandbox.wrap(["x"], tmp_path, "read-only")


def test_the_doctor_says_why_and_what_would_help() -> None:
    assert list(of_sandbox([Plain("a", "not there"), Plain("b"), Plain("c")])) == [
        Finding("sandbox", "note", "a does not work: not there (no harm: b is used)", "mend a"),
        Finding("sandbox", "ok", "b: used"),
        Finding("sandbox", "note", "b: b cannot fly"),
        Finding("sandbox", "ok", "c: works, a better one is used"),
    ]
    assert list(of_sandbox([Plain("a", "not there")])) == [
        Finding("sandbox", "bad", "a does not work: not there", "mend a"),
        Finding("sandbox", "bad", "nothing confines commands here, so each one is asked about"),
    ]


def test_a_rung_that_is_not_installed_says_how_to_get_it() -> None:
    absent = Bubblewrap("bwrap", lambda: "")
    assert absent.why_not() == "it is not installed"
    assert absent.fix("it is not installed").startswith("install it: apt install bubblewrap")
    refused = Bubblewrap("bwrap", lambda: "/bin/false")
    assert refused.why_not() == "it failed silently"
    assert "user namespaces" in refused.fix("No permissions to create new namespace")


def test_a_bwrap_of_the_workspace_is_not_taken_for_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:.:{os.environ['PATH']}")
    assert not of_system().startswith(str(tmp_path))


def test_the_profile_for_macos_denies_last(tmp_path: Path) -> None:
    lines = profile(Layout(writable=("/w",), fixed=("/w/.git/hooks",), hidden=("/h/.ssh",))).splitlines()
    order = [lines.index(line) for line in (
        "(deny file-write*)",
        '(allow file-write* (subpath "/w"))',
        '(deny file-write* (subpath "/w/.git/hooks"))',
        '(deny file-read* file-write* (subpath "/h/.ssh"))',
        "(deny network*)",
    )]  # fmt: skip
    assert order == sorted(order)
    assert "(deny network*)" not in profile(Layout(network=True))
    assert (Seatbelt().why_not() == "") is (sys.platform == "darwin")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("PATH_TO_X", "/x", True), ("LANG", "C", True), ("EDITOR", "vi", True), ("TOKENIZERS_PARALLELISM", "1", True),
        ("SSH_AUTH_SOCK", "/x", True), ("AUTHOR", "a", True), ("KEYMAP", "us", True), ("PATRON", "x", True),
        ("OPENAI_API_KEY", "x", False), ("ANTHROPIC_API_KEY", "x", False), ("GITHUB_TOKEN", "x", False),
        ("AWS_SECRET_ACCESS_KEY", "x", False), ("AWS_ACCESS_KEY_ID", "x", False), ("DB_PASSWORD", "x", False),
        ("NPM_TOKEN", "x", False), ("MY_SECRET", "x", False), ("GOOGLE_APPLICATION_CREDENTIALS", "/x", False),
        ("DATABASE_URL", "postgres://u:p@h/d", False), ("DATABASE_URL", "postgres://h/d", True), ("GH_PAT", "x", False),
        ("INNOCENT", "before sk-our-own-key after", False), ("KEEP_TOKEN", "x", True), ("NAMED", "x", False),
    ],
)  # fmt: skip
def test_what_children_are_told(name: str, value: str, kept: bool) -> None:
    env = child_env({name: value}, own=["NAMED"], secrets=["sk-our-own-key", "x"], keep=["KEEP_TOKEN"])
    assert (name in env) is kept


def test_relative_folders_leave_the_path() -> None:
    assert child_env({"PATH": ".:/usr/bin::bin:/bin"})["PATH"] == "/usr/bin:/bin"


def test_a_child_cannot_read_the_memory_of_the_program() -> None:
    if os.geteuid() == 0:
        return  # root reads everything
    code = "from agent.sandbox import hide_own_memory; import os, subprocess; hide_own_memory(); "
    code += "print(subprocess.run(['cat', f'/proc/{os.getpid()}/environ'], capture_output=True).stdout)"
    env = {**os.environ, "OUR_KEY": "the key itself"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "b''\n"


def test_the_doctor_finds_out_about_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{}")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "permissions.toml").write_text("[user\n")
    settings = Settings.load({}, {"REFOLD_HOME": str(tmp_path / "own")}, tmp_path)
    found = {(f.about, f.state): f for f in examine(settings, tmp_path)}
    assert found["model", "bad"].text == "no model is chosen"
    assert "cannot be read" in found["rules", "bad"].text
    assert found["trust", "note"].text == "not trusted, so they do nothing: .mcp.json"
    assert found["home", "ok"].text == str(tmp_path / "own")
